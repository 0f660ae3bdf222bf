package resilience

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// Many goroutines do everything at once; run it with -race. At the end one order of settling
// must have left a consistent engine.
func TestHammer(t *testing.T) {
	t.Parallel()
	var last atomic.Uint64
	var events atomic.Int64
	var over atomic.Bool
	store := newStore()
	var e *Engine
	e, err := New(Options{Store: store, Logger: quiet, OnEvent: func(ev Event) {
		if was := last.Swap(ev.Seq); ev.Seq <= was {
			t.Errorf("event %d comes after %d", ev.Seq, was)
		}
		if events.Add(1)%64 == 0 && !over.Load() {
			e.Status() // a handler may call the engine
			e.RecordFailure(target("handler/a/m"), err500)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	configs := []Config{
		{},
		{Providers: map[string]Provider{"p0": {Endpoint: "x", Connections: []Connection{{ID: "c0", Credential: "1"}, {ID: "c1"}}}, "p1": {Connections: []Connection{{ID: "c0"}}}}},
		{Providers: map[string]Provider{"p0": {Endpoint: "x", Connections: []Connection{{ID: "c0", Credential: "2", Endpoint: "y"}, {ID: "c1"}}}, "p2": {}}},
	}
	verdicts := []Verdict{err500, err429, revoked, dialErr, model(KindModelNotFound), down(KindPermission), {Scope: ScopeRequest}, {}, err500.after(ms)}
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			rnd := rand.New(rand.NewPCG(uint64(g), 1))
			for range 1500 {
				k := Key{fmt.Sprintf("p%d", rnd.IntN(3)), fmt.Sprintf("c%d", rnd.IntN(2)), fmt.Sprintf("m%d", rnd.IntN(3))}
				tt := e.Target(k)
				if p, err := tt.Acquire(); err == nil {
					switch rnd.IntN(6) {
					case 0, 1:
						p.FirstContent()
						p.Success()
					case 2:
						p.Waited()
						p.Neutral()
					case 3: // lost
					default:
						p.Failure(verdicts[rnd.IntN(len(verdicts))])
					}
				}
				switch rnd.IntN(60) {
				case 0:
					_ = e.Configure(configs[rnd.IntN(len(configs))])
				case 1:
					e.Trim()
				case 2:
					e.Reset(Key{Provider: k.Provider}, true)
				case 3:
					_ = e.Exclude(Key{Provider: k.Provider, Model: k.Model}, time.Millisecond, "")
				case 4:
					e.Include(Key{Provider: k.Provider, Model: k.Model})
				case 5:
					e.Status()
				case 6:
					e.RecordSuccess(k)
				case 7:
					e.sweep()
				case 8:
					_ = e.CircuitBreaker(k.Provider, BreakerOptions{}).Execute(t.Context(), failing)
				case 9:
					_, _ = e.SelectConnection(k.Provider, k.Model)
				case 10:
					defer e.Subscribe(func(Event) {})()
				default:
					e.IsReady(k)
					tt.Standing(true)
				}
			}
		})
	}
	wg.Wait()
	over.Store(true)
	if err := e.Configure(Config{}); err != nil {
		t.Fatal(err)
	}
	e.Reset(Key{}, true)
	e.Trim()
	for _, k := range keysOf("p0/c0/m0", "p1/c0/m1", "p2/c1/m2", "handler/a/m") {
		tt := e.Target(k)
		if w := tt.word.Load() | tt.conn.word.Load() | tt.dom.word.Load(); w&bitGated != 0 {
			t.Errorf("after a reset of all %s is still gated: %b", k, w)
		}
	}
	if err := e.Stop(context.Background()); err != nil {
		t.Fatal(err)
	}
	if rows := store.snapshot(); len(rows) != 0 {
		t.Errorf("after a reset of all there is still stored: %v", rows)
	}
}

func TestA2SettledFromManyGoroutinesCountsOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) {
		p.Breaker.FailureThreshold = 1_000_000
		p.Cooldown.TransientAfter = 1_000_000
	}))
	for i := 1; i <= 300; i++ {
		p := r.take("p/a/m")
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() { p.Failure(err500) })
		}
		wg.Wait()
		if got := r.provider("p").Breaker.Failures; got != i {
			t.Fatalf("%d permits failed, %d failures are counted", i, got)
		}
	}
}

