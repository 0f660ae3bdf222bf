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

// compile makes the route of a resolution.
func (r *Router) compile(d catalog.Dialect, res config.Resolution, turn *atomic.Uint64) (*Route, error) {
	combo := res.Combo
	plan := failover.Plan{Name: planName(res), Limits: limits(combo.Relay), Ordered: combo.Strategy == config.Priority}
	var entries []entry
	for i, t := range combo.Targets {
		e := entry{weight: t.Weight}
		var weights []int
		for _, c := range connections(t) {
			e.targets = append(e.targets, len(plan.Targets))
			weights = append(weights, c.Weight)
			plan.Targets = append(plan.Targets, r.target(d, i, t, c))
		}
		if len(e.targets) > 0 {
			e.shares = newShares(weights)
			entries = append(entries, e)
		}
	}
	made, err := failover.NewPlan(plan)
	if err != nil {
		return nil, err
	}
	return &Route{
		Name: plan.Name, Relay: combo.Relay, Plan: made,
		order: newRotation(entries, combo.Strategy == config.RoundRobin, turn),
	}, nil
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
	streamed, whole := r.latency.of(t.Provider.ID, t.Model)
	return failover.Target{
		Target: r.engine.Target(resilience.Key{Provider: t.Provider.ID, Connection: c.ID, Model: t.Model}),
		Entry:  index, Window: int64(t.Context), FirstToken: t.FirstTokenTimeout, Answer: t.AnswerTimeout,
		Streamed: streamed, Whole: whole,
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
