package torture

import (
	"fmt"
	"slices"
	"time"

	"omniroute/resilience"
)

// gateLaws look at what a moment has done to one gate. They return what is wrong, "" for nothing.
var gateLaws = []struct {
	law   string
	holds func(n *node, m *moment, c *change) string
}{
	{"V11 a gate hears only what concerns it", onlyWhatConcerns},
	{"A5 a deadline never shortens", neverShortens},
	{"A5 the level rises once an exclusion", levelRisesOnce},
	{"A5 the cause never becomes milder", neverMilder},
	{"A6 a late failure raises nothing", lateRaisesNothing},
	{"A7 a success clears by evidence", clearsByEvidence},
	{"A8 a level survives the expiry", levelSurvives},
	{"V12 only a success resets a count", onlySuccessResets},
	{"V6 P2 an exclusion is no longer than its kind's cap", withinCap},
	{"V8 a quarantine has no deadline and a reason", quarantineHasReason},
	{"2 a cooldown is a step of the ladder", onTheLadder},
	{"2 a breaker opens by its threshold", opensByThreshold},
	{"2 an open breaker's round lasts its time", roundLasts},
	{"2 a lock lasts its time", lockLasts},
	{"V3 a rate limit never opens a breaker", noRateLimitOpens},
	{"V4 one model's failures exclude that model only", narrowFirst},
	{"V5 a successful probe clears the transient cooldowns below", probeClears},
	{"R9 a suspicion has its ground", suspicionHasGround},
	{"2 success_threshold probes close a breaker", closesByThreshold},
	{"2 the failures before a lock are inside attempt_window", locksInWindow},
}

const slack = 2 * time.Millisecond // stored times are whole milliseconds

// current is a gate after the moment.
func (n *node) current(m *moment, id resilience.RecordID) *gate {
	for i := range m.changes {
		if m.changes[i].id == id {
			return m.changes[i].after
		}
	}
	return n.gates[id]
}

// empty reports whether a gate knows nothing that a failure or a success would change.
func (g *gate) empty() bool { return g == nil || !g.out && g.Level == 0 && g.Failures == 0 }

// alike reports whether two gates differ in nothing that matters.
func alike(a, b *gate) bool {
	if a.empty() || b.empty() {
		return a.empty() && b.empty()
	}
	return a.Kind == b.Kind && a.Level == b.Level && a.Failures == b.Failures && a.out == b.out && a.Quarantined == b.Quarantined &&
		(a.until == b.until || (a.until-b.until).Abs() <= slack) && (!a.out || sameStart(a, b)) && a.LockoutMs == b.LockoutMs
}

func (n *node) policy(id resilience.RecordID) resilience.Policy { return n.variant.policyOf(id.Key) }

// forgotten reports whether a gate's trouble is so old that it no longer counts.
func (n *node) forgotten(id resilience.RecordID, g *gate) bool {
	if g == nil || id.Layer == resilience.LayerBreaker || g.out && g.until == never || g.live(n.w.mono) {
		return false
	}
	end := g.last
	if g.out {
		end = max(end, g.until)
	}
	return n.w.mono-end >= n.policy(id).Cooldown.ForgetAfter-slack
}

// justForgotten reports whether that has come so lately that stored times cannot tell.
func (n *node) justForgotten(id resilience.RecordID, g *gate) bool {
	end := g.last
	if g.out {
		end = max(end, g.until)
	}
	return n.w.mono-end-n.policy(id).Cooldown.ForgetAfter <= slack
}

func same(a, b resilience.Key) bool { return a.Provider == b.Provider && a.Connection == b.Connection }

// inDomain reports whether an attempt tells of a gate's failure domain, which is the one that it was sent to: of a
// connection it tells wherever that is by now.
func (n *node) inDomain(id resilience.RecordID, p *permit) bool {
	d := n.variant.domainOf(id.Key)
	return d == p.called.domain || id.Layer != resilience.LayerBreaker && d == n.variant.domainOf(p.key)
}

// below reports whether an attempt on a target passed by the gate.
func (n *node) below(id resilience.RecordID, k resilience.Key) bool {
	ids := n.idsOf(k)
	return id == ids[0] || id == ids[1] || id == ids[2] || id == ids[3]
}

