package transport

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/credential"
	"omniroute/internal/gateway"
	"omniroute/internal/relay"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// Options say where requests go. Exactly one of Upstreams and Config must be set.
type Options struct {
	// Upstreams are tried in this order, whatever model a request names.
	Upstreams []Upstream
	// Config is a gateway's configuration in YAML: providers, combos, settings. Requests name a
	// combo, a provider/model or a model, as they do at a gateway. What belongs to a server in it
	// (listen, client_keys, admin_token, store and the like) is not used.
	Config []byte
	// ConfigName names the configuration in error messages; files that it names are taken from
	// its folder. Defaults to "configuration".
	ConfigName string
	// Store keeps the state beyond the process, for example an omniroute/store/sqlite. It stays the
	// caller's to close, after Close. Nil: the state ends with the transport.
	Store resilience.Store
	// Logger gets a line for each request and each transition. Nil logs nothing.
	Logger *slog.Logger
	// OnEvent hears every transition, in order. It may call the engine, and should return soon.
	OnEvent func(resilience.Event)
	// Dial replaces the way to upstreams, for tests on a network in memory.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Transport is an http.RoundTripper over several upstreams. It is safe for concurrent use. Close it
// when no request uses it any more.
type Transport struct {
	engine  *resilience.Engine
	runner  *failover.Runner
	router  *route.Router
	gateway *gateway.Gateway
	keys    *credential.Keeper

	mu        sync.Mutex
	closed    bool
	ended     chan struct{} // closed when nothing runs any more
	exchanges map[*exchange]struct{}
	running   sync.WaitGroup
}

// New returns a transport, with the state that the store has kept. The error says which upstream or
// which line of the configuration is wrong; ctx bounds the loading of the state and nothing else.
func New(ctx context.Context, o Options) (made *Transport, err error) {
	cfg, preferred, err := o.configuration()
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	rules, err := route.Classifier(cfg)
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	log := o.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	t := &Transport{exchanges: map[*exchange]struct{}{}, ended: make(chan struct{})}
	var engine atomic.Pointer[resilience.Engine]
	t.keys = credential.New(log, func() {
		if e := engine.Load(); e != nil {
			_ = e.Configure(route.EngineConfig(cfg)) // the same but for a key
		}
	})
	t.keys.Adopt(ctx, cfg)
	defer func() {
		if err != nil {
			t.keys.Stop()
		}
	}()
	t.engine, err = resilience.New(resilience.Options{
		Config: route.EngineConfig(cfg), Store: o.Store, OnEvent: o.OnEvent, Logger: log,
	})
	if err != nil {
		return nil, fmt.Errorf("transport: %w", err)
	}
	if err := t.engine.Start(ctx); err != nil {
		return nil, fmt.Errorf("transport: the state cannot be loaded: %w", err)
	}
	engine.Store(t.engine)
	t.runner = failover.NewRunner(t.engine)
	if t.router, err = route.New(cfg, t.engine, nil); err != nil {
		t.runner.Close()
		return nil, errors.Join(fmt.Errorf("transport: %w", err), t.engine.Stop(ctx))
	}
	g := gateway.Options{
		Router: func() *route.Router { return t.router }, Classifier: func() *classify.Classifier { return rules },
		Runner: t.runner, Logger: log, Trusted: true,
	}
	if preferred != nil {
		g.Resolve = func(d catalog.Dialect, model string) (*route.Route, error) {
			return t.router.Implicit(d, model, preferred(model))
		}
	}
	if o.Dial != nil {
		g.Dial = func(ctx context.Context, network, address string) (relay.Conn, error) {
			return o.Dial(ctx, network, address)
		}
	}
	t.gateway = gateway.New(g)
	return t, nil
}

// configuration returns what to run by and, for a list of upstreams, the targets of a model.
func (o Options) configuration() (*config.Config, func(model string) []config.Target, error) {
	switch {
	case len(o.Upstreams) > 0 && o.Config != nil:
		return nil, nil, errors.New("give either Upstreams or Config, not both")
	case len(o.Upstreams) > 0:
		return configure(o.Upstreams)
	case o.Config == nil:
		return nil, nil, errors.New("there is nowhere to send requests: give Upstreams or Config")
	}
	name := o.ConfigName
	if name == "" {
		name = "configuration"
	}
	cfg, _, err := config.Parse(name, o.Config, os.LookupEnv)
	return cfg, nil, err
}

// Client returns an http.Client over the transport, for the option of an SDK that takes one.
func (t *Transport) Client() *http.Client { return &http.Client{Transport: t} }

// Engine returns the three layers: their status, resets and exclusions.
func (t *Transport) Engine() *resilience.Engine { return t.engine }

// Runner returns what drives the attempts, for calls by failover.Run beside the transport.
func (t *Transport) Runner() *failover.Runner { return t.runner }

// lastWrite is how long a store may take for it.
const lastWrite = 5 * time.Second

// Close waits for the requests that run, ends them when ctx does, and writes what the store has not
// seen yet, for which it takes at most 5s whatever ctx says. Requests that come later fail with an error. Another call waits as well, until its own ctx
// ends the requests; only the first says what went wrong.
func (t *Transport) Close(ctx context.Context) error {
	t.mu.Lock()
	again := t.closed
	t.closed = true
	t.mu.Unlock()
	if again {
		_ = t.wait(ctx, t.ended)
		return nil
	}
	defer close(t.ended)
	t.gateway.Drain()
	done := make(chan struct{})
	go func() {
		t.running.Wait()
		close(done)
	}()
	err := t.wait(ctx, done)
	t.keys.Stop()
	t.gateway.Close()
	t.runner.Close()
	flush, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
	defer cancel()
	return errors.Join(err, t.engine.Stop(flush))
}

// wait waits for an end, and hastens it when the context ends before.
func (t *Transport) wait(ctx context.Context, end <-chan struct{}) error {
	select {
	case <-end:
		return nil
	case <-ctx.Done():
	}
	t.cut(relay.ErrShuttingDown)
	<-end
	return fmt.Errorf("transport: requests are still running: %w", ctx.Err())
}
