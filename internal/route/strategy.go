package route

import (
	"math"
	"slices"

	"omniroute/internal/config"
)

// candidate is one that may be chosen now: a connection of an entry, or an entry of a combo, which
// stands as its best eligible target does.
type candidate struct {
	kid    int32
	weight uint32
	// value is what the strategy goes by, the lower the better. Where it is not known it is NaN.
	value float64
	// failures is how often it failed lately.
	failures float64
	// stale says that the value is old, and that its turn to be looked at again has come.
	stale bool
}

// draw is what a choice may depend on beside the candidates.
type draw struct {
	// turn counts the requests. Each choice takes its digit out of it, so that whoever comes
	// first meets every second in turn.
	turn uint64
	random
}

// chooser is a strategy: it returns the kid to try next. There is at least one candidate, and they
// come in the order of the configuration. A chooser may reorder them, and keeps nothing.
type chooser func(cs []candidate, d *draw) int32

// choosers are the strategies that share. What is tried from top to bottom needs none.
var choosers = map[config.Strategy]chooser{
	config.Weighted:   weighted,
	config.RoundRobin: roundRobin,
	config.LeastBusy:  leastBusy,
	config.Fastest:    fastest,
	config.Headroom:   mostHeadroom,
	config.Cost:       cheapest,
	config.Random:     anyOne,
}

// weighted draws by weight.
func weighted(cs []candidate, d *draw) int32 {
	at := d.below(total(cs))
	for i := range cs {
		w := uint64(cs[i].weight)
		if at < w {
			return cs[i].kid
		}
		at -= w
	}
	return cs[0].kid
}

// anyOne draws without regard to weight.
func anyOne(cs []candidate, d *draw) int32 { return cs[d.below(uint64(len(cs)))].kid }

// roundRobin lets them take turns, each as often as its weight says. A heavy one's turns are spread
// over the round.
func roundRobin(cs []candidate, d *draw) int32 {
	var common uint64
	for i := range cs {
		if common = gcd(uint64(cs[i].weight), common); common == 1 {
			break
		}
	}
	sum := total(cs) / common
	at := d.turn % sum
	d.turn /= sum
	if sum > uint64(len(cs)) {
		at = at * stride(sum) % sum
	}
	for i := range cs {
		w := uint64(cs[i].weight) / common
		if at < w {
			return cs[i].kid
		}
		at -= w
	}
	return cs[0].kid
}

// leastBusy takes the one with the fewest calls in flight for its weight. Those that are alike take
// turns.
func leastBusy(cs []candidate, d *draw) int32 {
	for i := range cs {
		cs[i].value /= float64(cs[i].weight)
	}
	return lowest(cs, d)
}

// fastest takes the faster of two that are drawn, so that the crowd does not follow one lucky answer.
// One of which nothing is known counts as the median of the others. One that was slow, and has not
// been heard of for long, is looked at again.
func fastest(cs []candidate, d *draw) int32 {
	if len(cs) == 1 {
		return cs[0].kid
	}
	i := int(d.below(uint64(len(cs))))
	j := int(d.below(uint64(len(cs) - 1)))
	if j >= i {
		j++
	}
	a, b := &cs[i], &cs[j]
	if a.stale != b.stale {
		if a.stale {
			return a.kid
		}
		return b.kid
	}
	middle := math.NaN()
	if math.IsNaN(a.value) || math.IsNaN(b.value) {
		middle = median(cs)
	}
	if slower(a, b, middle) {
		return b.kid
	}
	return a.kid
}

// slower compares two by their time to first content. Whoever fails is no fast one: each recent
// failure costs as much as an answer.
func slower(a, b *candidate, middle float64) bool {
	cost := func(c *candidate) float64 {
		if math.IsNaN(c.value) {
			return middle * (1 + c.failures)
		}
		return c.value * (1 + c.failures)
	}
	x, y := cost(a), cost(b)
	if math.IsNaN(x) { // nothing is known of anybody
		return a.failures > b.failures
	}
	// Of two that are alike the one that is not known is worth a look.
	return x > y || x == y && math.IsNaN(b.value) && !math.IsNaN(a.value)
}

// mostHeadroom takes the one with the largest share of its rate limits left. One of which nothing is
// known counts as the median of the others; those that are alike take turns.
func mostHeadroom(cs []candidate, d *draw) int32 {
	middle := median(cs)
	if math.IsNaN(middle) {
		middle = 0
	}
	for i := range cs {
		if c := &cs[i]; math.IsNaN(c.value) {
			c.value = roomless(middle, c.failures)
		}
	}
	return lowest(cs, d)
}

// cheapest takes the one that costs least. One whose price is not known comes after all others;
// those that cost the same take turns.
func cheapest(cs []candidate, d *draw) int32 { return lowest(cs, d) }

// lowest takes the lowest value, and what is not known last; those that are alike take turns by weight.
func lowest(cs []candidate, d *draw) int32 {
	cs = alike(cs)
	if len(cs) == 1 {
		return cs[0].kid
	}
	return roundRobin(cs, d)
}

// alike returns those that have the lowest value.
func alike(cs []candidate) []candidate {
	least := math.Inf(1)
	for i := range cs {
		if math.IsNaN(cs[i].value) {
			cs[i].value = math.Inf(1)
		}
		least = min(least, cs[i].value)
	}
	best := cs[:0]
	for i := range cs {
		if cs[i].value == least {
			best = append(best, cs[i])
		}
	}
	return best
}

// sampled bounds how many are looked at for a median.
const sampled = 64

// median returns the median of what is known, of many that of some of them; NaN where nothing is.
func median(cs []candidate) float64 {
	var room [sampled]float64
	known := room[:0]
	step := (len(cs) + sampled - 1) / sampled
	for i := 0; i < len(cs); i += step {
		if v := cs[i].value; !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	if len(known) == 0 {
		return math.NaN()
	}
	slices.Sort(known)
	return known[(len(known)-1)/2]
}

func total(cs []candidate) (sum uint64) {
	for i := range cs {
		sum += uint64(cs[i].weight)
	}
	return sum
}

// stride is a step that visits every one of n places once and jumps far each time, so that a heavy
// one's turns are spread over the round: about n by the golden ratio, with no factor in common.
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
