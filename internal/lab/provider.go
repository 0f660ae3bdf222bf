package lab

import (
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Options describe a [Provider]. The zero Options are a well provider at full speed that takes
// every key and every model.
type Options struct {
	// Name is the provider's name in its answers and request ids. Defaults to "lab".
	Name string
	// Seed makes everything random repeat itself.
	Seed uint64
	// Keys maps an API key to the name of its connection; any other key gets 401. Nil means that
	// every key is taken and is its own connection's name ("" without a key).
	Keys map[string]string
	// Models are the models that exist; others get 404 model_not_found. Nil means every model
	// exists. The fault models of [Faults] always do.
	Models []string
	// Faulty makes the provider's models the faults themselves, named without "fault/" ("429",
	// "cut:8"). A gateway that calls the provider "fault" then offers fault/429 and so on.
	Faulty bool
	// Script is what goes wrong, and when. Nothing, by default.
	Script []Phase
	// Period makes the script start again after this time. Zero means it runs once.
	Period time.Duration
	// Latency is the pace of good answers.
	Latency Latency
	// Text makes the text of an answer. Defaults to a sentence that names the provider, the
	// connection and the model. It may be called concurrently.
	Text func(Prompt) string
	// KeepCalls and KeepRequests bound what [Provider.Calls] and [Provider.Requests] remember.
	// Default to 10000 and 64; negative means none. Counts are never bounded.
	KeepCalls, KeepRequests int
	// Now is the provider's clock. Defaults to time.Now.
	Now func() time.Time
}

// Prompt is what an answer is made from.
type Prompt struct {
	Provider, Connection, Model string
	// Last is the text of the last user message.
	Last string
	// Call is the number of the call on its target, from 1.
	Call int
}

// Provider is a simulated AI provider. It is an http.Handler that serves the OpenAI paths with or
// without the prefix /v1. Any other POST with a model, JSON or multipart, is answered with an object
// that has an id and names the path. The faults that end a connection need an HTTP/1 server; the one that
// resets reused connections also needs its ConnContext, which [Serve] sets. All methods may be
// called concurrently.
type Provider struct {
	opt Options
	rec recorder

	mu     sync.Mutex
	script []Phase
	start  time.Time
	turns  map[target]int
}

type target struct{ connection, model string }

// New returns a provider whose script starts now.
func New(o Options) *Provider {
	if o.Name == "" {
		o.Name = "lab"
	}
	if o.Text == nil {
		o.Text = lively
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Provider{
		opt:    o,
		rec:    newRecorder(o.KeepCalls, o.KeepRequests),
		script: o.Script,
		start:  o.Now(),
		turns:  make(map[target]int),
	}
}

// SetScript replaces the script and starts it now. Requests in flight keep their fate.
func (p *Provider) SetScript(phases ...Phase) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.script, p.start = phases, p.opt.Now()
}

// SetFault makes every call fail in this way from now on; the zero Fault makes the provider well.
func (p *Provider) SetFault(f Fault) { p.SetScript(Always(f)) }

// Restart starts the script again from its beginning.
func (p *Provider) Restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.start = p.opt.Now()
}

// ConnContext marks the connections of an http.Server, so that the provider can tell the first
// request on one from those that reuse it.
func (p *Provider) ConnContext(ctx context.Context, _ net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, &connState{})
}

type connKey struct{}

// connState is touched by one request at a time: HTTP/1 connections carry them one by one.
type connState struct{ served int }

// maxTargets bounds the memory that made-up model names can take.
const maxTargets = 10_000

// maxBody bounds a request's body.
const maxBody = 64 << 20

