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
		r: r, dialect: d, turn: turn,
		plan:  failover.Plan{Name: planName(res), Limits: limits(combo.Relay), Ordered: combo.Strategy == config.Priority},
		route: &Route{Relay: combo.Relay, seed: r.seed},
	}
	root := b.combo(combo)
	made, err := failover.NewPlan(b.plan)
	if err != nil {
		return nil, err
	}
	b.route.Name, b.route.Plan = made.Name, made
	if !fixed(root) {
		b.route.root = root
	}
	return b.route, nil
}

// planner makes one route.
type planner struct {
	r       *Router
	dialect catalog.Dialect
	turn    func(node string) *atomic.Uint64
	plan    failover.Plan
	route   *Route
}

// combo makes the node of a combo: its kids are the entries that have a connection.
func (b *planner) combo(c *config.Combo) *node {
	n := b.node(c.Strategy, b.plan.Name)
	for i, t := range c.Targets {
		if k, ok := b.entry(i, t); ok {
			n.kids = append(n.kids, k)
		}
	}
	b.done(n)
	return n
}

// entry makes what stands for one target of a combo: the connection, or a node of several.
func (b *planner) entry(index int, t config.Target) (kid, bool) {
	conns := connections(t)
	k := kid{from: len(b.plan.Targets), weight: uint64(t.Weight), id: hash(t.Name())}
	if len(conns) == 0 {
		return k, false
	}
	var siblings *node
	if len(conns) > 1 {
		siblings = b.node(t.Provider.Strategy, b.plan.Name+" "+t.Name())
		k.node = siblings
	}
	for _, c := range conns {
		if siblings != nil {
			at := len(b.plan.Targets)
			siblings.kids = append(siblings.kids, kid{from: at, to: at + 1, weight: uint64(c.Weight), id: hash(t.Provider.ID, c.ID)})
		}
		b.plan.Targets = append(b.plan.Targets, b.r.target(b.dialect, index, t, c))
	}
	k.to = len(b.plan.Targets)
	if siblings != nil {
		b.done(siblings)
	}
	return k, true
}

// node begins a node. Its name is its identity over reloads.
func (b *planner) node(way config.Strategy, name string) *node {
	n := &node{id: b.route.nodes, way: way, choose: choosers[way], measure: measures[way], salt: hash(name), turn: b.turn(name)}
	b.route.nodes++
	return n
}

func (b *planner) done(n *node) {
	b.route.widest = max(b.route.widest, len(n.kids))
	if n.way == config.Fastest {
		n.seen = make([]atomic.Uint64, len(n.kids))
	}
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
	streamed, whole := r.latency.of(t.Provider.ID, t.Model)
	return failover.Target{
		Target: r.engine.Target(key),
		Entry:  index, Window: int64(t.Context), FirstToken: t.FirstTokenTimeout, Answer: t.AnswerTimeout,
		Streamed: streamed, Whole: whole, Pulse: r.pulses.of(key),
		Data: &Upstream{
			Provider: t.Provider, Connection: c, Model: t.Model, Dialect: speak, BaseURL: c.BaseURL(speak),
			RateLimitScope: t.Provider.RateLimitScope,
		},
	}
}

// limits turns the settings, in which 0 means none, into limits, in which 0 means the default.
func limits(r config.Relay) failover.Limits {
	return failover.Limits{
		MaxAttempts: r.MaxAttempts, Deadline: r.Deadline,
		Patience: orNone(r.Patience), PatienceForAny: r.PatienceForAny, MaxWait: orNone(r.MaxWait),
		SuspectAfter: r.SuspectAfter, WaitingRoom: orNone(r.Queue.Recovery),
	}
}

func orNone[T ~int | ~int64](v T) T {
	if v == 0 {
		return -1
	}
	return v
}
