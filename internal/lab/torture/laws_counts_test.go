package torture

import (
	"fmt"
	"slices"
	"time"

	"omniroute/resilience"
)

// counts is what the world itself counts, for the laws that name numbers.
type counts struct {
	waits map[resilience.Key]int             // by failure domain: long waits since the last content
	fails map[resilience.Key][]time.Duration // by target: failures that may count towards its lock
	sent  map[resilience.Key]int             // by failure domain: attempts since the run of failures began
}

func newCounts() counts {
	return counts{map[resilience.Key]int{}, map[resilience.Key][]time.Duration{}, map[resilience.Key]int{}}
}

// count takes in a moment's reports, before the laws look at it.
func (n *node) count(m *moment) {
	for i := range m.reports {
		r := &m.reports[i]
		d := r.called.domain
		switch _, bad := r.bad(); {
		case r.good():
			n.counts.waits[d] = 0
		case r.what == waited:
			n.counts.waits[d]++
		case bad:
			n.counts.fails[r.key] = append(n.counts.fails[r.key], n.w.mono)
		}
	}
	for i := range m.changes {
		c := &m.changes[i]
		if c.after == nil {
			continue
		}
		switch c.id.Layer {
		case resilience.LayerModel: // a run that moves here brings its failures along
			if !slices.ContainsFunc(m.reports, func(r report) bool { return r.key == c.id.Key }) {
				for range max(c.after.Failures, n.policy(c.id).Lockout.MaxAttempts) {
					n.counts.fails[c.id.Key] = append(n.counts.fails[c.id.Key], n.w.mono)
				}
			}
		case resilience.LayerBreaker:
			if (c.before == nil || len(c.before.Run) == 0) && n.counts.waits[c.id.Key] == 0 { // long waits begin a run too
				n.counts.sent[c.id.Key] = 0 // what the same moment sends comes after it
			}
			if b := c.before; b != nil && b.out && c.after.out && sameStart(b, c.after) {
				c.after.proofs = b.proofs
				for i := range m.reports {
					r := &m.reports[i]
					if r.good() && r.hazy { // nobody saw which round it began in
						c.after.proofs = c.after.Successes
						break
					}
					if r.good() && n.inDomain(c.id, r.permit) && r.begun >= b.setOrd {
						c.after.proofs++
					}
				}
			}
		}
	}
}

// sent counts what a moment has sent.
func (n *node) sent(m *moment) {
	for _, p := range m.taken {
		n.counts.sent[p.called.domain]++
	}
}

// suspicionHasGround is R9: failure_threshold attempts have waited too long, and nothing got content meanwhile.
func suspicionHasGround(n *node, m *moment, c *change) string {
	b, a := c.before, c.after
	if c.id.Layer != resilience.LayerBreaker || a == nil || !a.Suspected || b != nil && b.Suspected || n.byHand(m, c) {
		return ""
	}
	if got, want := n.counts.waits[c.id.Key], n.policy(c.id).Breaker.FailureThreshold; got < want {
		return fmt.Sprintf("%d attempts have waited too long since the last content, want %d", got, want)
	}
	return ""
}

// opensAtThreshold is section 2: failure_threshold failures in a row open a breaker, unless they are less than
// a third of what was sent meanwhile.
func opensAtThreshold(n *node, m *moment, r *report) string {
	v, bad := r.bad()
	id := n.idsOf(r.key)[0]
	a := n.current(m, id)
	if !bad || r.maybe || v.Scope != resilience.ScopeProvider || len(m.reports) > 1 || a == nil || a.out || failures(a) <= failures(n.gates[id]) {
		return ""
	}
	if want := n.policy(id).Breaker.FailureThreshold; a.Failures >= want && n.counts.sent[id.Key] <= 3*a.Failures {
		return fmt.Sprintf("it is not open after %d failures of %d attempts, want it to be after %d", a.Failures, n.counts.sent[id.Key], want)
	}
	return ""
}

// closesByThreshold is section 2: success_threshold probes close a HALF_OPEN breaker.
func closesByThreshold(n *node, m *moment, c *change) string {
	b := c.before
	if c.id.Layer != resilience.LayerBreaker || b == nil || !b.out || b.Suspected || c.after != nil && c.after.out || n.byHand(m, c) {
		return ""
	}
	proofs := b.proofs
	for i := range m.reports {
		r := &m.reports[i]
		if sole, one := b.sole(); r.hazy || one && sole != r.key.Model {
			return "" // a neighbour's success closes it at once
		}
		if r.good() && n.inDomain(c.id, r.permit) && r.begun >= b.setOrd {
			proofs++
		}
	}
	if want := n.policy(c.id).Breaker.SuccessThreshold; proofs < want {
		return fmt.Sprintf("%d probes have succeeded, want %d", proofs, want)
	}
	return ""
}

// locksInWindow is section 2: only failures inside attempt_window count towards a lock.
func locksInWindow(n *node, m *moment, c *change) string {
	r, v, bad := m.sole()
	b, a := c.before, c.after
	if !bad || c.id.Layer != resilience.LayerModel || a == nil || a.State != "locked" || b != nil && b.State == "locked" || v.Scope != resilience.ScopeModel || r.key != c.id.Key || n.byHand(m, c) {
		return ""
	}
	if v.Certain || v.Quarantine || n.hint(v, r.key) > 0 {
		return ""
	}
	p, inside := n.policy(c.id).Lockout, 0
	for _, at := range n.counts.fails[c.id.Key] {
		if n.w.mono-at <= p.AttemptWindow+slack {
			inside++
		}
	}
	if inside < p.MaxAttempts {
		return fmt.Sprintf("%d failures in %v, want %d", inside, p.AttemptWindow, p.MaxAttempts)
	}
	return ""
}
