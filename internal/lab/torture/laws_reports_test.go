package torture

import (
	"fmt"
	"slices"

	"omniroute/resilience"
)

// reportLaws look at what a moment's reports must have done.
var reportLaws = []struct {
	law   string
	holds func(n *node, m *moment, r *report) string
}{
	{"V6 a hint is honoured", hintIsHonoured},
	{"V11 a failure is heard where it belongs", failureIsHeard},
	{"A7 a success ends what it refutes", successEnds},
	{"V4 a run is the failing model's where its neighbour is well", runMoves},
	{"2 failure_threshold failures open a breaker", opensAtThreshold},
	{"V4 a run that has moved is the model's", ownRunIsHeard},
	{"V4 a second model's failures exclude the connection", secondModelWidens},
	{"A8 a success takes the level back to 0", successLevels},
}

// local reports whether dial failures count against nobody.
func (n *node) local(m *moment, v resilience.Verdict) bool {
	return v.Dial && (m.localBefore || n.engine.LocalOutage())
}

// void reports whether a report tells of a credential that is no longer there.
func (n *node) void(r *report) bool {
	return r.begun < n.credentialed[resilience.Key{Provider: r.key.Provider, Connection: r.key.Connection}]
}

func hintIsHonoured(n *node, m *moment, r *report) string {
	v, bad := r.bad()
	hint := n.hint(v, r.key)
	if !bad || hint <= 0 || r.maybe || n.local(m, v) || len(m.reports) > 1 {
		return ""
	}
	ids := n.idsOf(r.key)
	id := ids[2]
	switch {
	case account(v):
		if n.void(r) {
			return ""
		}
		id = ids[1]
	case v.Scope == resilience.ScopeModel:
		id = ids[3]
	case v.Scope != resilience.ScopeProvider || !v.Kind.Transient():
		return ""
	case r.key.Model == "":
		id = ids[1]
	}
	if g := n.current(m, id); g == nil || !g.out || g.until < n.w.mono+hint-slack {
		return fmt.Sprintf("%v %v was told to wait %v and is %v", id.Layer, id.Key, hint, g)
	}
	return ""
}

func failureIsHeard(n *node, m *moment, r *report) string {
	v, bad := r.bad()
	if !bad || r.maybe || n.local(m, v) || len(m.reports) > 1 {
		return ""
	}
	ids := n.idsOf(r.key)
	late := func(id resilience.RecordID) bool {
		g := n.gates[id]
		return g != nil && g.out || r.begun < n.ended(id) && !(r.after && r.asProbe && !r.resort)
	}
	switch {
	case account(v):
		if g := n.current(m, ids[1]); !late(ids[1]) && !n.void(r) && (g == nil || !g.out) {
			return fmt.Sprintf("the connection is %v", g)
		}
	case v.Scope == resilience.ScopeModel:
		if g := n.current(m, ids[3]); !late(ids[3]) && (g == nil || !g.out) {
			return fmt.Sprintf("the model is %v", g)
		}
	case v.Scope == resilience.ScopeProvider && (v.Kind.Transient() || v.Kind == resilience.KindPermission):
		before, after := n.gates[ids[0]], n.current(m, ids[0])
		if before != nil && len(before.Moved) > 0 || late(ids[0]) {
			return ""
		}
		if failures(after) != failures(before)+1 {
			return fmt.Sprintf("the breaker counts %d failures after %d", failures(after), failures(before))
		}
		if g := n.current(m, ids[2]); v.Kind.Transient() && r.key.Model != "" && !late(ids[2]) && failures(g) == 0 {
			return fmt.Sprintf("the connection has not counted it for the model: %v", g)
		}
		if g := n.current(m, ids[2]); v.Kind.Transient() && r.key.Model != "" && !late(ids[2]) && g != nil && g.out != (g.Failures >= n.policy(ids[2]).Cooldown.TransientAfter || n.hint(v, r.key) > 0) {
			return fmt.Sprintf("after %d transient failures in a row it is %v", g.Failures, g)
		}
	}
	return ""
}

func successEnds(n *node, m *moment, r *report) string {
	if !r.good() || len(m.reports) > 1 && slices.ContainsFunc(m.reports, func(o report) bool { return o.what == failure }) {
		return ""
	}
	for i, id := range n.idsOf(r.key) {
		b, a := n.gates[id], n.current(m, id)
		if b == nil || !b.out || a == nil || !a.out {
			continue
		}
		if i == 0 && n.policy(id).Breaker.SuccessThreshold > 1 && !b.Suspected {
			continue
		}
		if r.begun >= b.setOrd || i > 0 && b.transient() || i == 0 && b.Suspected {
			return fmt.Sprintf("%v %v was %v and is %v", id.Layer, id.Key, b, a)
		}
	}
	return ""
}

// successLevels is A8, but for answers that break off later: those begin well too.
func successLevels(n *node, m *moment, r *report) string {
	if !r.good() || len(m.reports) > 1 {
		return ""
	}
	for i, id := range n.idsOf(r.key) {
		b, a := n.gates[id], n.current(m, id)
		if i == 0 || b == nil || b.Broken > 0 || level(a) == 0 {
			continue
		}
		if !b.out || b.transient() || r.begun >= b.setOrd {
			return fmt.Sprintf("%v %v was %v and is %v", id.Layer, id.Key, b, a)
		}
	}
	return ""
}

func runMoves(n *node, m *moment, r *report) string {
	id := n.idsOf(r.key)[0]
	b, a := n.gates[id], n.current(m, id)
	if !r.good() || b == nil || len(b.Run) == 0 || r.begun < b.runOrd || m.configured {
		return ""
	}
	sole, one := b.sole()
	if b.out && (!one || sole == r.key.Model) {
		return ""
	}
	if a != nil && (a.out || a.Failures > 0 && a.Broken == 0) {
		return fmt.Sprintf("the breaker was %v and is %v", b, a)
	}
	for _, e := range b.Run {
		if e.Model == "" || e.Model == r.key.Model || e.Count == 0 || b.Failures == 0 || !n.variant.has(e.Key) {
			continue
		}
		if !n.owns(a, e.Model) {
			return fmt.Sprintf("the failures of %s are not its own: %v", e.Model, a)
		}
	}
	return ""
}
