package route

import (
	"math"
	"slices"
	"sync/atomic"
)

// rotation says in which order the n-th request tries the targets of a plan.
//
// The number of the request is read digit by digit: one digit picks who is first, the next who is
// second among the others, the next who is third. So whoever is first meets every second in turn,
// and the share of a target that is out goes to all others and not to its neighbour alone.
type rotation struct {
	turn    *atomic.Uint64
	shuffle bool // the entries take turns; else only the siblings of each
	entries []entry
	size    int // targets in all
	weights []int
}

// entry is one line of a combo: its siblings are the plan's targets of these indexes.
type entry struct {
	weight  int
	targets []int
	weights []int
}

// newRotation returns nil when there is nothing to take turns.
func newRotation(entries []entry, shuffle bool, turn *atomic.Uint64) *rotation {
	r := &rotation{turn: turn, shuffle: shuffle && len(entries) > 1, entries: entries}
	moving := r.shuffle
	for i := range entries {
		moving = moving || len(entries[i].targets) > 1
		entries[i].weights = reduced(entries[i].weights)
		r.size += len(entries[i].targets)
		r.weights = append(r.weights, entries[i].weight)
	}
	r.weights = reduced(r.weights)
	if !moving {
		return nil
	}
	return r
}

// at returns the order of request number n.
func (r *rotation) at(n uint64) []int {
	out := make([]int, 0, r.size)
	if !r.shuffle {
		for i := range r.entries {
			out = r.entries[i].append(out, n)
		}
		return out
	}
	turns(r.weights, n, func(i int, visit uint64) { out = r.entries[i].append(out, visit) })
	return out
}

// append adds the entry's targets in the order of its n-th visit.
func (e *entry) append(out []int, n uint64) []int {
	if len(e.targets) == 1 {
		return append(out, e.targets[0])
	}
	turns(e.weights, n, func(i int, _ uint64) { out = append(out, e.targets[i]) })
	return out
}

// digits is how many places are picked by weight. Those after them follow in a circle: a request
// seldom gets so far, and picking all of many would take time by their square.
const digits = 3

// turns calls next for every index in the order of turn n, each with how often it had been picked
// for that place before: a number that runs through 0, 1, 2, … as n does, in some order within each
// round, so that it can be the turn of what lies below.
func turns(weights []int, n uint64, next func(i int, visit uint64)) {
	var picked [digits]int
	count := 0
	for count < min(digits, len(weights)) {
		i, visit, rest := pick(weights, picked[:count], n)
		next(i, visit)
		picked[count], n = i, rest
		count++
	}
	if count == len(weights) {
		return
	}
	start := picked[count-1]
	for k := 1; k < len(weights); k++ {
		if i := (start + k) % len(weights); !slices.Contains(picked[:count], i) {
			next(i, n)
		}
	}
}

// pick reads the lowest digit of n: which index not yet taken comes next, how often it did before,
// and the rest of n.
func pick(weights, taken []int, n uint64) (index int, visit, rest uint64) {
	total, equal := uint64(0), true
	first := 0
	for i, w := range weights {
		if slices.Contains(taken, i) {
			continue
		}
		if first == 0 {
			first = w
		}
		equal = equal && w == first
		total += uint64(w)
	}
	per := func(w int) uint64 { return uint64(w) }
	if equal {
		// The same shares: one after the other, as everybody expects it.
		total /= uint64(first)
		per = func(int) uint64 { return 1 }
	}
	digit := n % total
	rest = n / total
	if !equal {
		digit = digit * stride(total) % total
	}
	for i, w := range weights {
		if slices.Contains(taken, i) {
			continue
		}
		if digit < per(w) {
			return i, rest*per(w) + digit, rest
		}
		digit -= per(w)
	}
	return 0, 0, rest // not reached: digit is below the sum
}

// stride is a step that visits every one of n places once and jumps far each time, so that a heavy
// target's turns are spread over the round: about n by the golden ratio, with no factor in common.
func stride(n uint64) uint64 {
	s := max(uint64(math.Round(float64(n)*0.618)), 1)
	for gcd(s, n) != 1 {
		s++
	}
	return s
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// reduced divides out what all weights have in common.
func reduced(weights []int) []int {
	var g uint64
	for _, w := range weights {
		g = gcd(uint64(w), g)
	}
	if g <= 1 {
		return weights
	}
	out := make([]int, len(weights))
	for i, w := range weights {
		out[i] = w / int(g)
	}
	return out
}