// ServeHTTP answers one request.
func (p *Provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	now := p.opt.Now()
	reused := false
	if s, ok := r.Context().Value(connKey{}).(*connState); ok {
		reused = s.served > 0
		s.served++
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if r.Context().Err() == nil {
			errTooLarge().write(w, now)
		}
		return
	}

	path := strings.TrimPrefix(r.URL.Path, "/v1")
	connection, known := p.connectionOf(r.Header)
	switch {
	case r.Method == http.MethodGet && (path == "/models" || strings.HasPrefix(path, "/models/")):
		p.rec.request(Request{At: now, Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Connection: connection})
		if !known {
			errUnauthorized().write(w, now)
			return
		}
		p.serveModels(w, strings.TrimPrefix(strings.TrimPrefix(path, "/models"), "/"), now)
		return
	case r.Method != http.MethodPost && endpoints[path] == 0:
		errNoPath(r.Method, r.URL.Path).write(w, now)
		return
	case r.Method != http.MethodPost:
		w.Header().Set("Allow", http.MethodPost)
		errMethod(r.Method).write(w, now)
		return
	}

	x := &exchange{p: p, w: w, r: r, now: now, reused: reused, connection: connection, endpoint: endpointOf(path)}
	bad := x.parse(body)
	x.model = x.req.Model
	x.turn, x.rnd = p.take(connection, x.model)
	switch {
	case !known:
		x.settle(errUnauthorized().fault("401"))
	case bad != nil:
		x.settle(bad.fault("invalid-request"))
	default:
		p.decide(x)
	}
	x.call = p.rec.begin(Call{
		At: now, Path: r.URL.Path, Connection: connection, Model: x.model, Stream: x.req.Stream,
		Reused: reused, Outcome: x.outcome(), Turn: x.turn,
	}, Request{
		At: now, Method: r.Method, Path: r.URL.Path, Header: r.Header.Clone(), Body: body,
		Connection: connection, Model: x.model,
	})
	// Deferred, because aborting an answer that cannot be hijacked panics.
	defer func() { p.rec.end(x.call, r.Context().Err() != nil) }()
	x.serve()
}

// connectionOf finds whose key the request carries.
func (p *Provider) connectionOf(h http.Header) (name string, known bool) {
	key := ""
	if auth := h.Get("Authorization"); len(auth) > 7 && strings.EqualFold(auth[:7], "bearer ") {
		key = strings.TrimSpace(auth[7:])
	}
	for _, name := range []string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"} {
		if key == "" {
			key = h.Get(name)
		}
	}
	if p.opt.Keys == nil {
		return key, true
	}
	name, known = p.opt.Keys[key]
	return name, known
}

// take numbers the call on its target and seeds its dice with that.
func (p *Provider) take(connection, model string) (int, *rand.Rand) {
	p.mu.Lock()
	t := target{connection, model}
	if _, known := p.turns[t]; !known && len(p.turns) >= maxTargets {
		t = target{}
	}
	p.turns[t]++
	turn := p.turns[t]
	p.mu.Unlock()
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s\x00%s", p.opt.Name, connection, model)
	return turn, rand.New(rand.NewPCG(p.opt.Seed^h.Sum64(), uint64(turn)))
}

// decide finds out what becomes of a call. It takes no time.
func (p *Provider) decide(x *exchange) {
	if name, ok := strings.CutPrefix(x.model, faultPrefix); ok || p.opt.Faulty {
		f, err := ParseFault(name)
		if err != nil {
			f = errModelNotFound(x.model, err.Error()).fault("404")
		}
		f.applyTo(x)
		return
	}
	p.mu.Lock()
	script, at := p.script, x.now.Sub(p.start)
	p.mu.Unlock()
	if p.opt.Period > 0 {
		at %= p.opt.Period
	}
	for _, phase := range script {
		if phase.covers(at, x.connection, x.model) && (phase.Fault.apply == nil || phase.Fault.applyTo(x)) {
			break
		}
	}
	if x.final == nil && !p.has(x.model) {
		x.settle(errModelNotFound(x.model, "").fault("404"))
	}
}

func (p *Provider) has(model string) bool {
	if p.opt.Models == nil {
		return true
	}
	return slices.Contains(p.opt.Models, model)
}
