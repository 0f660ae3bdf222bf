// Package gateway is the client API over HTTP: it checks keys and sizes, reads what a request
// asks for, and hands it to the relay. Whatever goes wrong before that is answered here, in the
// client's own dialect. It knows nothing of targets and gates.
package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/responses"
	"omniroute/internal/loopback"
	"omniroute/internal/relay"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// Options are what a Gateway works with. Router, Runner and Classifier are needed.
type Options struct {
	// Router and Classifier return what the configuration in force has made; both may change
	// while requests run.
	Router     func() *route.Router
	Classifier func() *classify.Classifier
	Runner     *failover.Runner
	// Resolve replaces the router's reading of a model's name in requests. Nil: the router's.
	Resolve func(d catalog.Dialect, model string) (*route.Route, error)
	// Trusted says that only this program asks: neither keys nor origins are looked at.
	Trusted bool
	// Observe is told the story of each request at its end.
	Observe func(telemetry.Story)
	// Logger gets one line a request. Defaults to slog.Default.
	Logger *slog.Logger
	// Dial replaces the way to upstreams, for tests on a network in memory.
	Dial func(ctx context.Context, network, address string) (relay.Conn, error)
}

// Gateway is the handler of the client API. It is safe for concurrent use.
type Gateway struct {
	o        Options
	log      *slog.Logger
	mux      *http.ServeMux
	relay    *relay.Relay
	draining atomic.Bool
	panics   atomic.Int64
	rates    rates
	bodies   relay.Hold
}

// New returns a Gateway.
func New(o Options) *Gateway {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	g := &Gateway{o: o, log: o.Logger, mux: http.NewServeMux(), rates: rates{begin: time.Now()}}
	g.relay = relay.New(relay.Options{
		Runner: o.Runner, Classifier: o.Classifier, Logger: o.Logger, Observe: g.observe, Dial: o.Dial,
		Hide: func(said string) string { return o.Router().Config().Hide(said) },
	})
	g.mux.HandleFunc("GET /v1/models", g.models)
	g.mux.HandleFunc("GET /v1/models/{id...}", g.model)
	g.mux.HandleFunc("GET /v1beta/models", g.models)
	g.mux.HandleFunc("GET /v1beta/models/{id...}", g.model)
	g.mux.HandleFunc("GET /v1/responses/{id...}", g.stored)
	g.mux.HandleFunc("DELETE /v1/responses/{id...}", g.stored)
	g.mux.HandleFunc("POST /v1/responses/{id}/cancel", g.stored)
	g.mux.HandleFunc("POST /v1/{path...}", g.generate)
	g.mux.HandleFunc("POST /v1beta/{path...}", g.generate)
	g.mux.HandleFunc("GET "+helloPath, hello)
	// Without these the mux would lead to the same path with a slash at its end.
	for _, p := range []string{"GET /v1/responses", "DELETE /v1/responses", "/v1", "/v1beta"} {
		g.mux.HandleFunc(p, g.noSuchCall)
	}
	g.mux.HandleFunc("/v1/{path...}", g.noSuchCall)
	g.mux.HandleFunc("/", g.noSuchCall)
	return g
}

// Drain makes every further request fail with shutting_down.
func (g *Gateway) Drain() { g.draining.Store(true) }

// Close waits for what cancelled attempts have left behind. No request may be running.
func (g *Gateway) Close() { g.relay.Close() }

// Panics returns how many requests ended in a recovered panic, which is always a bug.
func (g *Gateway) Panics() int64 { return g.panics.Load() }

// ServeHTTP answers one request.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := []string{requestID(r)}
	w.Header()["X-Request-Id"] = id
	if dialectOf(r) == messages {
		w.Header()["Request-Id"] = id // what this API's clients look for
	}
	defer func() {
		if p := recover(); p != nil {
			g.panicked(w, r, p)
		}
	}()
	oneSlash(r)
	switch {
	case g.turnedAway(w, r):
	case r.Method == http.MethodPost && generating[r.URL.Path]:
		g.generate(w, r) // where the mux would lead it too, by a longer way
	default:
		g.mux.ServeHTTP(w, r)
	}
}

