package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"omniroute/internal/catalog"
)

func (b *builder) combos(n *node) {
	if !n.ok() {
		return
	}
	var lists []*node
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
		combo.Recover = e.value.get("recover").ok()
		if k := e.value.get("last_resort"); k.ok() {
			combo.LastResort = k.text == "true"
		}
		b.relay(e.value, &combo.Relay)
		combo.firstTokenSet, combo.answerSet = e.value.get("first_token_timeout").ok(), e.value.get("answer_timeout").ok()
		b.hedge(e.value.get("hedge"), combo)
		if k := e.value.get("keepalive"); k.ok() {
			if b.duration(k, &combo.Relay.Keepalive); combo.Relay.Keepalive > 0 && combo.Relay.Keepalive < time.Second {
				b.errorf(k, "a sign of life every %s is too much; write at least 1s, or 0s for none", k.shown())
			}
		}
		b.cfg.Combos = append(b.cfg.Combos, combo)
		b.cfg.combos[combo.Name] = combo
		lists = append(lists, e.value.get("targets"))
	}
	nest := &nesting{b, map[*Combo][]*node{}, map[*Combo]int{}, map[*Combo]int{}}
	b.nesting = nest
	for i, combo := range b.cfg.Combos {
		nest.places[combo] = b.entries(lists[i], combo, n)
	}
	for _, combo := range b.cfg.Combos {
		nest.check(combo, nil)
	}
	if len(b.errors) == 0 {
		for _, combo := range b.cfg.Combos {
			combo.Targets = combo.flat(nil)
			b.hedgeInVain(n.get(combo.Name).get("hedge"), combo)
		}
	}
}

// entries reads what stands in a combo, and returns where each entry stands.
func (b *builder) entries(list *node, combo *Combo, combos *node) (places []*node) {
	if !list.ok() {
		return nil
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
		e := Entry{Weight: 1}
		b.int(item.get("weight"), &e.Weight)
		id := identity{model: name.text}
		conn := item.get("connection")
		if inner := b.cfg.combos[name.text]; inner != nil {
			if conn != nil {
				b.errorf(conn, "%s is a combo, which has no connections; remove the key", quote(name.shown()))
				continue
			}
			e.Combo = inner
		} else {
			t, ok := b.target(name, combos)
			if !ok {
				continue
			}
			id = identity{t.Provider.ID, "", t.Model}
			if conn.ok() {
				id.connection = conn.text
				if !b.connection(conn, &t) {
					continue
				}
			}
			e.Target = t
		}
		if seen[id] {
			b.errorf(name, "the target stands in the combo twice; remove one, or use weight")
			continue
		}
		seen[id] = true
		combo.Entries = append(combo.Entries, e)
		places = append(places, name)
	}
	return places
}

// connection ties a target to one connection. It returns false when the target has to be left out.
func (b *builder) connection(n *node, t *Target) bool {
	t.Connection = t.Provider.Connection(n.text)
	switch {
	case t.Connection != nil:
		return true
	case slices.Contains(t.Provider.LeftOut, n.text):
		b.warnf(n, "the connection %s was left out, and this target with it", quote(n.shown()))
	case len(b.errors) > 0 && len(t.Provider.Connections) == 0:
		// its connections could not be read
	default:
		b.errorf(n, "the provider %s has no connection %s%s", t.Provider.ID, quote(n.shown()), connectionsOf(t.Provider, n.text))
	}
	return false
}

// maxDepth is how many combos may stand in each other, maxTargets how many targets a combo may have with
// all that is in it.
const (
	maxDepth   = 4
	maxTargets = 10_000
)

// nesting finds combos that stand in themselves, or too deep in each other.
type nesting struct {
	*builder
	places map[*Combo][]*node // of the entries
	depth  map[*Combo]int     // of those that were checked: 1 for one that has targets only
	size   map[*Combo]int     // how many targets they have
}

// check returns how deep a combo is. above are those that it stands in, the outermost first.
func (n *nesting) check(c *Combo, above []*Combo) int {
	if d, done := n.depth[c]; done {
		return d
	}
	above = append(above, c)
	depth, size := 1, 0
	for i, e := range c.Entries {
		if e.Combo == nil {
			size++
			continue
		}
		at := n.places[c][i]
		if from := slices.Index(above, e.Combo); from >= 0 {
			n.errorf(at, "the combo stands in itself: %s; remove one of these", chain(append(above[from:len(above):len(above)], e.Combo)))
			continue
		}
		d := n.check(e.Combo, above) + 1
		if d > maxDepth {
			n.errorf(at, "combos stand %d deep in each other here, and at most %d may; write the targets of %s in its place", d, maxDepth, quote(e.Combo.Name))
			d = maxDepth // once is enough
		}
		depth = max(depth, d)
		if size += n.size[e.Combo]; size > maxTargets {
			n.errorf(at, "the combo has more than %d targets with all the combos in it; leave some out", maxTargets)
			size = 0 // once is enough
		}
	}
	n.depth[c], n.size[c] = depth, size
	return depth
}

// chain writes combos as they stand in each other.
func chain(combos []*Combo) string {
	var names []string
	for _, c := range combos {
		names = append(names, quote(c.Name))
	}
	return strings.Join(names, ", in which stands ")
}

// flat appends every target of a combo and of those in it. Timeouts that a combo sets hold for all
// that is in it, over those that an inner one sets.
func (c *Combo) flat(into []Target) []Target {
	from := len(into)
	for _, e := range c.Entries {
		if e.Combo != nil {
			into = e.Combo.flat(into)
			continue
		}
		into = append(into, e.Target)
	}
	for i := from; i < len(into); i++ {
		if c.firstTokenSet {
			into[i].FirstTokenTimeout = c.Relay.FirstTokenTimeout
		}
		if c.answerSet {
			into[i].AnswerTimeout = c.Relay.AnswerTimeout
		}
	}
	return into
}

// target reads provider/model.
func (b *builder) target(n *node, combos *node) (Target, bool) {
	providers := b.root.get("providers")
	id, model, slash := strings.Cut(n.text, "/")
	switch {
	case !slash && combos.get(n.text) != nil:
		// a combo in which something is wrong
	case !slash:
		b.errorf(n, "%s is no target; write provider/model%s, or the name of a combo%s", quote(n.shown()), b.ownerOf(n.text), didYouMean(n.text, slices.Collect(maps.Keys(b.cfg.combos))))
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
		return b.cfg.Target(p, model), true
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
