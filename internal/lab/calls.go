package lab

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// Call is one request that reached the provider and asked for a model.
type Call struct {
	// At is when it arrived and End when it was over; End is zero while it is answered.
	At, End time.Time
	// Path is the path as it was asked for.
	Path string
	// Connection and Model say who asked for what.
	Connection, Model string
	// Stream says that a streamed answer was asked for.
	Stream bool
	// Reused says that the connection had carried another request before.
	Reused bool
	// Outcome is "ok" or the names of the faults that met the call, joined by "+". It is decided
	// at the arrival.
	Outcome string
	// Turn is the number of the call on its target, from 1.
	Turn int
	// Canceled says that the client left before the end.
	Canceled bool
}

// Request is what a client sent, for assertions.
type Request struct {
	At                time.Time
	Method, Path      string
	Header            http.Header
	Body              []byte
	Connection, Model string
}

// Count is the number of calls of one kind.
type Count struct {
	Connection, Model, Outcome string
	N                          int
}

type countKey struct{ connection, model, outcome string }

// recorder counts at the upstream's side.
type recorder struct {
	keepCalls, keepRequests int

	mu       sync.Mutex
	total    int
	inFlight int
	counts   map[countKey]int
	calls    []*Call
	requests []Request
	changed  chan struct{} // closed and replaced with each change, once somebody waits
}

func newRecorder(calls, requests int) recorder {
	if calls == 0 {
		calls = 10_000
	}
	if requests == 0 {
		requests = 64
	}
	return recorder{keepCalls: max(calls, 0), keepRequests: max(requests, 0), counts: make(map[countKey]int)}
}

func (r *recorder) begin(c Call, req Request) *Call {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.total++
	r.inFlight++
	k := countKey{c.Connection, c.Model, c.Outcome}
	if _, known := r.counts[k]; !known && len(r.counts) >= maxTargets {
		k = countKey{"other", "other", c.Outcome}
	}
	r.counts[k]++
	r.calls = keep(r.calls, &c, r.keepCalls)
	r.requests = keep(r.requests, req, r.keepRequests)
	r.notify()
	return &c
}

func (r *recorder) end(c *Call, canceled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.inFlight--
	c.End, c.Canceled = time.Now(), canceled
	r.notify()
}

func (r *recorder) request(req Request) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = keep(r.requests, req, r.keepRequests)
}

func (r *recorder) notify() {
	if r.changed != nil {
		close(r.changed)
		r.changed = nil
	}
}

// keep appends v and lets the slice grow to twice the bound before it drops the oldest half.
func keep[T any](s []T, v T, bound int) []T {
	if bound == 0 {
		return nil
	}
	s = append(s, v)
	if len(s) >= 2*bound {
		s = slices.Clone(s[len(s)-bound:])
	}
	return s
}

func newest[T any](s []T, bound int) []T { return s[max(0, len(s)-bound):] }

// Calls returns the calls in the order of their arrival, at most Options.KeepCalls of them.
func (p *Provider) Calls() []Call {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	var calls []Call
	for _, c := range newest(p.rec.calls, p.rec.keepCalls) {
		calls = append(calls, *c)
	}
	return calls
}

// Requests returns the last requests, the newest at the end, at most Options.KeepRequests of them.
// What they hold must not be changed.
func (p *Provider) Requests() []Request {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	return slices.Clone(newest(p.rec.requests, p.rec.keepRequests))
}

// LastRequest returns the newest request; the zero Request if there was none.
func (p *Provider) LastRequest() Request {
	all := p.Requests()
	if len(all) == 0 {
		return Request{}
	}
	return all[len(all)-1]
}

// Total returns how many calls arrived.
func (p *Provider) Total() int {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	return p.rec.total
}

// InFlight returns how many calls are being answered, hung ones included.
func (p *Provider) InFlight() int {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	return p.rec.inFlight
}

// Count returns how many calls came for a model on a connection. An empty name counts all.
func (p *Provider) Count(connection, model string) int {
	n := 0
	for _, c := range p.Counts() {
		if (connection == "" || c.Connection == connection) && (model == "" || c.Model == model) {
			n += c.N
		}
	}
	return n
}

// CountOutcome returns how many calls met this outcome, "ok" for example.
func (p *Provider) CountOutcome(outcome string) int {
	n := 0
	for _, c := range p.Counts() {
		if c.Outcome == outcome {
			n += c.N
		}
	}
	return n
}

// Counts returns the number of calls by connection, model and outcome, sorted. After 10000 different
// ones the rest counts for the connection and model "other".
func (p *Provider) Counts() []Count {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	all := make([]Count, 0, len(p.rec.counts))
	for k, n := range p.rec.counts {
		all = append(all, Count{k.connection, k.model, k.outcome, n})
	}
	slices.SortFunc(all, func(a, b Count) int {
		return cmp.Or(cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Model, b.Model), cmp.Compare(a.Outcome, b.Outcome))
	})
	return all
}

// Forget drops every count, call and request recorded so far. Calls in flight stay in flight.
func (p *Provider) Forget() {
	p.rec.mu.Lock()
	defer p.rec.mu.Unlock()
	p.rec.total, p.rec.calls, p.rec.requests = 0, nil, nil
	clear(p.rec.counts)
}

// Await returns nil once total calls have arrived and at most inFlight of them are still being
// answered, or the context's error. It is how a test waits without sleeping.
func (p *Provider) Await(ctx context.Context, total, inFlight int) error {
	for {
		p.rec.mu.Lock()
		if p.rec.total >= total && p.rec.inFlight <= inFlight {
			p.rec.mu.Unlock()
			return nil
		}
		if p.rec.changed == nil {
			p.rec.changed = make(chan struct{})
		}
		changed := p.rec.changed
		p.rec.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