// turnedAway answers what is not to be served at all.
func (g *Gateway) turnedAway(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case r.Method == http.MethodOptions:
		// A probe; whoever asks for a browser's leave gets none.
		w.Header().Set("Allow", "GET, HEAD, POST, OPTIONS")
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodConnect:
		g.noSuchCall(w, r) // the mux has an answer of its own to it
	case tooManyHeaders(r.Header):
		w.Header().Set("Connection", "close")
		g.fail(w, r, &dialect.ErrorReport{Status: http.StatusRequestHeaderFieldsTooLarge,
			Message: fmt.Sprintf("The request has more than %d header fields or %d KiB of them.", maxHeaders, maxHeaderBytes>>10)})
	case !plainPath(r.URL.Path):
		g.fail(w, r, &dialect.ErrorReport{Status: http.StatusBadRequest, Message: "The request's path has segments or characters that no call of this API has."})
	case asksForWebSocket(r.Header):
		w.Header().Set("Upgrade", "HTTP/1.1")
		g.fail(w, r, &dialect.ErrorReport{Status: http.StatusUpgradeRequired, Message: "WebSockets are not served here; use HTTP."})
	case r.URL.Path == helloPath:
		return false
	case !g.o.Trusted && g.fromPage(r):
		g.fail(w, r, &dialect.ErrorReport{Status: http.StatusForbidden,
			Message: "A web page asks, or the gateway is asked under a foreign name. Without client keys only programs on this machine may ask, as localhost or 127.0.0.1; set client_keys in the gateway's configuration."})
	case g.stranger(r):
		g.fail(w, r, &dialect.ErrorReport{Code: dialect.CodeInvalidAPIKey,
			Message: "This gateway does not know the key; send one of its client keys as \"Authorization: Bearer KEY\"."})
	case g.draining.Load():
		w.Header().Set("Connection", "close")
		g.fail(w, r, &dialect.ErrorReport{Code: dialect.CodeShuttingDown, Message: "The gateway is shutting down.", RetryAfter: time.Second})
	default:
		report := g.overRate(r)
		if report == nil {
			return false
		}
		g.fail(w, r, report)
	}
	return true
}

// stranger reports whether whoever asks is no client: a page, or one without a key.
func (g *Gateway) stranger(r *http.Request) bool {
	return !g.o.Trusted && (g.fromPage(r) || !g.o.Router().Config().ClientAllowed(presentedKey(r)))
}

// fromPage reports whether a browser may be asking for somebody else's page, where no key keeps that
// page out: it would spend money, and under a name that was pointed to this machine read the
// answers too.
func (g *Gateway) fromPage(r *http.Request) bool {
	if len(g.o.Router().Config().ClientKeys) > 0 {
		return false
	}
	return loopback.ForeignPage(r) || !loopback.Socket(r.RemoteAddr) && !loopback.Host(r.Host) && !loopback.Address(r.Host)
}

