package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/admin"
	"omniroute/internal/alert"
	"omniroute/internal/config"
	"omniroute/internal/credential"
	"omniroute/internal/dashboard"
	"omniroute/internal/gateway"
	"omniroute/internal/outcomes"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
	"omniroute/internal/trace"
	"omniroute/resilience"
)

// Options say what to run.
type Options struct {
	Source  Source
	Version string
	// Logger defaults to slog.Default.
	Logger *slog.Logger

	// What the program waits for in real time: usual, unless a test waits for less or is on a slow machine.
	times times
}

// times are the program's limits of real time.
type times struct {
	// header and idle are the listener's. There is none for a whole request: streams are long.
	header, idle time.Duration
	// cut is how long requests that were cut may take to notice; lastWords is how much of it clients
	// have to take the error that tells them.
	cut, lastWords time.Duration
	// flush is how long the last changes may take to be written, alert how long alerts and traces
	// that wait may take to be delivered.
	flush, alert time.Duration
}

var usual = times{
	header: 10 * time.Second, idle: 2 * time.Minute, cut: 3 * time.Second, lastWords: time.Second,
	flush: 5 * time.Second, alert: 3 * time.Second,
}

// Main is a gateway. Start it once, stop it once; every other method may be called at any time in
// between and from any goroutine.
type Main struct {
	o   Options
	log *slog.Logger

	listener net.Listener
	reach    config.Address // what the listener was opened with
	apart    config.Address // where /metrics is, if not there
	stored   config.Store
	recorded config.Record
	http     *http.Server
	served   chan struct{}
	cut      context.CancelCauseFunc // ends what still runs
	scrapes  *scrapes                // nil when /metrics is on listener
	cert     *certificate            // nil where clients come without TLS

	store     keptStore
	engine    *resilience.Engine
	runner    *failover.Runner
	gateway   *gateway.Gateway
	admin     *admin.Admin
	dashboard *dashboard.Dashboard
	metrics   *telemetry.Metrics
	outcomes  *outcomes.Writer // nil where nothing is recorded
	watch     *watcher
	unknown   *classify.Samples
	keys      *credential.Keeper
	alerts    *alert.Alerter
	traces    *trace.Exporter

	router     atomic.Pointer[route.Router]
	classifier atomic.Pointer[classify.Classifier]
	reloading  sync.Mutex

	loaded   chan struct{} // closed when requests can be answered
	draining atomic.Bool
	requests requests
}

// New returns a gateway that does not run yet.
func New(o Options) *Main {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.times = cmp.Or(o.times, usual)
	return &Main{o: o, log: o.Logger, unknown: classify.NewSamples(0), loaded: make(chan struct{}), served: make(chan struct{})}
}

// The gateway takes fewer headers and says so as its API says errors. Where this is exceeded net/http
// answers, in plain text.
const maxHeaderBytes = 512 << 10

// Start loads the configuration and the state, and returns when requests are answered. After an
// error nothing is left behind.
//
// The listener opens first and requests wait for the rest, so that a restart refuses nobody.
func (m *Main) Start(ctx context.Context) (err error) {
	sum, _ := sumOf(m.o.Source.Path) // load says what is wrong with it
	cfg, err := m.load()
	if err != nil {
		return err
	}
	c, err := route.Classifier(cfg)
	if err != nil {
		return err
	}
	m.classifier.Store(c.Noting(m.noteUnknown))
	m.reach, m.apart, m.stored = cfg.Listen, cfg.Metrics, cfg.Store
	if m.listener, err = listen(cfg.Listen, "listen"); err != nil {
		return err
	}
	if cfg.TLS != nil {
		if m.cert, err = newCertificate(*cfg.TLS, m.log); err != nil {
			return errors.Join(err, m.listener.Close())
		}
	}
	m.serve()
	defer func() {
		if err != nil {
			err = errors.Join(err, m.abandon(false))
		}
	}()
	if m.apart != (config.Address{}) {
		if m.scrapes, err = serveScrapes(m.apart, m.loaded, func() *telemetry.Metrics { return m.metrics }, m.log); err != nil {
			return err
		}
	}
	if m.store, err = openStore(ctx, cfg, m.o.Source.OwnFolder, m.log); err != nil {
		return err
	}
	if err := m.assemble(ctx, cfg); err != nil {
		return err
	}
	if m.o.Source.Path != "" {
		if m.watch, err = watch("configuration", m.o.Source.Path, sum, m.log, func() { _ = m.reloadBy("file") }); err != nil {
			m.log.Warn("the configuration file cannot be watched; send SIGHUP after a change", "error", err)
		}
	}
	close(m.loaded)
	m.log.Info("listening", "url", m.URL(), "providers", len(cfg.Providers), "combos", len(cfg.Combos), "config", cfg.File)
	if m.scrapes != nil {
		m.log.Info("metrics have an address of their own", "url", m.MetricsURL())
	}
	return nil
}

// load reads the configuration and logs its warnings.
func (m *Main) load() (*config.Config, error) {
	cfg, warnings, err := m.o.Source.Load()
	for _, w := range warnings {
		m.log.Warn(w.Message, "at", w.Position.String(), "key", w.Path)
	}
	return cfg, err
}

