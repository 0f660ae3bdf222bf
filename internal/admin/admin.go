// Package admin is the operator's API over HTTP: what is out of service and why, how to end or set
// an exclusion, what became of recent requests, and every transition as it happens.
//
// It asks the engine and tells it; it decides nothing. Reading changes nothing. No secret, prompt
// or answer is ever in what it sends.
package admin

import (
	"context"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// Options are what an Admin works with. Router and Runner are needed.
type Options struct {
	// Version is the program's, for status.
	Version string
	// Router returns the router in force; it may change at any time.
	Router func() *route.Router
	Runner *failover.Runner
	// Ready returns nil when requests are taken, else an error that says in a few words why not.
	// Nil means always ready.
	Ready func() error
	// Unknown holds the failures that no rule knew. Nil means that none are kept.
	Unknown *classify.Samples
	// Trail keeps what operators did. Nil means that it is kept in memory alone.
	Trail resilience.Auditor
	// Stories is how many requests are remembered. Defaults to 1000.
	Stories int
	// Events is how many events are kept for those who come later, and how many may wait for one
	// slow reader. Default to 1000 and 256.
	Events, Backlog int
	// Heartbeat is how often an idle event stream shows that it lives. Defaults to 15s.
	Heartbeat time.Duration
	// Logger gets a line for each change that an operator makes. Defaults to slog.Default.
	Logger *slog.Logger
}

// Admin is the handler of /admin/v1/…, /healthz and /readyz. It is safe for concurrent use.
// Close it when the program ends.
type Admin struct {
	o       Options
	log     *slog.Logger
	engine  *resilience.Engine
	mux     *http.ServeMux
	open    *http.ServeMux
	hub     *hub
	stories *stories
	// strangers are the last requests of those who are no clients: anybody can send any number.
	strangers *stories
	series    *telemetry.Series
	lines     *telemetry.Timelines
	trail     *trail
	guesses   guesses
	stop      func()
	// persistence is what the engine's status says of the store, kept by its events: health is asked
	// often and by anybody, and a status costs more the more is out.
	persistence atomic.Pointer[string]
}

// New returns an Admin that listens to the engine's events from now on.
func New(o Options) *Admin {
	set(&o.Stories, 1000)
	set(&o.Events, 1000)
	set(&o.Backlog, 256)
	set(&o.Heartbeat, 15*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	if o.Ready == nil {
		o.Ready = func() error { return nil }
	}
	a := &Admin{
		o: o, log: o.Logger, engine: o.Runner.Engine(), mux: http.NewServeMux(), open: http.NewServeMux(),
		hub: newHub(o.Events, o.Backlog, time.Now()), stories: newStories(o.Stories), strangers: newStories(maxStrangers),
		series: telemetry.NewSeries(), lines: telemetry.NewTimelines(),
		trail: newTrail(o.Trail, o.Logger),
	}
	a.stop = a.engine.Subscribe(a.heard)
	health := a.engine.Status().Persistence
	a.persistence.CompareAndSwap(nil, &health) // unless an event came in between, which is newer
	a.routes()
	return a
}

// Observe takes in the story of a request that is over.
func (a *Admin) Observe(s telemetry.Story) {
	if s.Stranger {
		a.strangers.add(s)
		return
	}
	a.stories.add(s)
	a.series.Observe(s)
}

// Restored tells that the engine has its state: what is out by then is where the timelines begin.
func (a *Admin) Restored() { a.lines.Begin(a.engine.Overview()) }

// heard takes in an event of the engine.
func (a *Admin) heard(ev resilience.Event) {
	switch ok, degraded := "ok", "degraded"; ev.Type {
	case resilience.EventPersistenceDegraded:
		a.persistence.Store(&degraded)
	case resilience.EventPersistenceOK:
		a.persistence.Store(&ok)
	}
	a.lines.Heard(ev)
	a.hub.publish(ev)
}

// Close ends the event streams, so that a server can shut down. The rest goes on answering.
func (a *Admin) Close() {
	a.stop()
	a.hub.close()
}

// ServeHTTP answers one request.
func (a *Admin) ServeHTTP(w http.ResponseWriter, r *http.Request) { a.mux.ServeHTTP(w, r) }

// Open returns the calls under /admin/v1/ without the question who asks: for a caller that has let
// the request in by its own rules. Reach it over nothing else.
func (a *Admin) Open() http.Handler { return a.open }

func (a *Admin) config() *config.Config { return a.o.Router().Config() }

// calls says what there is, for the answer to those who ask for something else.
const calls = "GET /admin/v1/status, POST /admin/v1/reset, POST and DELETE /admin/v1/exclude, POST /admin/v1/explain, " +
	"GET /admin/v1/attempts, GET /admin/v1/requests/{id}, GET /admin/v1/series, GET /admin/v1/unknown-errors, GET /admin/v1/audit and GET /admin/v1/events"

func (a *Admin) routes() {
	a.mux.HandleFunc("GET /healthz", a.healthz)
	a.mux.HandleFunc("GET /readyz", a.readyz)
	for path, methods := range map[string]map[string]handler{
		"/admin/v1/status":         {"GET": a.status},
		"/admin/v1/reset":          {"POST": a.reset},
		"/admin/v1/exclude":        {"POST": a.exclude, "DELETE": a.include},
		"/admin/v1/explain":        {"POST": a.explain},
		"/admin/v1/attempts":       {"GET": a.attempts},
		"/admin/v1/requests/{id}":  {"GET": a.request},
		"/admin/v1/series":         {"GET": a.seriesOf},
		"/admin/v1/unknown-errors": {"GET": a.unknownErrors},
		"/admin/v1/audit":          {"GET": a.audits},
		"/admin/v1/events":         {"GET": a.events},
	} {
		a.handle(path, func(w http.ResponseWriter, r *http.Request) error {
			method := r.Method
			if method == http.MethodHead {
				method = http.MethodGet
			}
			if h := methods[method]; h != nil {
				return h(w, r)
			}
			return notAllowed(w, r, methods)
		})
	}
	a.handle("/admin/", func(_ http.ResponseWriter, r *http.Request) error {
		return refuse(http.StatusNotFound, "not_found", "there is no %s; the calls are %s", shown(r.URL.Path), calls)
	})
}

// handler answers one call, or returns the error to answer with.
type handler func(w http.ResponseWriter, r *http.Request) error

// handle sends a path to its handler, for those who may come and for callers of Open.
func (a *Admin) handle(path string, h handler) {
	a.open.Handle(path, answering(func(w http.ResponseWriter, r *http.Request) error {
		return h(w, r.WithContext(context.WithValue(r.Context(), opened{}, true)))
	}))
	a.mux.Handle(path, answering(func(w http.ResponseWriter, r *http.Request) error {
		if err := a.authorize(w, r); err != nil {
			return err
		}
		return h(w, r)
	}))
}

// answering turns errors into answers.
func answering(h handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := h(w, r); err != nil {
			WriteError(w, err)
		}
	})
}

// healthz says that the process lives.
func (a *Admin) healthz(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusOK, map[string]string{"status": "ok", "persistence": *a.persistence.Load()})
}

// readyz says whether requests are taken.
func (a *Admin) readyz(w http.ResponseWriter, _ *http.Request) {
	if err := a.o.Ready(); err != nil {
		w.Header().Set("Retry-After", "1")
		writeJSON(w, http.StatusServiceUnavailable, map[string]string{"status": err.Error()})
		return
	}
	writeJSON(w, http.StatusOK, map[string]string{"status": "ready"})
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}