// panicked answers for a bug. A stream that has begun is cut, so that no client takes it for whole.
func (g *Gateway) panicked(w http.ResponseWriter, r *http.Request, p any) {
	if err, ok := p.(error); ok && errors.Is(err, http.ErrAbortHandler) {
		panic(p)
	}
	g.panics.Add(1)
	g.log.Error("a request has panicked; this is a bug", "request_id", idOf(w), "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
	if w.Header().Get("X-Omniroute-Attempts") != "" {
		panic(http.ErrAbortHandler)
	}
	g.fail(w, r, &dialect.ErrorReport{Status: http.StatusInternalServerError, Message: "The gateway has failed; its log says more under this request id."})
}

// generate relays every POST that names a model.
//
// The goroutine of a stream spends its life below here and keeps a stack for all of it, so that nothing
// but what the relay needs is on it.
func (g *Gateway) generate(w http.ResponseWriter, r *http.Request) {
	if q := g.accept(w, r); q != nil {
		g.relay.Serve(w, r, q)
	}
}

// accept reads what a request asks for. It returns nil where it has answered with an error.
func (g *Gateway) accept(w http.ResponseWriter, r *http.Request) *relay.Request {
	router := g.o.Router()
	body, report := g.readBody(w, r, router.Config())
	if report != nil {
		g.fail(w, r, report)
		return nil
	}
	d := dialectOf(r)
	asked, err := read(d, r, body.B)
	if err != nil {
		body.Release()
		g.fail(w, r, refusal(err))
		return nil
	}
	name := asked.Model
	var pinned *resilience.Key
	if d == response {
		previous, err := responses.PreviousID(body.B)
		if err != nil {
			body.Release()
			g.fail(w, r, refusal(err))
			return nil
		}
		if name, pinned, report = g.pinned(r, previous, name); report != nil {
			body.Release()
			g.fail(w, r, report)
			return nil
		}
	}
	to, barred, err := g.resolve(r, d, name, asked.Model)
	if err != nil {
		body.Release()
		g.fail(w, r, refusal(err))
		return nil
	}
	return &relay.Request{
		ID: idOf(w), Route: to, Dialect: d, Asked: asked, Body: body, Pinned: pinned, Barred: barred, Caller: caller(r),
		Session: sessionOf(r, &router.Config().Affinity, body.B),
	}
}

// cleanPath bounds what an error repeats of a path.
func cleanPath(p string) string {
	if len(p) > 100 {
		p = p[:100] + "…"
	}
	return strings.ToValidUTF8(p, "?")
}

// fail answers a request that did not come to be relayed.
func (g *Gateway) fail(w http.ResponseWriter, r *http.Request, rep *dialect.ErrorReport) {
	d := dialectOf(r)
	rep.RequestID = idOf(w)
	status := d.ErrorStatus(rep)
	relay.WriteError(w, d, rep, rep.StatusCode() == http.StatusServiceUnavailable || rep.Code == dialect.CodeClientRateLimited)
	g.observe(telemetry.Story{ID: idOf(w), At: time.Now(), Method: r.Method, Path: cleanPath(r.URL.Path), Dialect: d.Name(), Status: status, Code: errorWord(rep),
		Stranger: g.stranger(r), TraceParent: telemetry.ParentOf(r.Header)})
}

func errorWord(rep *dialect.ErrorReport) string {
	if rep.Code != "" {
		return rep.Code
	}
	return "invalid_request"
}

// observe logs a request's story and passes it on.
func (g *Gateway) observe(s telemetry.Story) {
	level := slog.LevelInfo
	if s.Status >= 500 || s.Broke != "" && s.FirstContent == 0 { // or a status that was sent too early
		level = slog.LevelWarn
	}
	if g.log.Enabled(context.Background(), level) {
		attrs := []slog.Attr{slog.String("id", s.ID), slog.Int("status", s.Status), slog.Duration("took", s.Duration.Round(time.Microsecond))}
		if s.Model != "" {
			attrs = append(attrs, slog.String("model", clip(s.Model)), slog.Int("attempts", len(s.Attempts)))
		}
		if s.FirstContent > 0 {
			attrs = append(attrs, slog.Duration("first", s.FirstContent.Round(time.Microsecond)))
		}
		if a := s.Answered(); a != nil {
			attrs = append(attrs, slog.String("target", a.Key.String()))
		}
		if h := s.Hedged(); h != "" {
			attrs = append(attrs, slog.String("hedge", h))
		}
		if why := cmp.Or(s.Broke, s.Code); why != "" {
			attrs = append(attrs, slog.String("error", why))
		}
		if c := s.Recovery; c != nil {
			attrs = append(attrs, slog.String("recovery", string(c.Outcome)), slog.Int("broke_after_bytes", c.Bytes))
		}
		g.log.LogAttrs(context.Background(), level, "request", attrs...)
	}
	if g.o.Observe != nil {
		g.o.Observe(s)
	}
}

func clip(s string) string {
	if len(s) > 100 {
		return s[:100] + "…"
	}
	return s
}