// byHand reports whether something other than attempts may have changed the gate: an operator, a
// configuration, the end of a local outage's doubt, or time.
func (n *node) byHand(m *moment, c *change) bool {
	if m.configured || m.restarted || n.forgotten(c.id, c.before) {
		return true
	}
	for _, k := range m.resets {
		if k.Contains(c.id.Key) {
			return true
		}
	}
	return m.had(resilience.EventLocalOutage)
}

func (m *moment) had(t resilience.EventType) bool {
	return slices.ContainsFunc(m.events, func(e resilience.Event) bool { return e.Type == t })
}

func (n *node) closes(m *moment, k resilience.Key) bool {
	for i := range m.changes {
		c := &m.changes[i]
		if c.id.Layer == resilience.LayerBreaker && c.id.Key == n.variant.domainOf(k) && c.before != nil && c.before.out && (c.after == nil || !c.after.out) {
			return true
		}
	}
	return false
}

func onlyWhatConcerns(n *node, m *moment, c *change) string {
	if alike(c.before, c.after) || n.byHand(m, c) {
		return ""
	}
	breaker := c.id.Layer == resilience.LayerBreaker
	for i := range m.reports {
		r := &m.reports[i]
		if r.good() && c.id.Layer == resilience.LayerModel && n.blames(r.key, c.id.Key) {
			return "" // also where a reload has moved the connection since
		}
		if !n.inDomain(c.id, r.permit) {
			continue
		}
		if r.good() || r.what == success {
			return ""
		}
		if breaker && (r.what == waited || r.what == neutral && r.waited) {
			return ""
		}
		v, bad := r.bad()
		transient := bad && v.Scope == resilience.ScopeProvider && v.Kind.Transient()
		switch {
		case !bad:
		case breaker:
			if transient || v.Scope == resilience.ScopeProvider && v.Kind == resilience.KindPermission {
				return ""
			}
		case c.id.Layer == resilience.LayerModel:
			if r.key == c.id.Key && (v.Scope == resilience.ScopeModel || transient) {
				return ""
			}
		case c.id.Key.Model == "":
			if same(r.key, c.id.Key) && (account(v) || transient) {
				return ""
			}
		case r.key == c.id.Key && transient:
			return ""
		}
	}
	return "nothing was reported that concerns it"
}

// blames reports whether the run of failures of a target's breaker holds some of another target.
func (n *node) blames(k, other resilience.Key) bool {
	if b := n.gates[n.idsOf(k)[0]]; b != nil {
		for _, e := range b.Run {
			if e.Key == other {
				return true
			}
		}
	}
	return false
}

// refuted reports whether a success of the moment may clear the gate.
func (n *node) refuted(m *moment, c *change) bool {
	g := c.before
	for i := range m.reports {
		r := &m.reports[i]
		if !r.good() && r.what != success || !n.inDomain(c.id, r.permit) {
			continue
		}
		if r.hazy {
			return true
		}
		began := r.begun >= g.setOrd
		switch {
		case c.id.Layer == resilience.LayerBreaker:
			sole, one := g.sole()
			if !g.out || g.Suspected || began || one && sole != r.key.Model && r.begun >= g.runOrd {
				return true
			}
		case c.id.Layer == resilience.LayerConnection && g.transient() && n.closes(m, c.id.Key):
			return true
		case n.below(c.id, r.key):
			if !g.out || g.transient() || began {
				return true
			}
		}
	}
	return false
}

func neverShortens(n *node, m *moment, c *change) string {
	if c.before == nil || c.after == nil || !c.before.out || !c.after.out || c.after.until >= c.before.until-slack || n.byHand(m, c) || n.refuted(m, c) {
		return ""
	}
	return fmt.Sprintf("it ended at %v and now at %v", c.before.until, c.after.until)
}

func level(g *gate) int {
	if g == nil {
		return 0
	}
	return g.Level
}

func failures(g *gate) int {
	if g == nil {
		return 0
	}
	return g.Failures
}

