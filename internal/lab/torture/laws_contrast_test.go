package torture

import (
	"fmt"

	"omniroute/resilience"
)

// owns reports whether a model's failures are known to be its own (V4), by its breaker: until it succeeds
// or the last of them is forgotten.
func (n *node) owns(breaker *gate, model string) bool {
	if breaker == nil {
		return false
	}
	for i, x := range breaker.Moved {
		if x.Model == model {
			return n.w.mono-breaker.movedAt[i] < n.variant.policyOf(breaker.Key).Cooldown.ForgetAfter-slack
		}
	}
	return false
}

// coolingModels lists the models of a connection that its transient cooldown excludes one by one, and perhaps also
// those that would be forgotten by now, were there no probe in flight that may keep them.
func (n *node) coolingModels(m *moment, k resilience.Key, kept bool) (all []resilience.RecordID) {
	breaker := n.current(m, n.idsOf(k)[0])
	for _, x := range n.variant.keys {
		id := resilience.RecordID{Layer: resilience.LayerConnection, Key: x}
		g := n.current(m, id)
		if same(x, k) && g != nil && g.out && (!n.forgotten(id, g) || kept && n.carried(x)) && !n.owns(breaker, x.Model) {
			all = append(all, id)
		}
	}
	return all
}

// narrowFirst is V4: failures of one model exclude that model only.
func narrowFirst(n *node, m *moment, c *change) string {
	r, v, bad := m.sole()
	if !bad || c.id.Layer != resilience.LayerConnection || c.id.Key.Model != "" || r.key.Model == "" || v.Scope != resilience.ScopeProvider || !v.Kind.Transient() {
		return ""
	}
	if a := c.after; a == nil || !a.out || alike(c.before, a) || n.byHand(m, c) || len(n.coolingModels(m, c.id.Key, true)) > 1 {
		return ""
	}
	return "only one model of it has failed"
}

// widens is V4: failures of a second model make a transient cooldown the whole connection's.
func secondModelWidens(n *node, m *moment, r *report) string {
	v, bad := r.bad()
	if !bad || r.maybe || r.key.Model == "" || v.Scope != resilience.ScopeProvider || !v.Kind.Transient() || n.local(m, v) || len(m.reports) > 1 {
		return ""
	}
	ids := n.idsOf(r.key)
	own := n.current(m, ids[2])
	if own == nil || !own.out || n.owns(n.gates[ids[0]], r.key.Model) {
		return ""
	}
	cooling := n.coolingModels(m, r.key, false)
	g := n.current(m, ids[1])
	for _, id := range cooling {
		if x := n.current(m, id); len(cooling) > 1 && (g == nil || !g.out || g.transient() && g.until < x.until-slack) {
			return fmt.Sprintf("%v is %v, and the connection %v", id.Key, x, g)
		}
	}
	return ""
}

// ownRunIsHeard is V4: failures of a model whose run has moved are the model's, not the provider's.
func ownRunIsHeard(n *node, m *moment, r *report) string {
	v, bad := r.bad()
	id := n.idsOf(r.key)[0]
	b, a := n.gates[id], n.current(m, id)
	if !bad || r.maybe || v.Scope != resilience.ScopeProvider || !v.Kind.Transient() || len(m.reports) > 1 || n.local(m, v) || b == nil {
		return ""
	}
	if n.owns(b, r.key.Model) && (failures(a) != failures(b) || (a != nil && a.out) != b.out) {
		return fmt.Sprintf("the failures of %s are its own, and yet the breaker was %v and is %v", r.key.Model, b, a)
	}
	return ""
}

// probeClears is V5: a success that closes a breaker ends the transient cooldowns below it, but for those
// of models that keep their trouble.
func probeClears(n *node, m *moment, c *change) string {
	if c.id.Layer != resilience.LayerBreaker || c.before == nil || !c.before.out || c.after != nil && c.after.out || n.byHand(m, c) {
		return ""
	}
	for _, k := range n.variant.keys {
		if n.variant.domainOf(k) != c.id.Key || n.owns(c.after, k.Model) {
			continue
		}
		ids := n.idsOf(k)
		for _, id := range ids[1:3] {
			if g := n.current(m, id); g != nil && g.out && g.transient() && !n.forgotten(id, g) {
				return fmt.Sprintf("%v is still %v", id.Key, g)
			}
		}
	}
	return ""
}
