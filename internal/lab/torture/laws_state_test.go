package torture

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"omniroute/resilience"
)

func byKey(a, b resilience.Key) int { return strings.Compare(a.String(), b.String()) }

// check holds a moment to every law.
func (n *node) check(m *moment) {
	w := n.w
	n.count(m)
	n.sent(m)
	for i := range m.changes {
		w.say("    %v %v is %v", m.changes[i].id.Layer, m.changes[i].id.Key, m.changes[i].after)
	}
	if n.way == nil && !n.blind && !m.hazy {
		for i := range m.changes {
			c := &m.changes[i]
			if m.restarted || m.configured {
				continue
			}
			for _, l := range gateLaws {
				if bad := l.holds(n, m, c); bad != "" {
					w.broke(l.law, "node %d, %v %v: %s\n  before: %v\n  after:  %v", n.id, c.id.Layer, c.id.Key, bad, c.before, c.after)
				}
			}
		}
		for i := range m.reports {
			if m.reports[i].hazy || !n.variant.has(m.reports[i].key) {
				continue
			}
			for _, l := range reportLaws {
				if bad := l.holds(n, m, &m.reports[i]); bad != "" {
					w.broke(l.law, "node %d, %v: %s", n.id, m.reports[i].key, bad)
				}
			}
		}
		n.readsWriteNothing(m)
		n.resetsClean(m)
		n.onlyKnown(m)
		n.credentialsEnd(m)
	}
	if n.way == nil {
		n.localOutage(m)
	}
	if w.extra != nil {
		if bad := w.extra(m); bad != "" {
			w.broke("extra", "%s", bad)
		}
	}
	for _, p := range m.taken {
		n.mayGo(m, p)
	}
	for i, k := range n.variant.keys {
		n.stands(m, k, n.targets[i])
	}
	n.placesAreCounted()
	n.nobodyWaitsTooLong()
	n.nobodyHangsInVain()
	n.roomHasWalls()
}

// readsWriteNothing is A3 and P5: what is only looked at changes nothing, and neither does what goes
// well while nothing is known.
func (n *node) readsWriteNothing(m *moment) {
	if m.reading && len(m.changes) > 0 && !m.swept(n) {
		n.w.broke("A3 reads change nothing", "%v was %v and is %v", m.changes[0].id, m.changes[0].before, m.changes[0].after)
	}
	for i := range m.changes {
		if c := &m.changes[i]; c.before == nil && c.after != nil {
			for k := range m.reports {
				if _, bad := m.reports[k].bad(); bad || m.reports[k].what == waited || len(n.gates) > 0 {
					return
				}
			}
			n.w.broke("P5 nothing is written while all is well", "%v is %v", c.id, c.after)
		}
	}
}

// swept reports whether all that a moment has changed was forgotten.
func (m *moment) swept(n *node) bool {
	return !slices.ContainsFunc(m.changes, func(c change) bool {
		return !n.forgotten(c.id, c.before) && !(c.id.Layer == resilience.LayerBreaker && alike(c.before, c.after))
	})
}

// resetsClean: a reset leaves nothing of what it names.
func (n *node) resetsClean(m *moment) {
	for _, k := range m.resets {
		for id := range n.gates {
			if g := n.current(m, id); k.Contains(id.Key) && g != nil && (g.out || g.Failures > 0 || g.Level > 0) {
				n.w.broke("V8 a reset clears", "%v %v is %v", id.Layer, id.Key, g)
			}
		}
	}
}

// onlyKnown is P4: what is no longer configured has no state.
func (n *node) onlyKnown(m *moment) {
	if !m.configured && !m.restarted {
		return
	}
	for id := range n.gates {
		g := n.current(m, id)
		if g != nil && (!n.variant.has(id.Key) || id.Layer == resilience.LayerBreaker && n.variant.domainOf(id.Key) != id.Key) {
			n.w.broke("P4 a removed provider or connection takes its state along", "%v %v is %v", id.Layer, id.Key, g)
		}
	}
}

// credentialsEnd is V8: another secret ends what was said of the old one.
func (n *node) credentialsEnd(m *moment) {
	for id := range n.gates {
		g := n.current(m, id)
		k := resilience.Key{Provider: id.Key.Provider, Connection: id.Key.Connection}
		if id.Layer == resilience.LayerConnection && id.Key == k && n.credentialed[k] == n.w.ord && g != nil && g.out && (g.Quarantined || g.Kind == resilience.KindAuth) {
			n.w.broke("V8 a changed credential ends a quarantine", "%v is %v", k, g)
		}
	}
}

// stands holds what a target says of itself to what is known of its gates.
func (n *node) stands(m *moment, k resilience.Key, t *resilience.Target) {
	w := n.w
	x, out, asProbe := t.Standing(false)
	for o, until := range n.operator {
		if o.Contains(k) && w.mono < until && (!out || x.Layer != resilience.LayerOperator) {
			w.broke("V10 an operator's exclusion stands", "%v of %v: %+v", k, o, x)
		}
	}
	if !out {
		n.open[k] = w.mono
	}
	if n.journal != nil {
		n.operatorsEnd(k, x)
		n.routesOn(m, k, x, out)
	}
	admission := []resilience.Admission{resilience.Free}
	n.engine.Admissions([]*resilience.Target{t}, admission)
	if (admission[0] == resilience.Out) != out || (admission[0] == resilience.Doubtful) != (asProbe && !out) {
		w.broke("A4 one decision for all who ask", "%v is out %v, as a probe %v, and yet %v", k, out, asProbe, admission)
	}
	if x.Held && out && n.way == nil && !n.carried(k) {
		w.broke("A2 no slot is ever lost", "%v waits for a probe, but none is in flight: %+v", k, x)
	}
	if n.way != nil {
		n.goesOnAlone(k, x, out)
		n.agrees(k, x, out)
		return
	}
	if n.blind || n.journal.down || m.configured {
		return
	}
	if x.Layer != resilience.LayerOperator {
		n.asStored(m, k, x, out, asProbe)
		n.refusesForAReason(m, k, t, x, out)
	}
}

