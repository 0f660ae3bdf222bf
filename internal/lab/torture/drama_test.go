package torture

import (
	"fmt"
	"math/rand/v2"
	"time"

	"omniroute/resilience"
)

// A drama is a sequence that chance hardly ever brings about: each of its scenes is a step that anybody could
// take, in the order that a law is about.

// stubborn is a model that fails again whenever its exclusion is due.
func (n *node) stubborn(key resilience.Key, r *rand.Rand) {
	kinds := []resilience.Kind{resilience.KindRateLimit, resilience.KindPermission, resilience.KindModelOverloaded, resilience.KindServerError}
	v := resilience.Verdict{Scope: resilience.ScopeModel, Kind: kinds[r.IntN(4)], RetrySame: true, RetryElsewhere: true}
	rounds := 4 + r.IntN(10)
	var again func()
	again = func() {
		if p := n.grant(key, asOnlyTarget); p != nil {
			n.later(ms(r, 100), func() { n.settle(p, failure, v) })
		}
		if rounds--; rounds == 0 {
			return
		}
		n.later(150*time.Millisecond, func() {
			x, _ := n.engine.Target(key).Check()
			n.later(x.RetryAfter+ms(r, 50), again)
		})
	}
	again()
}

// belated is what an attempt of before an exclusion says of it, while another one is on its way: a graver cause,
// or that a person must act.
func (n *node) belated(key resilience.Key, r *rand.Rand) {
	before := n.grant(key, asOneOfMany)
	if before == nil {
		return
	}
	kinds := []resilience.Kind{resilience.KindRateLimit, resilience.KindQuotaExhausted}
	n.later(ms(r, 50), func() {
		n.tell(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: kinds[r.IntN(2)]})
	})
	var beside *permit
	if r.IntN(2) == 0 {
		n.later(100*time.Millisecond, func() { beside = n.grant(key, asLastResort) })
	}
	n.later(100*time.Millisecond+ms(r, 400), func() {
		n.settle(before, failure, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindBilling, Quarantine: r.IntN(2) == 0})
	})
	n.later(600*time.Millisecond, func() {
		if beside != nil {
			n.settle(beside, success, resilience.Verdict{})
		}
	})
	if r.IntN(3) == 0 {
		n.later(time.Second, func() { n.crash(ms(r, 250), n.number, r) })
	}
}

// tell reports a failure without a permit.
func (n *node) tell(key resilience.Key, v resilience.Verdict) {
	n.step(fmt.Sprintf("is told of %v without a permit: %s", key, words(v)), func() {
		n.heard(&permit{n: n, key: key, begun: n.w.ord + 1, at: n.w.mono, bare: true, asProbe: true}, failure, v)
		n.engine.RecordFailure(key, v)
	})
}

// flicker is dial failures at one endpoint and, some time later, at another.
func (n *node) flicker(key resilience.Key, r *rand.Rand) {
	v := resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindNetwork, Dial: true, RetryElsewhere: true}
	n.tell(key, v)
	other := n.variant.keys[r.IntN(len(n.variant.keys))]
	n.later(4*time.Second+ms(r, 6000), func() { n.tell(other, v) })
}

// split is a node that loses the others during its probe, or dies, and comes back when another one has probed.
func (n *node) split(key resilience.Key, r *rand.Rand) {
	w := n.w
	if len(w.nodes) < 2 {
		return
	}
	w.end = max(w.end, w.mono+2*time.Minute)
	n.tell(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: ms(r, 2000)})
	n.insist(key, 2*time.Second, 10, func(p *permit) {
		if !p.asProbe { // somebody else has found out
			n.settle(p, neutral, resilience.Verdict{})
			return
		}
		if r.IntN(3) == 0 {
			n.crash(ms(r, 250), n.number, r)
		} else {
			n.cut(true)
			n.later(ms(r, 1000), func() { n.settle(p, []what{success, failure}[r.IntN(2)], verdict(r)) })
		}
		other := w.nodes[(n.id+1)%len(w.nodes)]
		other.insist(key, time.Second, 100, func(p *permit) {
			other.later(ms(r, 100), func() {
				other.settle(p, failure, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit})
			})
			w.in(ms(r, 3000), func() { n.cut(false) })
		})
	})
}

// insist asks for a permit until one is granted.
func (n *node) insist(key resilience.Key, every time.Duration, times int, then func(*permit)) {
	n.later(every, func() {
		p := n.grant(key, asOneOfMany)
		switch {
		case p != nil:
			then(p)
		case times > 0:
			n.insist(key, min(every, 250*time.Millisecond), times-1, then)
		}
	})
}

// discord is two nodes with different policies: one is told of a long exclusion, the other rests for less, forgets
// sooner and fails again.
func (n *node) discord(key resilience.Key, r *rand.Rand) {
	w := n.w
	if len(w.nodes) < 2 {
		return
	}
	w.end = max(w.end, w.mono+time.Minute)
	n.reload(usual)
	kinds := []resilience.Kind{resilience.KindRateLimit, resilience.KindQuotaExhausted, resilience.KindAuth}
	v := resilience.Verdict{Scope: resilience.ScopeConnection, Kind: kinds[r.IntN(3)], RetryAfter: time.Hour}
	v.Quarantine = v.Kind == resilience.KindAuth
	other := w.nodes[(n.id+1)%len(w.nodes)]
	other.later(3*time.Second, func() { other.tell(key, v) })
	again := resilience.Verdict{Scope: resilience.ScopeConnection, Kind: kinds[r.IntN(2)]}
	for range 3 {
		n.insist(key, 5*time.Second+ms(r, 30_000), 4, func(p *permit) {
			n.later(ms(r, 300), func() { n.settle(p, []what{failure, neutral}[r.IntN(2)], again) })
		})
	}
}

// estranged is a node that learns something while it has lost the others, of what they know too.
func (n *node) estranged(key resilience.Key, r *rand.Rand) {
	w := n.w
	if len(w.nodes) < 2 {
		return
	}
	w.end = max(w.end, w.mono+time.Minute)
	v := resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Second}
	w.nodes[(n.id+1)%len(w.nodes)].tell(key, v)
	n.later(ms(r, 2000), func() { n.cut(true) })
	n.later(2*time.Second+ms(r, 1000), func() {
		n.tell(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted})
	})
	n.later(3*time.Second+ms(r, 8000), func() { n.cut(false) })
}
