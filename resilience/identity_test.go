package resilience

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

func TestSweepForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		e.RecordFailure(target("p/a/m"), err429)
		e.RecordFailure(target("p/b/m"), model(KindRateLimit))
		e.RecordFailure(target("p/c/m"), err500)
		e.RecordSuccess(target("p/c/n")) // so that the breaker only knows a run that moved
		if err := e.Exclude(target("p/d"), time.Minute, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if len(store.snapshot()) != 5 {
			t.Fatalf("after four minutes %d rows are stored", len(store.snapshot()))
		}
		time.Sleep(2 * time.Minute)
		if got := store.snapshot(); len(got) != 0 {
			t.Fatalf("after six minutes there is %v", got)
		}
		if n := e.Trim(); n != 0 {
			t.Fatalf("%d cells are left", n)
		}
		for _, k := range []string{"p/a/m", "p/b/m", "p/c/m", "p/d/m"} {
			tt := e.Target(target(k))
			if w := tt.word.Load() | tt.conn.word.Load() | tt.dom.word.Load(); w != 0 {
				t.Errorf("%s still looks closer: %b", k, w)
			}
		}
		stop(t, e)
	})
}

func TestP4StateBelongsToIdentity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := func(names ...string) Config {
			c := Config{Providers: map[string]Provider{}}
			for _, n := range names {
				k := target(n)
				p := c.Providers[k.Provider]
				p.Connections = append(p.Connections, Connection{ID: k.Connection})
				c.Providers[k.Provider] = p
			}
			return c
		}
		store := newStore()
		e := live(t, store, Options{Config: config("p/a", "p/b", "q/a")})
		handle := e.Target(target("p/a/m"))
		for _, k := range []string{"p/a/m", "p/b/m", "q/a/m"} {
			e.RecordFailure(target(k), err429.after(time.Hour))
			e.RecordFailure(target(k), model(KindRateLimit).after(time.Hour))
			_ = e.Exclude(target(k), time.Hour, "")
		}
		time.Sleep(sec)
		if len(store.snapshot()) != 9 {
			t.Fatalf("%d rows", len(store.snapshot()))
		}
		if err := e.Configure(config("p/b", "r/a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sec)
		for id := range store.snapshot() {
			if id.Key.Provider != "p" || id.Key.Connection != "b" {
				t.Errorf("a removed one is still stored: %v", id)
			}
		}
		if e.IsReady(target("p/b/m")) {
			t.Error("what keeps its name lost its state")
		}
		// Requests that are under way still hold the handle: it works, and leaves no trace.
		if permit, err := handle.Acquire(); err == nil {
			permit.Failure(err429.after(time.Hour))
		}
		for _, p := range e.Status().Providers {
			if p.ID == "q" || len(p.Connections) != 1 {
				t.Errorf("the status still shows %+v", p)
			}
		}
		time.Sleep(sec)
		if n := len(store.snapshot()); n != 3 {
			t.Errorf("%d rows are stored", n)
		}
		// Back again it starts clean, and the old handle is its own again.
		if err := e.Configure(config("p/a", "p/b")); err != nil {
			t.Fatal(err)
		}
		if !e.IsReady(target("p/a/m")) {
			t.Error("a connection that came back is not clean")
		}
		permit, err := handle.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		permit.Failure(err429)
		if e.IsReady(target("p/a/m")) {
			t.Error("the old handle's report is lost")
		}
		stop(t, e)
		// What the configuration lost while the process was down goes at load.
		two := live(t, store, Options{Config: config("p/b")})
		time.Sleep(sec)
		stop(t, two)
		for id := range store.snapshot() {
			if id.Key.Connection != "b" {
				t.Errorf("still stored: %v", id)
			}
		}
	})
}

// A key that was exchanged while the process was down ends a quarantine, too.
func TestV8CredentialChangedWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := func(credential string) Options {
			return Options{Config: Config{Providers: map[string]Provider{"p": {Connections: []Connection{{ID: "a", Credential: credential}}}}}}
		}
		store := newStore()
		e := live(t, store, config("one"))
		e.RecordFailure(target("p/a/m"), revoked)
		stop(t, e)
		e = live(t, store, config("one"))
		if e.IsReady(target("p/a/m")) {
			t.Fatal("a restart ended the quarantine")
		}
		stop(t, e)
		e = live(t, store, config("two"))
		if !e.IsReady(target("p/a/m")) {
			t.Fatal("the changed credential does not end the quarantine")
		}
		stop(t, e)
		if len(store.snapshot()) != 0 {
			t.Fatal("it is still stored")
		}
	})
}

// TestNoConnectionIsLeft: the breaker of a provider that has lost its last connection is closed, since no call could
// close it any more; one that a store brings is dropped. What operators have excluded stays.
func TestNoConnectionIsLeft(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		with := func(connections []Connection) Config {
			return Config{Providers: map[string]Provider{"p": {Connections: connections}, "q": {Connections: []Connection{{ID: "a"}}}}}
		}
		want := func(e *Engine, when, want string) {
			t.Helper()
			s := e.Status()
			if got := fmt.Sprint(s.Providers[0].Breaker.State, " ", s.Providers[1].Breaker.State, " ", len(s.Operator)); got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		store := newStore()
		e := live(t, store, Options{Config: with([]Connection{{ID: "a"}})})
		for i := range 10 { // of two models, or it would be one model's trouble
			e.RecordFailure(target([]string{"p/a/m", "p/a/n"}[i%2]), err500)
			e.RecordFailure(target([]string{"q/a/m", "q/a/n"}[i%2]), err500)
		}
		if err := e.Exclude(Key{Provider: "p"}, time.Hour, "sold"); err != nil {
			t.Fatal(err)
		}
		want(e, "at first", "OPEN OPEN 1")
		time.Sleep(sec)
		old := newStore()
		old.records = store.snapshot()
		if err := e.Configure(with(nil)); err != nil {
			t.Fatal(err)
		}
		want(e, "where nobody says which connections there are", "OPEN OPEN 1")
		if err := e.Configure(with([]Connection{})); err != nil {
			t.Fatal(err)
		}
		want(e, "without a connection", "CLOSED OPEN 1")
		time.Sleep(sec)
		breaker := RecordID{LayerBreaker, Key{Provider: "p"}}
		if r, there := store.snapshot()[breaker]; there {
			t.Errorf("it is still stored: %+v", r)
		}
		stop(t, e)

		e = live(t, old, Options{Config: with([]Connection{})})
		want(e, "after a restart without a connection", "CLOSED OPEN 1")
		time.Sleep(sec)
		if r, there := old.snapshot()[breaker]; there {
			t.Errorf("it is still stored after a restart: %+v", r)
		}
		stop(t, e)
	})
}