// asStored is A4: what decides is what was stored.
func (n *node) asStored(m *moment, k resilience.Key, x resilience.Exclusion, out, asProbe bool) {
	w := n.w
	ids := n.idsOf(k)
	var gates [4]*gate
	known := false
	for i, id := range ids {
		g := n.current(m, id)
		if g == nil || !g.out {
			continue
		}
		if i > 0 && n.forgotten(id, g) {
			if n.carried(k) || n.justForgotten(id, g) {
				return // a probe keeps it, or the millisecond is not certain
			}
			continue
		}
		gates[i], known = g, true
	}
	law := "A4 what decides is what is known"
	if m.restarted {
		law = "P1 a restart restores what was stored"
	}
	if !known {
		if out || asProbe {
			w.broke(law, "nothing is known against %v, and yet: %+v (out %v, probe %v)", k, x, out, asProbe)
		}
		return
	}
	if !out && !asProbe {
		w.broke(law, "%v is free, though its gates are %v", k, gates)
	}
	open := gates[0] != nil
	for i, g := range gates {
		if g == nil || !g.live(w.mono+slack) {
			continue
		}
		recheck := n.variant.policyOf(k).Recheck.After
		switch {
		case i == 0 || open && g.transient() && i < 3:
		case recheck >= 0 && (g.Quarantined || g.until-g.since > recheck):
		case !out:
			w.broke(law, "%v is let through by %v, which is %v", k, ids[i], g)
		case !x.Until.IsZero() && x.Until.Sub(w.clock.now()) < g.until-w.mono-2*slack:
			w.broke(law, "%v says that it is out for %v, and %v is %v", k, x.Until.Sub(w.clock.now()), ids[i], g)
		}
	}
}

// restored is what a new life should know: what was stored, each exclusion no longer than it was set for
// and no longer than is allowed to the kinds that can have set it, whatever the wall clock says.
func (n *node) restored() {
	w := n.w
	n.credentialed = map[resilience.Key]int{}
	if n.journal == nil {
		return
	}
	n.operator = map[resilience.Key]time.Duration{}
	for id, r := range n.journal.stored() {
		if id.Layer == resilience.LayerOperator {
			until := w.instant(r.UntilMs)
			if r.UntilMs == 0 {
				until = never
			} else {
				until = min(until, w.mono+time.Duration(r.UntilMs-r.SinceMs)*time.Millisecond)
			}
			if n.variant.has(resilience.Key{Provider: id.Key.Provider, Connection: id.Key.Connection}) && until > w.mono {
				n.operator[id.Key] = until
			}
			continue
		}
		if !n.variant.has(id.Key) || id.Layer == resilience.LayerBreaker && n.variant.domainOf(id.Key) != id.Key {
			continue
		}
		g := w.read(r)
		if g.out && !g.Quarantined {
			g.until = min(g.until, w.mono+g.until-g.since, w.mono+storedCap(n.policy(id), g))
		}
		g.since, g.last, g.rechecked = min(g.since, w.mono), min(g.last, w.mono), min(g.rechecked, w.mono)
		g.early = min(g.early, max(g.until, w.mono))
		g.Level = min(g.Level, n.policy(id).Cooldown.MaxLevel)
		g.setOrd, g.endOrd, g.runOrd, g.proofs = w.ord, w.ord, w.ord, g.Successes
		k := resilience.Key{Provider: id.Key.Provider, Connection: id.Key.Connection}
		if id.Layer == resilience.LayerConnection && id.Key == k && g.Credential != "" && g.Credential != n.variant.credentialOf(k) {
			continue
		}
		n.gates[id] = g
	}
}

// stuck is the end of a world that does not recover.
func (n *node) stuck() {
	var left []string
	for _, k := range n.variant.keys {
		if x, out := n.engine.Target(k).Check(); out {
			left = append(left, fmt.Sprintf("%v is out: %+v", k, x))
		}
	}
	n.w.broke("liveness: a world without faults recovers", "%s", strings.Join(left, "\n"))
}

// sound: after the recovery nothing is left.
func (n *node) sound() {
	for _, p := range n.engine.Status().Providers {
		shared := false // a breaker that every connection has left is asked by nobody
		for _, c := range p.Connections {
			shared = shared || c.Breaker == nil
			if c.Breaker != nil && c.Breaker.State != resilience.Closed {
				n.w.broke("liveness: a world without faults recovers", "node %d: the breaker of %s/%s is %v", n.id, p.ID, c.ID, c.Breaker.State)
			}
		}
		if shared && p.Breaker.State != resilience.Closed || !p.Available {
			n.w.broke("liveness: a world without faults recovers", "node %d: the breaker of %s is %v, available %v", n.id, p.ID, p.Breaker.State, p.Available)
		}
	}
	if len(n.flights) > 0 {
		n.w.broke("X3 every request is answered", "request %d is still on its way", n.flights[0].number)
	}
}
