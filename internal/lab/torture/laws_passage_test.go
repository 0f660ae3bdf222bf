package torture

import (
	"omniroute/internal/route"
	"omniroute/resilience"
)

// mustPass reports whether no gate on the way to a target has a reason to refuse a request: each of
// them is clean, due with no probe in flight, governed by an OPEN breaker, or has to let an early probe,
// a neighbour's probe or a recheck through.
func (n *node) mustPass(m *moment, k resilience.Key, alone bool) bool {
	if n.carried(k) {
		return false
	}
	ids := n.idsOf(k)
	breaker := n.current(m, ids[0])
	open := breaker != nil && breaker.out
	for i, id := range ids {
		g := n.current(m, id)
		switch {
		case g == nil || !g.out || i > 0 && n.forgotten(id, g):
		case open && g.transient() && (i == 1 || i == 2): // V5
		case i == 0 && n.w.mono < g.paused+slack: // the last probe was overtaken a moment ago
			return false
		case n.w.mono-slack >= g.until:
		case n.recheckDue(k, g, alone):
		case i == 0 && n.earlyDue(k, g):
		default:
			return false
		}
	}
	return true
}

// recheckDue is V10: a long exclusion lets a request through every so often.
func (n *node) recheckDue(k resilience.Key, g *gate, alone bool) bool {
	p := n.variant.policyOf(k).Recheck
	if p.After < 0 || !g.Quarantined && g.until-g.since <= p.After+slack {
		return false
	}
	every := p.After
	if alone {
		every = min(every, p.Alone)
	}
	return n.w.mono-max(g.since, g.rechecked) >= every+slack
}

// earlyDue reports whether an OPEN breaker has to let an early probe through, or one of a neighbour of
// the one model that has failed.
func (n *node) earlyDue(k resilience.Key, g *gate) bool {
	sole, one := g.sole()
	return one && sole != k.Model || g.EarlyMs != 0 && n.w.mono >= g.early+slack
}

// refusesForAReason holds a refusal to what is known: traffic is turned away by an exclusion, and by
// nothing else.
func (n *node) refusesForAReason(m *moment, k resilience.Key, t *resilience.Target, x resilience.Exclusion, out bool) {
	if out && n.mustPass(m, k, false) {
		n.w.broke("2 who may pass is let through", "%v is refused: %+v", k, x)
	}
	if x, _, _ := t.Standing(true); out && x.Layer != resilience.LayerNone && n.mustPass(m, k, true) {
		n.w.broke("V10 a request without another target rechecks sooner", "%v is refused: %+v", k, x)
	}
}

// operatorsEnd is V10: an operator's exclusion ends by its time, or when it is taken back.
func (n *node) operatorsEnd(k resilience.Key, x resilience.Exclusion) {
	if x.Layer != resilience.LayerOperator {
		return
	}
	for o, until := range n.operator {
		if o.Contains(k) && n.w.mono-slack < until {
			return
		}
	}
	n.w.broke("V10 an operator's exclusion ends", "%v is still out: %+v", k, x)
}

// outage is what was known when the store failed.
type outage struct {
	clean    map[resilience.Key]bool // targets against which nothing was known
	troubled map[resilience.Key]bool // failure domains that were reported of since
}

// storeFailed remembers what was well when the store failed.
func (n *node) storeFailed(m *moment) {
	if n.outage == nil || m.configured || m.restarted {
		n.outage = &outage{map[resilience.Key]bool{}, map[resilience.Key]bool{}}
		for _, k := range n.variant.keys {
			n.outage.clean[k] = !m.configured
			for _, id := range n.idsOf(k) {
				n.outage.clean[k] = n.outage.clean[k] && n.gates[id] == nil
			}
		}
	}
	for i := range m.reports {
		r := &m.reports[i]
		n.outage.troubled[r.called.domain], n.outage.troubled[n.variant.domainOf(r.key)] = true, true
	}
}

// routesOn is P3: what was well when the store failed, and of which nothing was reported since, is still in
// service.
func (n *node) routesOn(m *moment, k resilience.Key, x resilience.Exclusion, out bool) {
	if !n.blind {
		n.outage = nil
		return
	}
	n.storeFailed(m)
	if out && x.Layer != resilience.LayerOperator && n.outage.clean[k] && !n.outage.troubled[n.variant.domainOf(k)] {
		n.w.broke("P3 when the store fails routing goes on", "%v is refused: %+v", k, x)
	}
}

// goesOnAlone is K3: a node that has lost the others waits for no probe but its own.
func (n *node) goesOnAlone(k resilience.Key, x resilience.Exclusion, out bool) {
	if out && x.Held && n.engine.Cluster().State == resilience.ClusterIsolated && !n.carried(k) {
		n.w.broke("K3 an isolated node goes on by itself", "%v waits for a probe, but none of its own is in flight: %+v", k, x)
	}
}

// foretold is A4: what a request would try first, by the explanation.
func (n *node) foretold(to *route.Route, q route.Question) (resilience.Key, bool) {
	if n.way != nil {
		return resilience.Key{}, false // the right to probe is asked for when a request comes
	}
	all, _ := route.Explain(to, q, n.w.clock.now())
	for _, c := range all {
		if c.Eligible {
			return resilience.Key{Provider: c.Provider, Connection: c.Connection, Model: c.Model}, true
		}
	}
	return resilience.Key{}, false
}

// asForetold holds the beginning of a request to its explanation.
func (f *flight) asForetold(k resilience.Key) {
	records := f.req.Records()
	switch {
	case len(records) == 0:
		f.n.w.broke("A4 an explanation says what a request would do", "request %d was to go to %v and goes nowhere", f.number, k)
	case records[0].Key != k:
		f.n.w.broke("A4 an explanation says what a request would do", "request %d was to go to %v and goes to %v", f.number, k, records[0].Key)
	}
}
