package resilience

import (
	"errors"
	"io"
	"log/slog"
	"sync"
	"testing"
	"time"
)

// epoch is when every test's virtual clock starts.
var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// fakeClock is a clock that a test moves.
type fakeClock struct {
	mu sync.Mutex
	t  time.Time
}

func newClock() *fakeClock { return &fakeClock{t: epoch} }

func (c *fakeClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.t
}

func (c *fakeClock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.t = t
}

// rig is an engine on a virtual clock, with what a test wants to say about it.
type rig struct {
	t testing.TB
	*Engine
	clock  *fakeClock
	mu     sync.Mutex
	events []Event
}

// quiet keeps the engine's own words out of the tests' output.
var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	r := &rig{t: t, clock: newClock()}
	o.Now, o.Logger = r.clock.Now, quiet
	o.OnEvent = func(e Event) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.events = append(r.events, e)
	}
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Engine = e
	return r
}

// at moves the clock to that time since the epoch; it never goes back.
func (r *rig) at(d time.Duration) {
	r.t.Helper()
	next := epoch.Add(d)
	if next.Before(r.clock.Now()) {
		r.t.Fatalf("the clock would go back to %v", d)
	}
	r.clock.set(next)
}

// seen counts the events of a type.
func (r *rig) seen(typ EventType) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, e := range r.events {
		if e.Type == typ {
			n++
		}
	}
	return n
}

// target reads "provider/connection/model".
func target(s string) Key {
	var parts [3]string
	n := 0
	for i := range s {
		if s[i] == '/' && n < 2 {
			n++
			continue
		}
		parts[n] += s[i : i+1]
	}
	return Key{parts[0], parts[1], parts[2]}
}

// take takes a permit that must be granted.
func (r *rig) take(k string) Permit {
	r.t.Helper()
	p, err := r.Target(target(k)).Acquire()
	if err != nil {
		r.t.Fatalf("at %v: %v", r.clock.Now().Sub(epoch), err)
	}
	return p
}

// takeAs is take, and the permit must be of that mode.
func (r *rig) takeAs(k string, mode permitMode) Permit {
	r.t.Helper()
	p := r.take(k)
	if p.mode != mode {
		r.t.Fatalf("at %v the permit for %s has mode %v, want %v", r.clock.Now().Sub(epoch), k, p.mode, mode)
	}
	return p
}

// refused wants a refusal and returns it.
func (r *rig) refused(k string) *ExcludedError {
	r.t.Helper()
	p, err := r.Target(target(k)).Acquire()
	if err == nil {
		p.Neutral()
		r.t.Fatalf("at %v: %s is admitted, want a refusal", r.clock.Now().Sub(epoch), k)
	}
	var x *ExcludedError
	if !errors.As(err, &x) || !errors.Is(err, ErrExcluded) {
		r.t.Fatalf("the refusal is %T %v, want an *ExcludedError", err, err)
	}
	return x
}

// refusedFor wants a refusal by that layer with that kind and that remaining time.
func (r *rig) refusedFor(k string, layer Layer, kind Kind, left time.Duration) *ExcludedError {
	r.t.Helper()
	x := r.refused(k)
	got := time.Duration(-1)
	if !x.Until.IsZero() {
		got = x.Until.Sub(r.clock.Now())
	}
	if x.Layer != layer || x.Kind != kind || got != left {
		r.t.Fatalf("at %v %s is refused by %v for %v, %v left; want %v, %v, %v",
			r.clock.Now().Sub(epoch), k, x.Layer, x.Kind, got, layer, kind, left)
	}
	return x
}

func (r *rig) ok(k string)              { r.t.Helper(); r.take(k).Success() }
func (r *rig) fail(k string, v Verdict) { r.t.Helper(); r.take(k).Failure(v) }

func (r *rig) ready(k string) bool { return r.IsReady(target(k)) }

// wantReady wants the target to be admitted, or not, now.
func (r *rig) wantReady(k string, want bool) {
	r.t.Helper()
	if got := r.ready(k); got != want {
		r.t.Fatalf("at %v: %s ready is %v, want %v", r.clock.Now().Sub(epoch), k, got, want)
	}
}

func (r *rig) wantState(provider string, want BreakerState, failures int) {
	r.t.Helper()
	if b := r.provider(provider).Breaker; b.State != want || b.Failures != failures {
		r.t.Fatalf("at %v: breaker of %s is %v with %d failures, want %v with %d",
			r.clock.Now().Sub(epoch), provider, b.State, b.Failures, want, failures)
	}
}

func (r *rig) provider(id string) ProviderStatus {
	r.t.Helper()
	for _, p := range r.Status().Providers {
		if p.ID == id {
			return p
		}
	}
	r.t.Fatalf("no provider %s in the status", id)
	return ProviderStatus{}
}

func (r *rig) conn(provider, id string) ConnectionStatus {
	r.t.Helper()
	for _, c := range r.provider(provider).Connections {
		if c.ID == id {
			return c
		}
	}
	r.t.Fatalf("no connection %s/%s in the status", provider, id)
	return ConnectionStatus{}
}

func (r *rig) lockout(k string) (LockoutStatus, bool) {
	key := target(k)
	for _, l := range r.Status().Lockouts {
		if l.Provider == key.Provider && l.Connection == key.Connection && l.Model == key.Model {
			return l, true
		}
	}
	return LockoutStatus{}, false
}

// The verdicts that tests speak of.
func down(k Kind) Verdict    { return Verdict{Scope: ScopeProvider, Kind: k} }
func account(k Kind) Verdict { return Verdict{Scope: ScopeConnection, Kind: k} }
func model(k Kind) Verdict   { return Verdict{Scope: ScopeModel, Kind: k} }

func (v Verdict) after(d time.Duration) Verdict { v.RetryAfter = d; return v }

var (
	err500  = down(KindServerError)
	err429  = account(KindRateLimit)
	dialErr = Verdict{Scope: ScopeProvider, Kind: KindNetwork, Dial: true}
	revoked = Verdict{Scope: ScopeConnection, Kind: KindAuth, Quarantine: true}
)

const (
	ms  = time.Millisecond
	sec = time.Second
)

// trip trips the provider's breaker with failures of two models, so that contrast has no say.
func (r *rig) trip(provider string) {
	r.t.Helper()
	threshold := r.policyFor(provider).Breaker.FailureThreshold
	var ps []Permit
	for i := range threshold {
		ps = append(ps, r.take(provider+"/c"+string(rune('0'+i))+"/m"+string(rune('0'+i%2))))
	}
	for _, p := range ps {
		p.Failure(err500)
	}
	r.wantState(provider, Open, threshold)
}

func (r *rig) policyFor(id string) *Policy {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Engine.mu.Lock()
	defer r.Engine.mu.Unlock()
	return r.policyOf(id)
}

// policy is options with the defaults but for a change.
func policy(change func(*Policy)) Options {
	var p Policy
	change(&p)
	return Options{Config: Config{Policy: p}}
}

// seconds turns numbers into durations, for tables.
func seconds(ns ...int) []time.Duration {
	ds := make([]time.Duration, len(ns))
	for i, n := range ns {
		ds[i] = time.Duration(n) * time.Second
	}
	return ds
}
