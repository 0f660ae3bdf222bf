package relay

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// Options are what a Relay works with. All are needed but Observe and Logger.
type Options struct {
	Runner *failover.Runner
	// Classifier returns the judge of the configuration in force.
	Classifier func() *classify.Classifier
	// Hide takes every secret of the configuration in force out of what an upstream says. Nil hides
	// nothing.
	Hide func(string) string
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
	addresses  addresses
	makers     makers
	running    sync.WaitGroup
}

// New returns a Relay.
func New(o Options) *Relay {
	if o.Hide == nil {
		o.Hide = func(s string) string { return s }
	}
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
	// Body holds the bytes of Asked.Body. Serve releases it as soon as no further attempt can need
	// them. Nil: the bytes are not to be used again.
	Body *Buffer
	// Pinned is the one target that may answer, where only that has what the request names. Nil
	// means any.
	Pinned *resilience.Key
	// Stored is the id of a stored response that the path names, empty where it names none.
	Stored string
	// Caller tells the clients of one key from those of another.
	Caller uint64
	// Barred says by place which of the plan's targets the request may not use. Nil: it may use all.
	Barred []bool
	// Session names the conversation that the request belongs to; empty where none was named.
	Session string
}

// exchange is the state of one request.
type exchange struct {
	*Request
	rl        *Relay
	w         http.ResponseWriter
	out       *http.ResponseController
	r         *http.Request // its context is done when the client has left, its header is there until letGo
	limits    *config.Relay
	handle    *failover.Handle // nil once nothing else will be tried, and answering says what becomes of the answer
	answering failover.Answering
	picker    failover.Picker
	calls     []*call
	few       [2]*call // room for calls
	started   time.Time
	story     plot
	alive     *keepalive // nil where the client gets no signs of life
	// reaching counts the calls that have neither come to their first content nor failed.
	reaching atomic.Int32

	lasting bool // it makes something that stays (law R10)
	hurried bool // a write deadline was set
	gone    bool // the client has left
	// released says that the bytes of the body are not ours to read any more.
	released bool
	// recovers says that an answer that breaks off may be finished by another attempt; recovery is
	// set once that is tried.
	recovers bool
	recovery *recovery

	speeches []speech         // for targets of other dialects
	passed   *dialect.Request // what passes through in place of Asked, if not nil
	unfit    []failover.Skip  // targets that cannot take the request

	// stopped is the verdict that may not be followed by another attempt, since the upstream may
	// have done what was asked for.
	stopped *resilience.Verdict

	mu     sync.Mutex
	inline *call                // runs in the handler's own goroutine
	driver chan failover.Action // set once another goroutine drives; it says how the request ends
}

// plot is what is noted of a request's story on the way; the rest is known at the end.
type plot struct {
	Status       int
	Code, Broke  string
	Session      string
	TraceParent  string
	Usage        *dialect.Usage // nil where there was no answer
	Recovery     *telemetry.Recovery
	FirstContent time.Duration
	Gaps         []*telemetry.Gaps
	Skipped      []failover.Skip
}

// Serve answers one request: with the first good answer of the route's targets, or with an error
// in the client's dialect.
func (rl *Relay) Serve(w http.ResponseWriter, r *http.Request, q *Request) {
	x := &exchange{
		Request: q, rl: rl, w: w, out: http.NewResponseController(w), r: r,
		limits: &q.Route.Relay, lasting: lasting(q.Asked), started: time.Now(), story: plot{TraceParent: telemetry.ParentOf(r.Header)},
	}
	x.calls = x.few[:0]
	x.picker = q.Route.Picker(route.Asked{Stream: q.Asked.Stream, Session: q.Session})
	defer q.Route.Done(x.picker)
	x.handle = x.request()
	defer x.finish()
	if x.lasting {
		x.handle.Single()
	}
	for i, barred := range q.Barred {
		if barred {
			x.handle.Bar(i)
		}
	}
	err := x.prepare()
	if err != nil {
		x.refuse(err)
		return
	}
	x.recovers = x.recoverable()
	x.keepAlive()
	for c := x.choose(); c != nil; {
		x.commit(c)
		c = x.settle(c)
	}
}

// choose drives the request and returns the attempt whose answer is the answer. It returns nil
// when there is none, and then everything has been said.
func (x *exchange) choose() *call {
	switch act := x.drive(x.do(failover.Event{Type: failover.Begin})); act.Type {
	case failover.Commit:
		return x.call(act.Attempt.ID)
	case failover.GiveUp:
		x.giveUp()
	default:
		x.abandoned()
	}
	return nil
}

