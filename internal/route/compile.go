package route

import (
	"slices"
	"sync/atomic"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// planName is the identity of what a name was resolved to. Two names of one plan wait in one room.
func planName(res config.Resolution) string {
	switch res.Means {
	case config.MeansTarget, config.MeansOwner, config.MeansOnly:
		if len(res.Combo.Targets) == 1 {
			return res.Combo.Targets[0].Name()
		}
	}
	return res.Name
}

// reuse finds a route that was made for another dialect and is right for this one too: what
// differs between dialects is only what each target is spoken to in.
func reuse(made []*Route, d catalog.Dialect) *Route {
	for _, route := range made {
		if !slices.ContainsFunc(route.Plan.Targets, func(t failover.Target) bool {
			up := t.Data.(*Upstream)
			return spoken(up.Provider, d) != up.Dialect
		}) {
			return route
		}
	}
	return nil
}

// spoken returns the dialect to speak to a provider for a client of another.
func spoken(p *config.Provider, d catalog.Dialect) catalog.Dialect {
	if _, ok := p.Endpoint(d); ok {
		return d
	}
	return p.Endpoints[0].Dialect
}

// compile makes the route of a resolution. turn returns the counter of a node.
func (r *Router) compile(d catalog.Dialect, res config.Resolution, turn func(node string) *atomic.Uint64) (*Route, error) {
	combo := res.Combo
	b := &planner{
		r: r, dialect: d, turn: turn, targets: combo.Targets, seen: map[resilience.Key]bool{},
		plan:  failover.Plan{Name: planName(res), Limits: limits(combo.Relay), Ordered: combo.Strategy == config.Priority, LastResort: combo.LastResort},
		route: &Route{Combo: res.Means == config.MeansCombo, Relay: combo.Relay, Recover: combo.Recover, seed: r.seed, sessions: r.sessions},
	}
	if h := combo.Hedge; h != nil {
		b.plan.Hedge = failover.Hedge{After: h.After, P95: h.After == 0, Share: h.Budget, Ledger: r.ledgers[combo.Name]}
	}
	root := b.combo(combo, true)
	made, err := failover.NewPlan(b.plan)
	if err != nil {
		return nil, err
	}
	b.route.Name, b.route.Plan = made.Name, made
	if !fixed(root) {
		b.route.root = root
		for i := range b.plan.Targets {
			b.route.leaves = append(b.route.leaves, b.leaf(kid{from: i, to: i + 1}))
		}
	}
	return b.route, nil
}

// planner makes one route.
type planner struct {
	r       *Router
	dialect catalog.Dialect
	turn    func(node string) *atomic.Uint64
	targets []config.Target // that are still to come
	seen    map[resilience.Key]bool
	path    string // of the combos that the next node stands in
	entry   int    // of the plan
	plan    failover.Plan
	route   *Route
}

// combo makes the node of a combo: its kids are the entries that have a connection. apart says that
// each is an entry of the plan; otherwise the combo as a whole is one.
func (b *planner) combo(c *config.Combo, apart bool) *node {
	name := c.Name
	if b.route.nodes == 0 {
		name = b.plan.Name
	}
	n := b.node(c.Strategy, b.path+name, hash("combo", name))
	path := b.path
	b.path += name + " > "
	for _, e := range c.Entries {
		k := kid{from: len(b.plan.Targets), weight: uint64(e.Weight)}
		if e.Combo != nil {
			k.id = hash(e.Combo.Name)
			k.node = b.combo(e.Combo, apart && c.Strategy == config.Priority && e.Combo.Strategy == config.Priority)
		} else {
			k.id = hash(e.Target.Name(), connectionID(e.Target))
			k.node = b.target()
		}
		if apart {
			b.entry++
		}
		if k.to = len(b.plan.Targets); k.from < k.to {
			n.kids = append(n.kids, k)
		}
	}
	b.path = path
	b.done(n)
	return n
}

// target makes the next of the combo's targets: one for each of its connections, and where there are
// several a node to choose among them. A target that stands in the plan already is not put there
// again: no request tries it twice.
func (b *planner) target() *node {
	t := b.targets[0]
	b.targets = b.targets[1:]
	var n *node
	conns := slices.DeleteFunc(slices.Clone(connections(t)), func(c *config.Connection) bool {
		key := resilience.Key{Provider: t.Provider.ID, Connection: c.ID, Model: t.Model}
		seen := b.seen[key]
		b.seen[key] = true
		return seen
	})
	if len(conns) > 1 {
		n = b.node(t.Provider.Strategy, b.path+t.Name(), hash("connections", t.Name()))
	}
	for _, c := range conns {
		at := len(b.plan.Targets)
		b.plan.Targets = append(b.plan.Targets, b.r.target(b.dialect, b.entry, t, c))
		if n != nil {
			n.kids = append(n.kids, kid{from: at, to: at + 1, weight: uint64(c.Weight), id: hash(t.Provider.ID, c.ID)})
		}
	}
	if n != nil {
		b.done(n)
	}
	return n
}

// node begins a node. Its name is its identity over reloads.
func (b *planner) node(way config.Strategy, name string, place uint64) *node {
	n := &node{id: b.route.nodes, way: way, choose: choosers[way], measure: measures[way], salt: hash(name), place: place, turn: b.turn(name)}
	b.route.nodes++
	return n
}

// leaf completes a kid that is a target.
func (b *planner) leaf(k kid) kid {
	t := &b.plan.Targets[k.from]
	up := t.Data.(*Upstream)
	k.pulse, k.price, k.priced = t.Pulse, up.Price, up.Priced
	return k
}

// done completes a node whose kids are there.
func (b *planner) done(n *node) {
	for i := range n.kids {
		if k := &n.kids[i]; k.node == nil {
			*k = b.leaf(*k)
		}
	}
	b.route.widest = max(b.route.widest, len(n.kids))
	b.route.priced = b.route.priced || n.way == config.Cost
	if n.way == config.Fastest {
		n.seen = make([]atomic.Uint64, len(n.kids))
	}
}

// connectionID returns the connection that a target is tied to, "" when any will do.
func connectionID(t config.Target) string {
	if t.Connection == nil {
		return ""
	}
	return t.Connection.ID
}

// connections returns those that a combo's target may use.
func connections(t config.Target) []*config.Connection {
	if t.Connection != nil {
		return []*config.Connection{t.Connection}
	}
	return t.Provider.Connections
}

func (r *Router) target(d catalog.Dialect, index int, t config.Target, c *config.Connection) failover.Target {
	speak := spoken(t.Provider, d)
	key := resilience.Key{Provider: t.Provider.ID, Connection: c.ID, Model: t.Model}
	price, priced := t.Provider.PriceOf(t.Model)
	kept := r.latency.of(t.Provider.ID, t.Model)
	kept.fit.Set(abilities(t.Provider, t.Model))
	meter := r.meters.of(key, t.Provider.RateLimitScope)
	return failover.Target{
		Target: r.engine.Target(key), Places: r.places.Of(key), Meter: meter, Headroom: meter,
		Entry: index, Window: int64(t.Context), FirstToken: t.FirstTokenTimeout, Answer: t.AnswerTimeout,
		Streamed: &kept.streamed, Whole: &kept.whole, Model: &kept.fit, Pulse: r.pulses.of(key),
		Data: &Upstream{
			Provider: t.Provider, Connection: c, Model: t.Model, Dialect: speak, BaseURL: c.BaseURL(speak),
			RateLimitScope: t.Provider.RateLimitScope, Prefill: c.Prefill(speak, t.Model), Price: price, Priced: priced,
			Names: [...]string{key.Provider, key.Connection, key.Model},
		},
	}
}

// limits turns the settings, in which 0 means none, into limits, in which 0 means the default.
func limits(r config.Relay) failover.Limits {
	return failover.Limits{
		MaxAttempts: r.MaxAttempts, Deadline: r.Deadline,
		Patience: orNone(r.Patience), PatienceForAny: r.PatienceForAny, MaxWait: orNone(r.MaxWait),
		SuspectAfter: r.SuspectAfter, WaitingRoom: orNone(r.Queue.Recovery),
		QueueWait: orNone(r.Queue.Wait), QueueDepth: orNone(r.Queue.Depth),
	}
}

func orNone[T ~int | ~int64](v T) T {
	if v == 0 {
		return -1
	}
	return v
}
