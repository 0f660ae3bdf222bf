package route

import (
	"math"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
)

// measures are what strategies go by at a target; those that are not here go by nothing.
var measures = map[config.Strategy]measure{
	config.LeastBusy: calls,
	config.Fastest:   pace,
	config.Headroom:  used,
	config.Cost:      cost,
}

// measure fills in what a strategy goes by at a target, the lower the better, and NaN where nothing is
// known. It reads how things stand and changes nothing.
type measure func(p *Picker, k *kid, c *candidate)

func calls(p *Picker, k *kid, c *candidate) { c.value = k.pulse.Busy(p.now) }

func pace(p *Picker, k *kid, c *candidate) {
	took, age := k.pulse.FirstContent(p.asked.Stream, p.now)
	c.value, c.failures, c.stale = float64(took), k.pulse.Failures(p.now), age >= staleAfter
	if took == 0 {
		c.value, c.stale = math.NaN(), false
	}
}

// used is the share of its limits that is used up; what fails keeps its limits and has no room all the same.
func used(p *Picker, k *kid, c *candidate) {
	c.value, c.failures = math.NaN(), k.pulse.Failures(p.now)
	if h := p.route.Plan.Targets[k.from].Headroom; h != nil {
		if left, known := h.Headroom(p.at); known {
			c.value, c.failures = roomless(1-min(max(left, 0), 1), c.failures), 0
		}
	}
}

// roomless is a used share with the failures of late counted as use.
func roomless(used, failures float64) float64 { return 1 - (1-used)/(1+failures) }

func cost(p *Picker, k *kid, c *candidate) {
	c.value = math.NaN()
	if k.priced {
		c.value = p.bill.of(k.price, p.warm)
	}
}

// What a request is taken for where nothing is known of it.
const (
	usualPrompt   = 2000
	usualOutput   = 500
	bytesPerToken = 4
	// warmShare is how much of a session's next prompt its home has cached.
	warmShare = 0.9
)

// bill is how many tokens a request is expected to cost.
type bill struct{ prompt, output float64 }

func billOf(ask *failover.Ask) bill {
	needs := ask.Needs()
	b := bill{float64(needs.Input), usualOutput}
	if b.prompt <= 0 {
		if b.prompt = float64(ask.Bytes) / bytesPerToken; b.prompt <= 0 {
			b.prompt = usualPrompt
		}
	}
	if needs.Output > 0 {
		b.output = min(b.output, float64(needs.Output))
	}
	return b
}

// of returns what it comes to at a price, in millionths of a dollar.
func (b bill) of(p catalog.Price, warm bool) float64 {
	input := p.Input
	if warm {
		input += warmShare * (p.Cached - p.Input)
	}
	return b.prompt*input + b.output*p.Output
}

// What fastest waits for before it looks again at a target that others were preferred to: as long
// since it was last heard of, and as many requests that might have gone there.
const (
	staleAfter = 30 * time.Second
	staleTurns = 40
)

// weigh makes a candidate of every kid that has an open target, in their order.
func (p *Picker) weigh(n *node, open *failover.Open) []candidate {
	cs := p.room[:0]
	home := p.states[n.id].home
	for k := range n.kids {
		kid := &n.kids[k]
		if kid.node == nil {
			if !open.Has(kid.from) {
				continue
			}
			cs = append(cs, candidate{kid: int32(k), weight: uint32(kid.weight)})
			if n.measure != nil {
				p.warm = home == k
				n.measure(p, kid, &cs[len(cs)-1])
			}
			continue
		}
		if c, ok := p.best(n, kid, home == k, open); ok {
			c.kid = int32(k)
			cs = append(cs, c)
		}
	}
	return cs
}

// best makes a candidate of a kid that is a node, by the best of its open targets, false when none is.
func (p *Picker) best(n *node, from *kid, warm bool, open *failover.Open) (best candidate, found bool) {
	best = candidate{weight: uint32(from.weight), value: math.NaN()}
	p.warm = warm
	for i := from.from; i < from.to; i++ {
		if !open.Has(i) {
			continue
		}
		if n.measure == nil {
			return best, true
		}
		c := &p.spare
		*c = candidate{weight: best.weight}
		n.measure(p, &p.route.leaves[i], c)
		if !found || c.better(&best) {
			best = *c
		}
		found = true
	}
	return best, found
}

// better reports whether a node stands by one of its targets rather than by another: what is known goes first, and
// of two that are not known the one that failed less.
func (c *candidate) better(than *candidate) bool {
	if math.IsNaN(than.value) {
		return !math.IsNaN(c.value) || c.failures < than.failures
	}
	return c.value*(1+c.failures) < than.value*(1+than.failures)
}
