package route

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// maxOnDemand is how many plans of names that the configuration does not list are kept at least.
// It bounds the memory that made-up names can take; twice as many may be there for a while.
const maxOnDemand = 512

// Router knows the plan of every name under one configuration. It is safe for concurrent use.
type Router struct {
	cfg    *config.Config
	engine *resilience.Engine

	// fixed holds combos and listed names. It is never written after New.
	fixed map[asked]*Route
	// turns are the counters of the fixed plans by plan name; a reload hands them on.
	turns   map[string]*atomic.Uint64
	latency *latencies

	mu       sync.Mutex
	onDemand recent[asked, *Route]
	compiled uint64 // on demand so far
}

// asked is a name as a client of a dialect asks for it.
type asked struct {
	dialect catalog.Dialect
	name    string
}

// Route is what a name stands for.
type Route struct {
	// Name identifies the plan: a combo's name, a listed model's, or provider/model.
	Name string
	// Relay holds the effective settings of requests on it.
	Relay config.Relay
	// Plan has the targets, siblings expanded, every one with an *Upstream as its Data.
	Plan *failover.Plan

	order *rotation
}

// Upstream is everything that a dispatch to a target needs. It is the Data of every
// failover.Target, and never changes.
type Upstream struct {
	Provider   *config.Provider
	Connection *config.Connection
	// Model is the model's name as the provider has it.
	Model string
	// Dialect is what to speak: the client's own where the provider speaks it, else its preferred.
	Dialect catalog.Dialect
	// BaseURL is where the dialect is spoken, up to and without /chat/completions, without a
	// trailing slash.
	BaseURL string
	// RateLimitScope is what an unexplained 429 means here.
	RateLimitScope resilience.Scope
}

// New makes the router of a configuration. The engine must be configured with EngineConfig(cfg),
// and on a reload before this. old is the router that this one replaces, nil at the start: its
// counters and latencies are taken over by name.
func New(cfg *config.Config, e *resilience.Engine, old *Router) (*Router, error) {
	if cfg == nil || e == nil {
		return nil, errors.New("a router needs a configuration and an engine")
	}
	r := &Router{
		cfg: cfg, engine: e, fixed: map[asked]*Route{}, turns: map[string]*atomic.Uint64{},
		onDemand: recent[asked, *Route]{limit: maxOnDemand},
	}
	var before map[string]*atomic.Uint64
	if old != nil {
		before, r.latency = old.turns, old.latency
	} else {
		r.latency = newLatencies()
	}
	r.latency.keep(cfg)
	for _, name := range fixedNames(cfg) {
		var made []*Route
		for _, d := range catalog.Dialects() {
			res, err := cfg.ResolveFor(d, name)
			if err != nil {
				return nil, err
			}
			route := reuse(made, d)
			if route == nil {
				turn := r.turns[planName(res)]
				if turn == nil {
					if turn = before[planName(res)]; turn == nil {
						turn = new(atomic.Uint64)
					}
					r.turns[planName(res)] = turn
				}
				if route, err = r.compile(d, res, turn); err != nil {
					return nil, err
				}
				made = append(made, route)
			}
			r.fixed[asked{d, name}] = route
		}
	}
	return r, nil
}

// fixedNames lists every name that the configuration writes down: combos, models as clients may
// ask for them, and the targets of combos.
func fixedNames(cfg *config.Config) []string {
	var names []string
	for _, c := range cfg.Combos {
		names = append(names, c.Name)
		for _, t := range c.Targets {
			names = append(names, t.Name())
		}
	}
	for _, p := range cfg.Providers {
		for _, m := range p.Models {
			names = append(names, m.ID, p.ID+"/"+m.ID)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Config returns the configuration that the router was made of.
func (r *Router) Config() *config.Config { return r.cfg }

// Resolve returns the route of a name that a client of the dialect asks for. Names that the
// configuration lists cost one look-up; others are compiled when they are first asked for.
// The error is a *config.NotFoundError.
func (r *Router) Resolve(d catalog.Dialect, name string) (*Route, error) {
	key := asked{d, name}
	if route := r.fixed[key]; route != nil {
		return route, nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if route, ok := r.onDemand.get(key); ok {
		return route, nil
	}
	res, err := r.cfg.ResolveFor(d, name)
	if err != nil {
		return nil, err
	}
	// Each begins its turns elsewhere: many names that are asked for once must not all meet the
	// first connection.
	turn := r.turns[planName(res)]
	if turn == nil {
		turn = new(atomic.Uint64)
		turn.Store(r.compiled)
		r.compiled++
	}
	route, err := r.compile(d, res, turn)
	if err != nil {
		return nil, err
	}
	r.onDemand.put(key, route)
	return route, nil
}

// Order returns the order in which this request should try the plan's targets, nil when that is
// the plan's own. Targets take turns by weight: the entries of a round-robin combo, and the
// sibling connections of each entry.
func (r *Route) Order() []int {
	if r.order == nil {
		return nil
	}
	return r.order.at(r.order.turn.Add(1) - 1)
}

// Peek returns the order that the next request would get, and changes nothing.
func (r *Route) Peek() []int {
	if r.order == nil {
		return nil
	}
	return r.order.at(r.order.turn.Load())
}
