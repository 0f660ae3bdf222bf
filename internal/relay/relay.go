package relay

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
)

// Options are what a Relay works with. All are needed but Observe and Logger.
type Options struct {
	Runner *failover.Runner
	// Classifier returns the judge of the configuration in force.
	Classifier func() *classify.Classifier
	// Observe is told each request's story at its end.
	Observe func(telemetry.Story)
	Logger  *slog.Logger
	// Dial replaces the way to upstreams, for tests on a network in memory.
	Dial func(ctx context.Context, network, address string) (conn Conn, err error)
}

// Relay sends requests over plans. It is safe for concurrent use.
type Relay struct {
	o          Options
	log        *slog.Logger
	transports transports
	running    sync.WaitGroup
}

// New returns a Relay.
func New(o Options) *Relay {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Relay{o: o, log: o.Logger, transports: transports{dial: o.Dial}}
}

// Close ends idle connections to upstreams and waits for attempts that were cancelled. No
// request may be running.
func (rl *Relay) Close() {
	rl.running.Wait()
	rl.transports.close()
}

// Request is one client request on its way through Serve.
type Request struct {
	ID      string
	Route   *route.Route
	Dialect dialect.Dialect
	// Asked is what the client wants; its body has been read.
	Asked *dialect.Request
}

// exchange is the state of one request.
type exchange struct {
	*Request
	rl      *Relay
	w       http.ResponseWriter
	r       *http.Request
	limits  config.Relay
	handle  *failover.Handle
	calls   []*call
	started time.Time
	sent    bool // something has gone to the client
	story   telemetry.Story
}

// Serve answers one request: with the first good answer of the route's targets, or with an error
// in the client's dialect.
func (rl *Relay) Serve(w http.ResponseWriter, r *http.Request, q *Request) {
	x := &exchange{Request: q, rl: rl, w: w, r: r, limits: q.Route.Relay, started: time.Now()}
	fr := failover.NewRequest(q.Route.Plan, q.Route.Order(), q.Asked.Stream)
	x.handle = rl.o.Runner.Handle(fr)
	ctx, cancel := context.WithTimeout(r.Context(), q.Route.Plan.Limits.Deadline)
	defer cancel()
	defer x.finish()
	x.drive(ctx)
}

func (x *exchange) drive(ctx context.Context) {
	act := x.handle.Do(failover.Event{Type: failover.Begin})
	for {
		for _, a := range act.Cancel {
			x.call(a.ID).cancel(context.Canceled)
		}
		switch act.Type {
		case failover.Dispatch:
			x.dispatch(ctx, act.Attempt)
		case failover.Commit:
			c := x.call(act.Attempt.ID)
			v, status := x.commit(ctx, c)
			x.handle.Do(failover.Event{Type: failover.Ended, Attempt: c.attempt.ID, Verdict: v, Status: status})
			return
		case failover.GiveUp:
			x.giveUp()
			return
		case failover.Finish:
			x.story.Status = statusClientGone
			return
		}
		act = x.handle.Do(x.handle.Next(ctx))
	}
}

// statusClientGone is what the log says of a client that left before an answer.
const statusClientGone = 499

func (x *exchange) call(id int) *call { return x.calls[id-1] } // ids count from 1, in order

// dispatch starts an attempt in a goroutine of its own, since another one may run beside it.
func (x *exchange) dispatch(ctx context.Context, a *failover.Attempt) {
	c := newCall(ctx, x, a)
	x.calls = append(x.calls, c)
	x.rl.running.Add(1)
	go func() {
		defer x.rl.running.Done()
		x.handle.Tell(c.run())
	}()
}

// finish gives back everything and tells the story.
func (x *exchange) finish() {
	for _, c := range x.calls {
		c.cancel(context.Canceled)
	}
	x.handle.Close()
	s := &x.story
	s.ID, s.At, s.Duration = x.ID, x.started, time.Since(x.started)
	s.Dialect, s.Method, s.Path = x.Dialect.Name(), x.r.Method, x.Asked.Path
	s.Model, s.Route, s.Stream = x.Asked.Model, x.Route.Name, x.Asked.Stream
	s.Attempts = x.handle.Records()
	if x.rl.o.Observe != nil {
		x.rl.o.Observe(*s)
	}
}
