package torture

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// dials is what is known of the dial failures at an endpoint.
type dials struct {
	first int // ord
	last  time.Duration
	maybe bool // one of them, or an answer since, may have been a recheck's, which is heard by nobody
}

// answers reports whether a failure can only have come as an answer.
func answers(v resilience.Verdict) bool {
	return v.Kind != resilience.KindNetwork && v.Kind != resilience.KindTimeout && v.Kind != resilience.KindCanceled && !v.Dial && v.Scope != resilience.ScopeLocal
}

const related = 5 * time.Second

// localOutage is A10: dial failures at two unrelated endpoints within 5 s, without an answer since the
// older run of them began, are our own network's; what they set is undone.
func (n *node) localOutage(m *moment) {
	w := n.w
	for i := range m.reports {
		r := &m.reports[i]
		v, bad := r.bad()
		if r.good() || r.what == failure && (!r.recheck || r.after) && answers(r.v) {
			n.answered, n.unsure = w.ord, r.maybe
			if d := n.dials[r.called.endpoint]; r.maybe && d != nil {
				d.maybe = true // its run may go on
			} else {
				delete(n.dials, r.called.endpoint)
			}
			for _, g := range n.gates {
				g.dial, g.dialFresh = nil, false
			}
			for k := range m.changes {
				if a := m.changes[k].after; a != nil {
					a.dial, a.dialFresh = nil, false
				}
			}
			continue
		}
		if !bad || !v.Dial || v.Scope != resilience.ScopeProvider || !v.Kind.Transient() {
			continue
		}
		n.unsure = n.unsure || !n.variant.has(r.key) // nobody knows where a removed connection was

		here := r.called.endpoint
		d := n.dials[here]
		if d == nil {
			d = &dials{first: w.ord}
			n.dials[here] = d
		}
		d.last, d.maybe = w.mono, d.maybe || r.maybe
		if n.blind || m.hazy {
			continue // what it did to the gates is not known
		}
		if m.localBefore && n.engine.LocalOutage() && len(m.reports) == 1 {
			n.nothingTrips(m)
		}
		if m.localBefore || n.unsure {
			continue
		}
		involved, certain := []string{here}, !d.maybe
		for at, o := range n.dials {
			if at == here || w.mono-o.last > related {
				continue
			}
			certain = certain && !o.maybe
			if min(d.first, o.first) > n.answered {
				involved = append(involved, at)
			}
		}
		if !certain {
			continue
		}
		if out := n.engine.LocalOutage(); out != (len(involved) > 1) {
			w.broke("A10 two endpoints that cannot be dialled are our own network's", "dial failures at %v: local outage is %v", involved, out)
		}
		if len(involved) > 1 {
			n.undone(m, involved)
		}
	}
}

// nothingTrips: while our own network is out, dial failures count against nobody.
func (n *node) nothingTrips(m *moment) {
	for i := range m.changes {
		if c := &m.changes[i]; failures(c.after) > failures(c.before) || c.after != nil && c.after.out && (c.before == nil || !c.before.out) {
			n.w.broke("A10 nothing trips while our own network is out", "%v %v was %v and is %v", c.id.Layer, c.id.Key, c.before, c.after)
		}
	}
}

// undone: what the first dial failures set is gone.
func (n *node) undone(m *moment, involved []string) {
	for id, g := range n.gates {
		if g.dial == nil && !g.dialFresh || !slices.Contains(involved, n.variant.endpointOf(id.Key)) {
			continue
		}
		if a := n.current(m, id); level(a) != level(g.dial) || failures(a) != failures(g.dial) || (a != nil && a.out) != (g.dial != nil && g.dial.out) {
			n.w.broke("A10 what a local outage set is undone", "%v %v was %v before it, then %v, and is %v", id.Layer, id.Key, g.dial, g, a)
		}
	}
}

// rememberDial keeps what a gate was before dial failures alone changed it.
func (n *node) rememberDial(m *moment, c *change) {
	if c.after == nil {
		return
	}
	c.after.dial, c.after.dialFresh = nil, false
	if len(m.reports) != 1 || m.reports[0].maybe || len(m.resets) > 0 || m.configured || m.localBefore || n.engine.LocalOutage() {
		return
	}
	r := &m.reports[0]
	v, bad := r.bad()
	if !bad || !v.Dial || v.Scope != resilience.ScopeProvider || !v.Kind.Transient() || !n.below(c.id, r.key) {
		return
	}
	switch b := c.before; {
	case b == nil:
		c.after.dialFresh = true
	case b.dial != nil || b.dialFresh:
		c.after.dial, c.after.dialFresh = b.dial, b.dialFresh
	case !b.out:
		c.after.dial = b
	}
}
