package telemetry

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"omniroute/resilience"
)

// gates is a collector that shows what the engine's gates are like at the moment of the scrape.
// Nothing is kept up to date between scrapes, so that it cannot drift from the engine.
type gates struct {
	engine *resilience.Engine

	available, combo, breaker, failures, connection, exclusions, retry, persistence, local *prometheus.Desc

	mu   sync.Mutex
	seen map[exclusion]bool // what was shown once stays, as 0: series that vanish break sums and alerts
}

var _ prometheus.Collector = (*gates)(nil)

// exclusion is what exclusions are counted by.
type exclusion struct {
	layer    resilience.Layer
	provider string
	kind     string
}

// operatorKind stands in for the kind of an operator's exclusion, which has none.
const operatorKind = "operator"

func newGates(e *resilience.Engine) *gates {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("omniroute_"+name, help, labels, nil)
	}
	return &gates{
		engine:      e,
		available:   desc("provider_available", "1 when any connection of the provider may be used.", "provider"),
		combo:       desc("combo_available", "1 when any target of the combo may be used.", "combo"),
		breaker:     desc("breaker_state", "1 for the circuit breaker's present state. The connection is empty for a provider's own.", "provider", "connection", "state"),
		failures:    desc("breaker_failures", "Failures in a row that the circuit breaker has counted.", "provider", "connection"),
		connection:  desc("connection_state", "1 for the connection's present state.", "provider", "connection", "state"),
		exclusions:  desc("exclusions", "Exclusions in force, by layer and by the kind that set them.", "layer", "provider", "kind"),
		retry:       desc("connection_retry_after_seconds", "How long the connection is still excluded; 0 when it is not or nobody knows.", "provider", "connection"),
		persistence: desc("persistence_state", "1 for the present state of the store: ok, degraded, or off without one.", "state"),
		local:       desc("local_outage", "1 while the machine's own network is taken for the cause of what fails."),
		seen:        map[exclusion]bool{},
	}
}

// Describe implements prometheus.Collector.
func (g *gates) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{g.available, g.combo, g.breaker, g.failures, g.connection, g.exclusions, g.retry, g.persistence, g.local} {
		ch <- d
	}
}

var (
	breakerStates    = []resilience.BreakerState{resilience.Closed, resilience.Degraded, resilience.Open, resilience.HalfOpen}
	connectionStates = []resilience.ConnectionState{resilience.Ready, resilience.Cooling, resilience.Probing, resilience.Quarantined, resilience.Excluded}
	storeStates      = []string{"ok", "degraded", "off"}
)

// Collect implements prometheus.Collector.
func (g *gates) Collect(ch chan<- prometheus.Metric) {
	s := g.engine.Status()
	gauge := func(d *prometheus.Desc, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, v, labels...)
	}
	for _, state := range storeStates {
		gauge(g.persistence, one(s.Persistence == state), state)
	}
	gauge(g.local, one(s.Local))
	for _, c := range s.Combos {
		gauge(g.combo, one(c.Available), c.ID)
	}
	now := map[exclusion]int{}
	breaker := func(provider, connection string, b *resilience.BreakerStatus) {
		for _, state := range breakerStates {
			gauge(g.breaker, one(b.State == state), provider, connection, string(state))
		}
		gauge(g.failures, float64(b.Failures), provider, connection)
		if b.State == resilience.Open || b.State == resilience.HalfOpen {
			now[exclusion{resilience.LayerBreaker, provider, kindOf(b.LastKind)}]++
		}
	}
	for i := range s.Providers {
		p := &s.Providers[i]
		gauge(g.available, one(p.Available), p.ID)
		breaker(p.ID, "", &p.Breaker)
		for j := range p.Connections {
			c := &p.Connections[j]
			for _, state := range connectionStates {
				gauge(g.connection, one(c.State == state), p.ID, c.ID, string(state))
			}
			gauge(g.retry, float64(c.RetryAfterMs)/1000, p.ID, c.ID)
			if c.Breaker != nil {
				breaker(p.ID, c.ID, c.Breaker)
			}
			switch {
			case c.Kind != nil:
				now[exclusion{resilience.LayerConnection, p.ID, c.Kind.String()}]++
			case len(c.Models) > 0 && c.LastError != nil: // out for these models only
				now[exclusion{resilience.LayerConnection, p.ID, c.LastError.Kind.String()}] += len(c.Models)
			}
		}
	}
	for i := range s.Lockouts {
		l := &s.Lockouts[i]
		now[exclusion{resilience.LayerModel, l.Provider, l.Kind.String()}]++
	}
	for i := range s.Operator {
		now[exclusion{resilience.LayerOperator, s.Operator[i].Provider, operatorKind}]++
	}
	g.count(now, s.Providers, gauge)
}

// count shows the exclusions of now, and as 0 those of former scrapes whose provider is still there.
func (g *gates) count(now map[exclusion]int, providers []resilience.ProviderStatus, gauge func(*prometheus.Desc, float64, ...string)) {
	there := map[string]bool{"": true}
	for i := range providers {
		there[providers[i].ID] = true
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for x := range now {
		g.seen[x] = true
	}
	for x := range g.seen {
		if !there[x.provider] {
			delete(g.seen, x)
			continue
		}
		gauge(g.exclusions, float64(now[x]), x.layer.String(), x.provider, x.kind)
	}
}

func kindOf(k *resilience.Kind) string {
	if k == nil {
		return resilience.KindUnknown.String()
	}
	return k.String()
}

func one(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