// assemble makes everything between listener and store.
func (m *Main) assemble(ctx context.Context, cfg *config.Config) (err error) {
	m.keys = credential.New(m.log, m.keysChanged)
	m.keys.Adopt(ctx, cfg)
	o := resilience.Options{Config: route.EngineConfig(cfg), OnEvent: m.logEvent, Logger: m.log}
	if m.store != nil {
		o.Store = m.store
	}
	if m.engine, err = resilience.New(o); err != nil {
		return fmt.Errorf("the engine refuses the configuration: %w", err)
	}
	if m.recorded = cfg.Record; m.recorded != (config.Record{}) {
		if m.outcomes, err = outcomes.Open(m.recorded.Path, m.recorded.MaxSize, m.log); err != nil {
			return err
		}
	}
	m.runner = failover.NewRunner(m.engine)
	m.alerts = alert.New(m.engine, m.log)
	m.traces = trace.New(m.o.Version, m.log)
	var ends func() time.Time
	if m.cert != nil {
		ends = m.cert.ends
	}
	m.metrics = telemetry.New(telemetry.Options{
		CertificateEnds: ends, Alerts: m.alerts.Counts, Spans: m.traces.Counts,
		Engine: m.engine, Config: o.Config, Version: m.o.Version, Logger: m.log,
		Waiting: m.runner.Waiting, Panics: func() int64 { return m.gateway.Panics() },
		Headroom: func(f func(provider, connection string, left float64)) {
			if r := m.router.Load(); r != nil {
				for _, b := range r.Headroom(time.Now()) {
					if b.Limit > 0 {
						f(b.Provider, b.Connection, min(float64(b.Remaining)/float64(b.Limit), 1))
					}
				}
			}
		},
		Places: func(f func(resilience.Key, *failover.Places)) {
			if r := m.router.Load(); r != nil {
				r.Places(f)
			}
		},
	})
	m.admin = admin.New(admin.Options{Version: m.o.Version, Router: m.router.Load, Runner: m.runner, Unknown: m.unknown, Trail: auditor(m.store), Ready: m.ready, Logger: m.log})
	m.dashboard = dashboard.New(dashboard.Options{Admin: m.admin, Config: m.Config, Logger: m.log})
	m.gateway = gateway.New(gateway.Options{
		Router: m.router.Load, Classifier: m.classifier.Load, Runner: m.runner, Logger: m.log,
		Observe: func(s telemetry.Story) {
			m.admin.Observe(s)
			m.metrics.Observe(s)
			if s.Stranger {
				return
			}
			m.traces.Observe(s)
			if m.outcomes != nil {
				m.outcomes.Observe(s)
			}
		},
	})
	if err := m.engine.Start(ctx); err != nil {
		return fmt.Errorf("the engine does not start: %w", err)
	}
	m.admin.Restored()
	m.withoutKeys()
	router, err := route.New(cfg, m.engine, nil)
	if err != nil {
		return err
	}
	m.router.Store(router)
	m.alerts.Configure(cfg)
	m.traces.Configure(cfg.Tracing)
	m.alerts.Start()
	return nil
}

// serve begins to accept connections.
func (m *Main) serve() {
	base, cut := context.WithCancelCause(context.Background())
	m.cut = cut
	m.http = &http.Server{
		Handler: m, BaseContext: func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: m.o.times.header, IdleTimeout: m.o.times.idle, MaxHeaderBytes: maxHeaderBytes,
		ErrorLog: log.New(handshakes{m.log}, "", 0),
	}
	d := newDoor(m.listener, roomFor(openFiles()), m.log)
	m.http.ConnState = d.state
	serve := func() error { return m.http.Serve(d) }
	if m.cert != nil {
		m.http.TLSConfig = &tls.Config{GetCertificate: m.cert.get, MinVersion: tls.VersionTLS12}
		serve = func() error { return m.http.ServeTLS(d, "", "") }
	}
	go func() {
		defer close(m.served)
		if err := serve(); !errors.Is(err, http.ErrServerClosed) {
			m.log.Error("the listener has failed; no new connection can come", "error", err)
		}
	}()
}

// Addr is where the gateway listens.
func (m *Main) Addr() net.Addr { return m.listener.Addr() }

// URL is the gateway's address for this machine: "http://127.0.0.1:20128", or "unix:PATH".
func (m *Main) URL() string {
	at := urlOf(m.reach, m.listener)
	if rest, ok := strings.CutPrefix(at, "http:"); ok && m.cert != nil {
		at = "https:" + rest
	}
	return at
}

// MetricsURL is the address of /metrics for this machine, without that path.
func (m *Main) MetricsURL() string {
	if m.scrapes == nil {
		return m.URL()
	}
	return urlOf(m.apart, m.scrapes.listener)
}

// urlOf returns where this machine reaches a listener that was opened at an address.
func urlOf(at config.Address, l net.Listener) string {
	if at.Network == "unix" {
		return at.String()
	}
	host, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return "http://" + l.Addr().String()
	}
	switch ip := net.ParseIP(host); {
	case ip.IsUnspecified() && ip.To4() == nil && at.Address[0] == '[':
		host = "::1"
	case ip.IsUnspecified():
		host = "127.0.0.1"
	}
	return "http://" + net.JoinHostPort(host, port)
}

// Config returns the configuration in force.
func (m *Main) Config() *config.Config { return m.router.Load().Config() }

// Engine returns the engine.
func (m *Main) Engine() *resilience.Engine { return m.engine }

// ready is nil while requests are taken.
func (m *Main) ready() error {
	if m.draining.Load() {
		return errDraining
	}
	return nil
}

var (
	errDraining = errors.New("shutting down")
	errLoading  = errors.New("loading")
)
