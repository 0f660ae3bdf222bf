package telemetry

import (
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"

	"omniroute/failover"
	"omniroute/resilience"
)

// index holds the series of one configuration's names, so that a request looks up each of its
// names once and joins no strings. Only what the configuration names is in it.
type index struct {
	routes      map[string]*routeSeries
	other, none *routeSeries
	// targets has a line for each listed model on each connection, and one with an empty model
	// for the unlisted models of the connection.
	targets   map[resilience.Key]*targetSeries
	stranger  *targetSeries
	providers map[string]bool
}

type routeSeries struct {
	name     string
	requests [len(statuses)]lazy[prometheus.Counter]
	duration [2]lazy[prometheus.Observer] // whole, streamed
	first    [2]lazy[prometheus.Observer]
	waits    lazy[prometheus.Observer]
}

type targetSeries struct {
	provider, connection, model string

	answered lazy[prometheus.Counter]
	failed   atomic.Pointer[[]failure] // few, so that a search beats a map; replaced whole
	first    lazy[prometheus.Observer]
	duration lazy[prometheus.Observer]
	gaps     lazy[*gapSeries]
	tokens   [len(tokenTypes)]lazy[prometheus.Counter]
}

// failure is the series of one way in which attempts on a target ended.
type failure struct {
	outcome  failover.Outcome
	scope    resilience.Scope
	kind     resilience.Kind
	attempts prometheus.Counter
}

// lazy is a series that appears with its first use.
type lazy[T any] struct{ made atomic.Pointer[T] }

func (l *lazy[T]) get(make func() T) T {
	if p := l.made.Load(); p != nil {
		return *p
	}
	t := make()
	l.made.Store(&t) // two that come at once make the same series
	return t
}

// Configure says which names may be labels from now on: the combos, providers, connections and
// models that the engine's configuration names. Series of what it no longer names end. Call it
// with the same value as the engine's Configure.
func (m *Metrics) Configure(c resilience.Config) {
	x := &index{
		routes: map[string]*routeSeries{}, other: &routeSeries{name: unlisted}, none: &routeSeries{name: noRoute},
		targets: map[resilience.Key]*targetSeries{}, stranger: &targetSeries{provider: unlisted},
		providers: map[string]bool{},
	}
	route := func(name string) {
		if x.routes[name] == nil {
			x.routes[name] = &routeSeries{name: name}
		}
	}
	for name := range c.Combos {
		route(name)
	}
	for id, p := range c.Providers {
		x.providers[id] = true
		for _, model := range p.Models {
			route(model)
			route(id + "/" + model)
		}
		for _, conn := range p.Connections {
			key := resilience.Key{Provider: id, Connection: conn.ID}
			x.targets[key] = &targetSeries{provider: id, connection: conn.ID, model: unlisted}
			for _, model := range p.Models {
				key.Model = model
				x.targets[key] = &targetSeries{provider: id, connection: conn.ID, model: model}
			}
		}
	}
	old := m.known.Swap(x)
	if old == nil {
		return
	}
	// A request that ends in this moment may bring a removed series back until the next reload.
	for name := range old.routes {
		if x.routes[name] == nil {
			forget(m.v.perRoute(), prometheus.Labels{"route": name})
		}
	}
	for key, t := range old.targets {
		if x.targets[key] != nil {
			continue
		}
		gone := prometheus.Labels{"provider": t.provider, "connection": t.connection}
		if key.Model != "" {
			gone["model"] = t.model
		}
		if !x.providers[t.provider] {
			gone = prometheus.Labels{"provider": t.provider}
		}
		forget(m.v.perProvider(), gone)
	}
}

func forget(from []interface{ DeletePartialMatch(prometheus.Labels) int }, gone prometheus.Labels) {
	for _, v := range from {
		v.DeletePartialMatch(gone)
	}
}

// route returns the series of a story's route.
func (x *index) route(name string) *routeSeries {
	if name == "" {
		return x.none
	}
	if r := x.routes[name]; r != nil {
		return r
	}
	return x.other
}

// target returns the series of an attempt's key.
func (x *index) target(key resilience.Key) *targetSeries {
	if t := x.targets[key]; t != nil {
		return t
	}
	key.Model = ""
	if t := x.targets[key]; t != nil {
		return t
	}
	return x.stranger
}

// provider returns a provider's label.
func (x *index) provider(id string) string {
	if x.providers[id] {
		return id
	}
	return unlisted
}