// settle says how the answer ended. It returns the attempt that goes on with it where one does.
func (x *exchange) settle(c *call) *call {
	x.story.Usage = &c.told.usage
	x.remember(c)
	c.noteUse()
	var outcome resilience.Verdict
	if c.outcome != nil {
		outcome = *c.outcome
	}
	if x.handle == nil {
		x.answering.End(outcome, c.status, time.Now())
		return nil
	}
	ev := failover.Event{Type: failover.Ended, Attempt: c.attempt.ID, Verdict: outcome, Status: c.status}
	if x.recovery == nil {
		x.handle.Do(ev)
		return nil
	}
	return x.settleRecovery(c, ev)
}

// part ends the trying: whatever becomes of the answer, no further attempt follows.
func (x *exchange) part() {
	x.letGo()
	x.passedOver()
	x.answering, x.handle = x.handle.Part(), nil
}

// abandoned ends a request that nobody goes on with before an answer has begun.
func (x *exchange) abandoned() {
	if !x.shuttingDown() {
		x.alive.stop()
		x.left()
		return
	}
	rep := shutdownReport(x.ID)
	rep.RetryAfter = time.Second
	x.sayError(rep, true)
}

// ErrShuttingDown is the cause by which a server cancels the contexts of requests that run longer
// than it does. Each then ends at once: a stream with an error event that says so, and a request
// without an answer with an error. The upstream is blamed for neither. Other causes mean that the
// client has left.
var ErrShuttingDown = errors.New("the gateway is shutting down")

func (x *exchange) shuttingDown() bool { return context.Cause(x.r.Context()) == ErrShuttingDown } //nolint:errorlint // our own value, never wrapped

func shutdownReport(id string) *dialect.ErrorReport {
	return &dialect.ErrorReport{Code: dialect.CodeShuttingDown, Message: "The gateway is shutting down and could not wait for the end of the answer.", RequestID: id}
}

// statusClientGone is what the log says of a client that left before an answer.
const statusClientGone = 499

func (x *exchange) call(id int) *call { return x.calls[id-1] } // ids count from 1, in order

// left notes that the client has left.
func (x *exchange) left() { x.gone, x.story.Status = true, statusClientGone }

// hangUp cuts the connection of a client that counts as gone. One that has only stopped sending
// still reads, and would take the regular end of what was written for a whole answer.
func (x *exchange) hangUp() {
	_ = x.out.SetWriteDeadline(time.Unix(1, 0)) // a writer that cannot has nobody on the other side
}

// letGo gives back what only a further attempt would need, once there will be none: the request's body,
// what it was translated to, and its header. So a long answer does not keep a long question in memory.
func (x *exchange) letGo() {
	if x.released {
		return
	}
	x.Body.Release()
	x.Body, x.released = nil, true
	if x.reaching.Load() > 0 {
		return // one that has lost may still be reading
	}
	x.Asked.Body, x.passed, x.speeches = nil, nil, nil
	x.r.Header = nil // the server keeps the request as long as we do
	for _, c := range x.calls {
		c.letGo()
	}
}

// finish gives back everything and tells the story.
func (x *exchange) finish() {
	x.alive.stop()
	for _, c := range x.calls {
		c.end()
	}
	x.letGo()
	if x.gone {
		x.hangUp()
	}
	attempts := x.close()
	if x.rl.o.Observe == nil {
		return
	}
	p := &x.story
	var usage dialect.Usage
	if p.Usage != nil {
		usage = *p.Usage
	}
	x.rl.o.Observe(telemetry.Story{
		ID: x.ID, At: x.started, Duration: time.Since(x.started), Dialect: x.Dialect.Name(), Method: x.r.Method, Path: x.Asked.Path,
		Model: x.Asked.Model, Route: x.Route.Name, Stream: x.Asked.Stream, TraceParent: p.TraceParent,
		Status: p.Status, Code: p.Code, Broke: p.Broke, Session: p.Session, Usage: usage, Recovery: p.Recovery,
		FirstContent: p.FirstContent, Attempts: attempts, Gaps: p.Gaps, Skipped: p.Skipped,
	})
}

// close settles what is not settled yet and returns the story of the attempts.
func (x *exchange) close() []failover.Record {
	if x.handle == nil {
		x.answering.Abandon(time.Now())
		return x.answering.Records()
	}
	x.handle.Close()
	if x.story.Skipped == nil {
		x.passedOver()
	}
	return x.handle.Records()
}

// passedOver notes which targets an answered request has passed over.
func (x *exchange) passedOver() {
	x.story.Skipped = slices.Concat(x.unfit, x.handle.Passed(time.Now()))
}