// An exclusion and the attempts that race with it: an attempt that was admitted beside it must not
// be able to clear it, for it did not begin after it.
func TestA7ARacingAttemptClearsNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for range 3000 {
		tt := r.Target(target("p/a/m"))
		var wg sync.WaitGroup
		begun := make([]Permit, 2)
		for i := range begun {
			wg.Go(func() {
				if p, err := tt.Acquire(); err == nil {
					begun[i] = p
				}
			})
		}
		wg.Go(func() { r.RecordFailure(target("p/a/m"), err429) })
		wg.Wait()
		for _, p := range begun {
			p.Success()
		}
		if r.ready("p/a/m") {
			t.Fatal("a success that did not begin after the rate limit cleared it")
		}
		r.Reset(Key{}, false)
	}
}

// A handler may call the engine, whatever it does there: no deadlock, and the events stay in order.
func TestHandlersMayCallTheEngine(t *testing.T) {
	t.Parallel()
	clock := newClock()
	var e *Engine
	var seen []Event
	e, err := New(Options{Now: clock.Now, Logger: quiet, OnEvent: func(ev Event) {
		seen = append(seen, ev)
		e.Status()
		e.Events(10)
		if ev.Type == EventCooling && ev.Key.Connection == "a" {
			e.RecordFailure(target("p/b/m"), err429)
			e.Reset(target("p/a"), false)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	var openings []string
	cancel := e.OnOpening(func(provider string) {
		openings = append(openings, provider)
		e.IsReady(target("p/a/m"))
	})
	var other int
	unsubscribe := e.Subscribe(func(Event) { other++ })
	e.RecordFailure(target("p/a/m"), err429)
	want := []EventType{EventCooling, EventCooling, EventCleared, EventReset}
	if len(seen) != len(want) || other != len(want) {
		t.Fatalf("%d events, %d for the other handler; want %d", len(seen), other, len(want))
	}
	for i, ev := range seen {
		if ev.Type != want[i] || ev.Seq != uint64(i+1) || ev.At.IsZero() {
			t.Errorf("event %d is %v with number %d", i, ev.Type, ev.Seq)
		}
	}
	if len(openings) != 1 || openings[0] != "p" {
		t.Errorf("openings %v", openings)
	}
	cancel()
	unsubscribe()
	e.Reset(Key{}, false)
	if len(openings) != 1 || other != len(want) {
		t.Error("a cancelled handler is still called")
	}
}

// One handler's panic is its request's; the events of others still arrive.
func TestAHandlersPanicStopsNobodyElse(t *testing.T) {
	t.Parallel()
	n := 0
	e, err := New(Options{Logger: quiet, OnEvent: func(Event) {
		if n++; n == 1 {
			panic("handler")
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic got lost")
			}
		}()
		e.RecordFailure(target("p/a/m"), err429)
	}()
	e.RecordFailure(target("p/b/m"), err429)
	if n != 2 {
		t.Fatalf("%d events arrived, want 2", n)
	}
}

func TestEventHistoryIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{History: 5})
	for i := range 12 {
		r.RecordFailure(Key{"p", fmt.Sprint(i), "m"}, err429)
		got := r.Events(0)
		if len(got) != min(i+1, 5) || got[0].Key.Connection != fmt.Sprint(i) {
			t.Fatalf("after %d events there are %d, the newest of %v", i+1, len(got), got[0].Key)
		}
		for j, e := range got {
			if e.Seq != uint64(i+1-j) {
				t.Fatalf("event %d has number %d", j, e.Seq)
			}
		}
	}
	if got := r.Events(2); len(got) != 2 || got[1].Seq != 11 {
		t.Fatalf("the last two are %v", got)
	}
}
