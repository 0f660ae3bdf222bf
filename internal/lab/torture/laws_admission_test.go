package torture

import (
	"fmt"
	"slices"

	"omniroute/resilience"
)

// granted notes a permit in the moment that it was taken.
func (n *node) granted(p *permit) {
	p.placed()
	p.begun, p.at = n.w.ord+1, n.w.mono
	p.lease = n.w.mono + n.variant.policyOf(p.key).Breaker.ProbeLease
	n.now.taken = append(n.now.taken, p)
	n.permits = append(n.permits, p)
}

// mayGo holds an attempt that has just begun to the laws of admission.
func (n *node) mayGo(m *moment, p *permit) {
	w := n.w
	for k, until := range n.operator {
		if k.Contains(p.key) && w.mono < until {
			w.broke("V10 an operator's exclusion admits nobody", "an attempt went to %v", p.key)
		}
	}
	if n.way != nil {
		n.oneProbeOfAll(p)
		return
	}
	if n.blind || m.hazy || m.configured || n.journal.down || !n.variant.has(p.key) {
		return
	}
	ids := n.idsOf(p.key)
	p.maybe = p.maybe && n.recheckable(m, p.key)
	was, is := n.gates[ids[0]], n.current(m, ids[0])
	open := was != nil && was.out || is != nil && is.out
	for i, id := range ids {
		b, a := n.gates[id], n.current(m, id)
		if b == nil || a == nil || !b.out || !a.out || !sameStart(a, b) || i > 0 && n.forgotten(id, b) {
			continue // it was clean before or after, or is another exclusion
		}
		governed := open && b.transient() && (i == 1 || i == 2)
		live := b.live(w.mono) && a.live(w.mono)
		switch {
		case p.resort:
			if a.Quarantined && n.mayRecheck(b, a, p) != "" {
				w.broke("R7 a last resort never passes a quarantine", "%v %v is %v", id.Layer, id.Key, a)
			}
		case governed && live:
			continue
		case i == 0 && live:
			if why := n.mayProbeEarly(b, a, p); why != "" {
				w.broke("2 an OPEN breaker lets single early probes pass at their times", "%v: %s", p.key, why)
			}
		case live:
			if why := n.mayRecheck(b, a, p); why != "" {
				w.broke("A1 nobody passes a live exclusion", "%v went by %v %v, which is %v: %s", p.key, id.Layer, id.Key, b, why)
			}
			a.rechecked = w.mono
		}
		if !p.asProbe {
			w.broke("K2 who passes an exclusion is a probe", "%v went freely by %v %v, which is %v", p.key, id.Layer, id.Key, b)
		}
		if governed {
			continue
		}
		n.oneProbe(id, a, p, i == 0 && !live)
	}
}

// recheckable reports whether an exclusion on the way to a target is long enough to be rechecked.
func (n *node) recheckable(m *moment, k resilience.Key) bool {
	after := n.variant.policyOf(k).Recheck.After
	for _, id := range n.idsOf(k) {
		for _, g := range []*gate{n.gates[id], n.current(m, id)} { // what the moment has made longer, too
			if g.live(n.w.mono-slack) && after >= 0 && (g.Quarantined || g.until-g.since > after-slack) {
				return true
			}
		}
	}
	return false
}

// oneProbe: at most half_open_requests probes of a HALF_OPEN breaker are in flight, and one of any
// other exclusion.
func (n *node) oneProbe(id resilience.RecordID, g *gate, p *permit, halfOpen bool) {
	most := 1
	if halfOpen {
		most = n.policy(id).Breaker.HalfOpenRequests
	}
	others := 0
	for _, o := range n.permits {
		if o == p || o.settled || o.content || n.w.mono >= o.lease {
			continue
		}
		if slices.Contains(o.holds, hold{id, g.setOrd}) {
			others++
		}
	}
	if others >= most {
		n.w.broke("K2 never more probes than allowed", "%v has %d in flight and one more was let through to %v", id.Key, others, p.key)
	}
	p.holds = append(p.holds, hold{id, g.setOrd})
}

// mayProbeEarly says why a request must not pass an OPEN breaker, "" where it may.
// What was reported a moment before counts already.
func (n *node) mayProbeEarly(b, a *gate, p *permit) string {
	sole, one := a.sole()
	neighbour := one && sole != p.key.Model
	early := a.early
	switch {
	case neighbour:
		return ""
	case a.EarlyMs != 0 && n.w.mono >= early-slack:
		return ""
	case n.mayRecheck(b, a, p) == "":
		return ""
	case a.EarlyMs == 0:
		return "there are no early probes"
	}
	return fmt.Sprintf("the next early probe may pass at %v", early)
}

// mayRecheck says why a long exclusion is not due for a recheck, "" where it is. What was reported a moment before may
// have made it long.
func (n *node) mayRecheck(b, a *gate, p *permit) string {
	policy := n.variant.policyOf(p.key)
	every := policy.Recheck.After
	if every < 0 || !b.Quarantined && !a.Quarantined && max(b.until-b.since, a.until-a.since) <= every {
		return "it is not long enough to be rechecked"
	}
	if p.alone {
		every = min(every, policy.Recheck.Alone)
	}
	if gone := n.w.mono - max(b.since, b.rechecked); gone < every-slack {
		return fmt.Sprintf("only %v have gone since the last recheck", gone)
	}
	return ""
}

// carried reports whether an attempt in flight may hold a slot on the way to a target.
func (n *node) carried(k resilience.Key) bool {
	ids := n.idsOf(k)
	for _, p := range n.permits {
		if p.settled || p.content || !p.asProbe || n.w.mono > p.lease {
			continue
		}
		if p.called.domain == ids[0].Key {
			return true
		}
		for i, id := range n.idsOf(p.key) {
			if i > 0 && id == ids[i] {
				return true
			}
		}
	}
	return false
}
