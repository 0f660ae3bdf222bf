package route

import (
	"errors"
	"math/rand/v2"
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
	// stored is the route to every connection that may have a stored response, nil where none may.
	stored *Route
	// turns are the counters of the fixed plans' nodes, and never written after New; a reload hands
	// them on, with what was learned and the seed.
	turns    turns
	latency  *latencies
	pulses   *pulses
	sessions *sessions
	places   *failover.PlaceSet
	meters   *meters
	seed     uint64
	// ledgers are the hedging budgets of combos by name; a reload hands them on.
	ledgers map[string]*failover.HedgeLedger

	mu       sync.Mutex
	onDemand recent[asked, *Route]
	compiled uint64 // on demand so far
}

// Places calls f with the places of each connection, in no order.
func (r *Router) Places(f func(connection resilience.Key, p *failover.Places)) { r.places.Each(f) }

// asked is a name as a client of a dialect asks for it.
type asked struct {
	dialect catalog.Dialect
	name    string
}

// Route is what a name stands for.
type Route struct {
	// Name identifies the plan: a combo's name, a listed model's, or provider/model.
	Name string
	// Combo says that the name is a combo's.
	Combo bool
	// Relay holds the effective settings of requests on it.
	Relay config.Relay
	// Recover says that answers that broke off are finished by another attempt.
	Recover bool
	// Plan has the targets, siblings expanded, every one with an *Upstream as its Data.
	Plan *failover.Plan

	root     *node // nil: the plan's own order is all there is
	nodes    int
	widest   int   // most kids of a node
	leaves   []kid // the targets by place
	priced   bool  // some node goes by prices
	seed     uint64
	sessions *sessions
	pickers  sync.Pool
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
	// Prefill is how the model is asked to go on from the beginning of an answer.
	Prefill catalog.Prefill
	// Names are those of provider, connection and model, as a target's headers tell them: every answer in
	// the works shares them.
	Names [3]string
	// Price is what the model costs, Priced whether that is known.
	Price  catalog.Price
	Priced bool
}

// New makes the router of a configuration. The engine must be configured with EngineConfig(cfg),
// and on a reload before this. old is the router that this one replaces, nil at the start: what it
// has counted and learned is taken over by name.
func New(cfg *config.Config, e *resilience.Engine, old *Router) (*Router, error) {
	return NewSeeded(cfg, e, old, rand.Uint64())
}

// NewSeeded is New with the seed of everything that is drawn by chance. A router that replaces
// another goes on with the other's seed.
func NewSeeded(cfg *config.Config, e *resilience.Engine, old *Router, seed uint64) (*Router, error) {
	if cfg == nil || e == nil {
		return nil, errors.New("a router needs a configuration and an engine")
	}
	r := &Router{
		cfg: cfg, engine: e, fixed: map[asked]*Route{}, turns: turns{}, seed: seed, ledgers: map[string]*failover.HedgeLedger{},
		onDemand: recent[asked, *Route]{limit: maxOnDemand},
	}
	var before turns
	if old != nil {
		before = old.turns
		r.latency, r.pulses, r.places, r.meters, r.sessions, r.seed = old.latency, old.pulses, old.places, old.meters, old.sessions, old.seed
	} else {
		r.latency, r.pulses, r.places, r.meters, r.sessions = newLatencies(), newPulses(), new(failover.PlaceSet), newMeters(), newSessions()
	}
	for _, c := range cfg.Combos {
		if c.Hedge == nil {
			continue
		}
		if old != nil {
			r.ledgers[c.Name] = old.ledgers[c.Name]
		}
		if r.ledgers[c.Name] == nil {
			r.ledgers[c.Name] = new(failover.HedgeLedger)
		}
	}
	r.sessions.set(cfg.Affinity.Sessions, cfg.Affinity.ForgetAfter)
	r.latency.keep(cfg)
	r.pulses.keep(cfg)
	r.meters.keep(cfg, old.config())
	for _, name := range fixedNames(cfg) {
		var made []*Route
		for _, d := range catalog.Dialects() {
			res, err := cfg.ResolveFor(d, name)
			if err != nil {
				return nil, err
			}
			route := reuse(made, d)
			if route == nil {
				if route, err = r.compile(d, res, func(node string) *atomic.Uint64 { return r.turns.keep(node, before) }); err != nil {
					return nil, err
				}
				made = append(made, route)
			}
			r.fixed[asked{d, name}] = route
		}
	}
	if err := r.compileStored(before); err != nil {
		return nil, err
	}
	r.places.Limit(limitsOf(cfg))
	return r, nil
}

// Implicit returns the route of a list of targets, tried in their order, that stands for a name which the
// configuration does not know. The same name must always come with the same targets.
func (r *Router) Implicit(d catalog.Dialect, name string, targets []config.Target) (*Route, error) {
	key := asked{d, name}
	r.mu.Lock()
	defer r.mu.Unlock()
	if route, ok := r.onDemand.get(key); ok {
		return route, nil
	}
	return r.demand(key, r.cfg.Implicit(name, config.MeansListed, targets...))
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

// limitsOf lists how many calls each connection may have at once, 0 for any number.
func limitsOf(cfg *config.Config) map[resilience.Key]int {
	limits := map[resilience.Key]int{}
	for _, p := range cfg.Providers {
		for _, c := range p.Connections {
			limits[resilience.Key{Provider: p.ID, Connection: c.ID}] = c.MaxConcurrent
		}
	}
	return limits
}

func (r *Router) config() *config.Config {
	if r == nil {
		return nil
	}
	return r.cfg
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
	return r.demand(key, res)
}

// demand compiles a route that was not foreseen. Each begins its turns elsewhere: many names that
// are asked for once must not all meet the first connection.
func (r *Router) demand(key asked, res config.Resolution) (*Route, error) {
	route, err := r.compile(key.dialect, res, func(node string) *atomic.Uint64 { return r.turns.find(node, r.compiled) })
	if err != nil {
		return nil, err
	}
	r.compiled++
	r.onDemand.put(key, route)
	return route, nil
}
