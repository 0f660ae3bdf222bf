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
	shares  shares // of the entries
	size    int    // targets in all
}

// entry is one line of a combo: its siblings are the plan's targets of these indexes.
type entry struct {
	weight  int
	targets []int
	shares  shares
}

// newRotation returns nil when there is nothing to take turns.
func newRotation(entries []entry, shuffle bool, turn *atomic.Uint64) *rotation {
	r := &rotation{turn: turn, shuffle: shuffle && len(entries) > 1, entries: entries}
	moving := r.shuffle
	var weights []int
	for _, e := range entries {
		moving = moving || len(e.targets) > 1
		r.size += len(e.targets)
		weights = append(weights, e.weight)
	}
	if !moving {
		return nil
	}
	r.shares = newShares(weights)
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
	r.shares.each(n, func(i int, visit uint64) { out = r.entries[i].append(out, visit) })
	return out
}

// append adds the entry's targets in the order of its n-th visit.
func (e *entry) append(out []int, n uint64) []int {
	if len(e.targets) == 1 {
		return append(out, e.targets[0])
	}
	e.shares.each(n, func(i int, _ uint64) { out = append(out, e.targets[i]) })
	return out
}

// shares are the weights of some that take turns.
type shares struct {
	weights []uint64
	total   uint64
}

// newShares divides out what all weights have in common: the same weights are no weights.
func newShares(weights []int) shares {
	var common uint64
	for _, w := range weights {
		common = gcd(uint64(w), common)
	}
	s := shares{weights: make([]uint64, len(weights))}
	for i, w := range weights {
		s.weights[i] = uint64(w) / common
		s.total += s.weights[i]
	}
	return s
}

// digits is how many places are picked by weight. Those after them follow in a circle: a request
// seldom gets so far, and picking all of many would take time by their square.
const digits = 3

// each calls next for every index in the order of turn n, each with its visit: how often it had
// been picked for that place before. It runs through 0, 1, 2, … as n does, in some order within
// each round, so that it can be the turn of what lies below.
func (s *shares) each(n uint64, next func(i int, visit uint64)) {
	var taken [digits]int
	count, left := min(digits, len(s.weights)), s.total
	for k := range count {
		digit, rest := n%left, n/left
		if left > uint64(len(s.weights)-k) { // some weigh more than others
			digit = digit * stride(left) % left
		}
		for i, w := range s.weights {
			if slices.Contains(taken[:k], i) {
				continue
			}
			if digit < w {
				next(i, rest*w+digit)
				taken[k], left, n = i, left-w, rest
				break
			}
			digit -= w
		}
	}
	if count == len(s.weights) {
		return
	}
	start := taken[count-1]
	for _, half := range [2][2]int{{start + 1, len(s.weights)}, {0, start}} {
		for i := half[0]; i < half[1]; i++ {
			if !slices.Contains(taken[:count], i) {
				next(i, n)
			}
		}
	}
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
