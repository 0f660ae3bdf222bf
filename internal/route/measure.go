package route

import (
	"math"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
)

// measure returns what a strategy goes by at a target, the lower the better, and NaN where nothing
// is known. It reads how things stand and changes nothing.
type measure func(p *Picker, t *failover.Target, now time.Time) float64

// measures are those of the strategies that go by any.
var measures = map[config.Strategy]measure{
	config.LeastBusy: func(_ *Picker, t *failover.Target, now time.Time) float64 { return t.Pulse.Busy(now) },
	config.Fastest: func(p *Picker, t *failover.Target, now time.Time) float64 {
		took, _, known := t.Pulse.FirstContent(p.asked.Stream, now)
		if !known {
			return math.NaN()
		}
		return float64(took)
	},
	config.Headroom: func(_ *Picker, t *failover.Target, now time.Time) float64 {
		if t.Headroom == nil {
			return math.NaN()
		}
		left, known := t.Headroom.Headroom(now)
		if !known {
			return math.NaN()
		}
		return 1 - min(max(left, 0), 1)
	},
	config.Cost: func(p *Picker, t *failover.Target, _ time.Time) float64 {
		up := t.Data.(*Upstream)
		if !up.Priced {
			return math.NaN()
		}
		return price(up.Price, p.ask, p.warm)
	},
}

// What a request is taken for where nothing is known of it.
const (
	usualPrompt   = 2000
	usualOutput   = 500
	bytesPerToken = 4
	// warmShare is how much of a session's next prompt its home has cached.
	warmShare = 0.9
)

// price estimates what a request costs, in millionths of a dollar.
func price(p catalog.Price, ask *failover.Ask, warm bool) float64 {
	needs := ask.Needs()
	prompt, output := float64(needs.Input), float64(usualOutput)
	if prompt <= 0 {
		if prompt = float64(ask.Bytes) / bytesPerToken; prompt <= 0 {
			prompt = usualPrompt
		}
	}
	if needs.Output > 0 {
		output = min(output, float64(needs.Output))
	}
	input := p.Input
	if warm {
		input += warmShare * (p.Cached - p.Input)
	}
	return prompt*input + output*p.Output
}

// What fastest waits for before it looks again at a target that others were preferred to: as long
// since it was last heard of, and as many requests that might have gone there.
const (
	staleAfter = 30 * time.Second
	staleTurns = 40
)

// weigh makes a candidate of a kid by its best target that is open, and returns false when none is.
func (p *Picker) weigh(n *node, k int, open *failover.Open, now time.Time) (candidate, bool) {
	kid := &n.kids[k]
	p.warm = p.states[n.id].home == k
	c := candidate{kid: k, weight: kid.weight, value: math.NaN()}
	found := false
	for i := kid.from; i < kid.to; i++ {
		if !open.Has(i) {
			continue
		}
		t := &p.route.Plan.Targets[i]
		if n.measure == nil {
			return c, true
		}
		v, failures := n.measure(p, t, now), 0.0
		if n.way != config.LeastBusy { // there they are counted already
			failures = t.Pulse.Failures(now)
		}
		if !found || v*(1+failures) < c.value*(1+c.failures) || math.IsNaN(c.value) && !math.IsNaN(v) {
			c.value, c.failures = v, failures
			if n.way == config.Fastest {
				_, last, known := t.Pulse.FirstContent(p.asked.Stream, now)
				c.stale = known && now.Sub(last) >= staleAfter
			}
		}
		found = true
	}
	return c, found
}
