package lab

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"
)

// DemoOptions describe a [Demo]. The zero Options are what `serve --demo` uses.
type DemoOptions struct {
	// Seed makes latencies repeat themselves.
	Seed uint64
	// Listen opens the listener of a provider. Defaults to a free loopback port.
	Listen func(ctx context.Context, provider string) (net.Listener, error)
}

// Demo is a small world of providers inside the process: northwind with two keys and contoso with
// one, which fail on a schedule that comes round, and fault, whose models are the faults of
// [Faults]. Methods may be called concurrently.
type Demo struct {
	opt DemoOptions

	mu        sync.Mutex
	servers   []*Server
	providers []DemoProvider
}

// DemoProvider is how to reach one provider of a demo.
type DemoProvider struct {
	// ID is its name, BaseURL its address up to and with /v1.
	ID, BaseURL string
	Models      []string
	Connections []DemoConnection
	// Provider counts what reaches it.
	Provider *Provider
}

// DemoConnection is a key of a demo's provider. It is no secret.
type DemoConnection struct{ ID, Key string }

// NewDemo returns a demo that does not run yet.
func NewDemo(o DemoOptions) *Demo {
	if o.Listen == nil {
		o.Listen = func(ctx context.Context, _ string) (net.Listener, error) {
			return new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		}
	}
	return &Demo{opt: o}
}

// Start opens the listeners and begins the schedule. It fails if a listener cannot be opened, and
// then leaves nothing behind.
func (d *Demo) Start(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.servers != nil {
		return errors.New("the demo runs already")
	}
	for _, c := range demoCast() {
		l, err := d.opt.Listen(ctx, c.id)
		if err != nil {
			for _, s := range d.servers {
				s.Close()
			}
			d.servers, d.providers = nil, nil
			return fmt.Errorf("the demo's provider %s cannot listen: %w", c.id, err)
		}
		p := DemoProvider{ID: c.id, Models: c.models}
		keys := make(map[string]string)
		for _, name := range c.connections {
			key := fmt.Sprintf("demo-%s-%s", c.id, name)
			keys[key] = name
			p.Connections = append(p.Connections, DemoConnection{name, key})
		}
		p.Provider = New(Options{
			Name: c.id, Seed: d.opt.Seed, Keys: keys, Models: c.models, Faulty: c.faulty,
			Script: scriptOf(c.id), Period: DemoPeriod, KeepCalls: 1000, KeepRequests: -1,
			Latency: Latency{
				FirstContent: Delay{Median: 120 * time.Millisecond, Sigma: 0.3, Max: time.Second},
				Gap:          Delay{Median: 25 * time.Millisecond, Sigma: 0.3, Max: 200 * time.Millisecond},
			},
		})
		s := Serve(l, p.Provider)
		p.BaseURL = s.BaseURL()
		d.servers, d.providers = append(d.servers, s), append(d.providers, p)
	}
	return nil
}

// Stop lets answers in flight end until the context does, then ends them. Stopping a demo that does
// not run does nothing.
func (d *Demo) Stop(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	var errs []error
	for _, s := range d.servers {
		errs = append(errs, s.Stop(ctx))
	}
	d.servers, d.providers = nil, nil
	return errors.Join(errs...)
}

// Providers returns how to reach the providers, in their order; nothing before Start.
func (d *Demo) Providers() []DemoProvider {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]DemoProvider(nil), d.providers...)
}

// Config returns the part of a gateway's configuration, in YAML, that makes the demo's providers
// its providers and the combo "demo" a walk through them. Its times are shorter than the defaults,
// so that every recovery is seen within a round.
func (d *Demo) Config() string {
	s := "providers:\n"
	for _, p := range d.Providers() {
		s += fmt.Sprintf("  %s:\n    dialect: openai\n    base_url: %s\n    models:\n", p.ID, p.BaseURL)
		for _, m := range p.Models {
			s += fmt.Sprintf("      - %q\n", m)
		}
		s += "    resilience:\n" +
			"      breaker: {reset_timeout: 10s, early_probes: []}\n" +
			"      lockout: {cooldown_by_kind: {model_not_found: 10s}}\n" +
			"    connections:\n"
		for _, c := range p.Connections {
			s += fmt.Sprintf("      - {id: %s, api_key: %s}\n", c.ID, c.Key)
		}
	}
	return s + "combos:\n  demo:\n    strategy: priority\n    targets: [northwind/aurora, northwind/borealis, contoso/comet]\n"
}