func levelRisesOnce(n *node, m *moment, c *change) string {
	old, now := level(c.before), level(c.after)
	if now <= old || n.byHand(m, c) && !m.had(resilience.EventLocalOutage) && now <= 1 {
		return ""
	}
	widened := c.id.Layer == resilience.LayerConnection && c.id.Key.Model == ""
	if widened && c.after.transient() {
		return "" // two models' cooldowns have become the connection's, with their level
	}
	switch {
	case m.had(resilience.EventLocalOutage):
		return ""
	case now > old+1:
		return fmt.Sprintf("it rose from %d to %d at once", old, now)
	case c.before.live(n.w.mono) && !n.forgotten(c.id, c.before):
		return fmt.Sprintf("it rose to %d while the exclusion still ran", now)
	}
	return ""
}

var gravity = map[resilience.Kind]int{resilience.KindBilling: 4, resilience.KindQuotaExhausted: 3, resilience.KindAuth: 2,
	resilience.KindPermission: 2, resilience.KindRateLimit: 1, resilience.KindModelNotFound: 2}

func neverMilder(n *node, m *moment, c *change) string {
	b, a := c.before, c.after
	if b == nil || a == nil || !b.live(n.w.mono) || !a.out || !sameStart(b, a) || n.byHand(m, c) || n.refuted(m, c) {
		return ""
	}
	if b.Quarantined && !a.Quarantined || !b.Quarantined && !a.Quarantined && gravity[a.Kind] < gravity[b.Kind] {
		return fmt.Sprintf("it was %v", b)
	}
	return ""
}

func lateRaisesNothing(n *node, m *moment, c *change) string {
	if len(m.reports) != 1 || n.byHand(m, c) || c.before == nil && c.after == nil {
		return ""
	}
	r := &m.reports[0]
	v, bad := r.bad()
	if !bad || r.hazy || !n.below(c.id, r.key) || v.RetryAfter > 0 || !v.Until.IsZero() || v.Quarantine {
		return ""
	}
	old := r.begun < n.ended(c.id) && !(r.after && r.asProbe)
	late := old || c.before.live(n.w.mono) && !r.asProbe && c.id.Layer != resilience.LayerBreaker
	expired := r.asProbe && !r.resort && r.lease > 0 && n.w.mono > r.lease && c.before != nil && c.before.out // A2
	late, old = late || expired, old || expired
	if c.id.Layer == resilience.LayerBreaker && old {
		if failures(c.after) != failures(c.before) || (c.after != nil && c.after.out) != (c.before != nil && c.before.out) {
			return "an attempt of before its end changed it"
		}
		return ""
	}
	if !late || v.Scope == resilience.ScopeProvider && v.Kind.Transient() && c.id.Key.Model == "" {
		return "" // the connection may follow its models
	}
	if level(c.after) != level(c.before) || failures(c.after) != failures(c.before) {
		return "a report of an attempt that began before changed it"
	}
	return ""
}

func clearsByEvidence(n *node, m *moment, c *change) string {
	if c.before == nil || !c.before.out || c.after != nil && c.after.out || n.byHand(m, c) || n.refuted(m, c) {
		return ""
	}
	return "it was cleared without evidence"
}

func levelSurvives(n *node, m *moment, c *change) string {
	if level(c.after) >= min(level(c.before), n.policy(c.id).Cooldown.MaxLevel) || n.byHand(m, c) || n.refuted(m, c) {
		return ""
	}
	return fmt.Sprintf("it fell from %d to %d", level(c.before), level(c.after))
}

func onlySuccessResets(n *node, m *moment, c *change) string {
	if c.id.Layer != resilience.LayerBreaker || failures(c.after) >= failures(c.before) || n.byHand(m, c) || n.refuted(m, c) {
		return ""
	}
	return fmt.Sprintf("it fell from %d to %d", failures(c.before), failures(c.after))
}

func quarantineHasReason(n *node, m *moment, c *change) string {
	a := c.after
	switch {
	case a == nil:
		return ""
	case a.Quarantined && a.UntilMs != 0:
		return "it is quarantined until " + a.until.String()
	case a.out && !a.Quarantined && a.UntilMs == 0:
		return "it is excluded without a deadline and without a quarantine"
	case !a.Quarantined || c.before != nil && c.before.Quarantined:
		return ""
	}
	for i := range m.reports {
		if v, bad := m.reports[i].bad(); bad && v.Quarantine && account(v) && same(m.reports[i].key, c.id.Key) {
			return ""
		}
	}
	return "nobody said that a person must act"
}
