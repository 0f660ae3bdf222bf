package config

import (
	"slices"
	"strings"

	"omniroute/internal/catalog"
)

func (b *builder) combos(n *node) {
	if !n.ok() {
		return
	}
	for i := range n.entries {
		e := &n.entries[i]
		switch {
		case badModel(e.key):
			b.errorAt(e.pos, "combos", "%s is no name for a combo: it must not be empty, have spaces, or be longer than 256 characters", quote(e.key))
			continue
		case strings.Contains(e.key, "/"):
			b.errorAt(e.pos, "combos", "%s is no name for a combo: a slash is between provider and model; use a dash", quote(e.key))
			continue
		case !e.value.ok():
			continue
		}
		combo := &Combo{Name: e.key, Strategy: Priority, Relay: b.cfg.Relay}
		if s := e.value.get("strategy"); s.ok() {
			combo.Strategy = Strategy(s.text)
		}
		b.relay(e.value, &combo.Relay)
		b.targets(e.value, combo, n)
		b.cfg.Combos = append(b.cfg.Combos, combo)
		b.cfg.combos[combo.Name] = combo
	}
}

func (b *builder) targets(n *node, combo *Combo, combos *node) {
	list := n.get("targets")
	if !list.ok() {
		return
	}
	type identity struct{ provider, connection, model string }
	seen := map[identity]bool{}
	for _, item := range list.items {
		name := item
		if item.shape == shapeMap {
			name = item.get("target")
		}
		if item.bad || !name.ok() {
			continue
		}
		t, ok := b.target(name, combo, combos)
		if !ok {
			continue
		}
		b.int(item.get("weight"), &t.Weight)
		id := identity{t.Provider.ID, "", t.Model}
		if conn := item.get("connection"); conn.ok() {
			id.connection = conn.text
			t.Connection = t.Provider.Connection(conn.text)
			switch {
			case t.Connection != nil:
			case slices.Contains(t.Provider.LeftOut, conn.text):
				b.warnf(conn, "the connection %s was left out, and this target with it", quote(conn.shown()))
				continue
			case len(b.errors) > 0 && len(t.Provider.Connections) == 0:
				continue // its connections could not be read
			default:
				b.errorf(conn, "the provider %s has no connection %s%s", t.Provider.ID, quote(conn.shown()), connectionsOf(t.Provider, conn.text))
				continue
			}
		}
		if seen[id] {
			b.errorf(name, "the target stands in the combo twice; remove one, or use weight")
			continue
		}
		seen[id] = true
		if n.get("first_token_timeout").ok() {
			t.FirstTokenTimeout = combo.Relay.FirstTokenTimeout
		}
		if n.get("answer_timeout").ok() {
			t.AnswerTimeout = combo.Relay.AnswerTimeout
		}
		combo.Targets = append(combo.Targets, t)
	}
}

// target reads provider/model.
func (b *builder) target(n *node, combo *Combo, combos *node) (Target, bool) {
	providers := b.root.get("providers")
	id, model, slash := strings.Cut(n.text, "/")
	switch {
	case !slash && n.text == combo.Name:
		b.errorf(n, "the combo names itself; write a provider/model")
	case !slash && combos.get(n.text) != nil:
		b.errorf(n, "%s is a combo, and combos in combos are not available in this version; write its targets here", quote(n.shown()))
	case !slash:
		b.errorf(n, "%s is no target; write provider/model%s", quote(n.shown()), b.ownerOf(n.text))
	case providers.get(id) == nil:
		var names []string
		for _, p := range b.cfg.Providers {
			names = append(names, p.ID)
		}
		b.errorf(n, "there is no provider %s here%s", quote(id), or(didYouMean(id, names), "; add it under providers, or use one of "+oneOf(names)))
	case badModel(model):
		b.errorf(n, "no model stands behind the slash; write provider/model without spaces")
	case b.cfg.providers[id] != nil:
		p := b.cfg.providers[id]
		if len(p.Models) > 0 && p.Model(model) == nil {
			var names []string
			for _, m := range p.Models {
				names = append(names, m.ID)
			}
			b.warnf(n, "the provider %s lists its models, and %s is none of them%s", id, quote(model), didYouMean(model, names))
		}
		return b.cfg.target(p, model), true
	}
	return Target{}, false
}

// ownerOf suggests the provider to which a bare model name belongs.
func (b *builder) ownerOf(model string) string {
	for _, p := range b.cfg.Providers {
		if p.Model(model) != nil {
			return ", such as " + p.ID + "/" + model
		}
	}
	for _, p := range catalog.All() {
		if _, ok := p.Owns(model); ok {
			return ", such as " + p.ID + "/" + model
		}
	}
	return ""
}

func connectionsOf(p *Provider, name string) string {
	var ids []string
	for _, c := range p.Connections {
		ids = append(ids, c.ID)
	}
	ids = append(ids, p.LeftOut...)
	return or(didYouMean(name, ids), "; it has "+oneOf(ids))
}
