package resilience

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestP3StoreFailsAndComesBack(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*mapStore, bool){
		"fails": func(s *mapStore, on bool) {
			s.fail = nil
			if on {
				s.fail = errStore
			}
		},
		"hangs": func(s *mapStore, on bool) { s.hang = on },
		"fails although it stored": func(s *mapStore, on bool) {
			s.fail, s.torn = nil, on
			if on {
				s.fail = errStore
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				e := live(t, store, Options{})
				if got := e.Status().Persistence; got != "ok" {
					t.Fatalf("persistence %q", got)
				}
				store.set(func(s *mapStore) { trouble(s, true) })
				e.RecordFailure(target("p/a/m"), err429.after(time.Hour))
				e.RecordFailure(target("p/b/m"), err429.after(time.Hour))
				time.Sleep(2 * sec)
				if got := e.Status().Persistence; got != "degraded" {
					t.Fatalf("persistence %q", got)
				}
				if e.IsReady(target("p/a/m")) || !e.IsReady(target("p/c/m")) {
					t.Fatal("routing does not go on from memory")
				}
				e.Reset(target("p/b"), false) // stored or not: it must not come back
				time.Sleep(time.Minute)
				store.set(func(s *mapStore) { trouble(s, false) })
				time.Sleep(11 * sec)
				if got := e.Status().Persistence; got != "ok" {
					t.Fatalf("persistence %q after the store is back", got)
				}
				got := store.snapshot()
				if _, ok := got[RecordID{LayerConnection, target("p/a")}]; !ok || len(got) != 1 {
					t.Fatalf("stored is %v", got)
				}
				stop(t, e)
			})
		})
	}
}

// A store that cannot be read at the start is merged when it is back. A5: the later deadline wins.
func TestP3DegradedStartThenMerge(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*mapStore, bool){
		"fails": func(s *mapStore, on bool) {
			s.fail = nil
			if on {
				s.fail = errStore
			}
		},
		"hangs": func(s *mapStore, on bool) { s.hang = on },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				before := live(t, store, Options{})
				before.RecordFailure(target("p/longer/m"), err429.after(9*time.Minute))
				before.RecordFailure(target("p/shorter/m"), err429.after(60*sec))
				before.RecordFailure(target("p/graver/m"), account(KindBilling).after(60*sec))
				before.RecordFailure(target("p/revoked/m"), revoked)
				before.RecordFailure(target("p/old/m"), err429.after(9*time.Minute))
				stop(t, before)

				store.set(func(s *mapStore) { trouble(s, true) })
				began := time.Now()
				e := live(t, store, Options{})
				if waited := time.Since(began); waited > 5*sec {
					t.Fatalf("the start waited %v", waited)
				}
				if got := e.Status().Persistence; got != "degraded" {
					t.Fatalf("persistence %q", got)
				}
				for _, c := range []string{"longer", "shorter", "graver", "revoked", "new"} {
					e.RecordFailure(Key{"p", c, "m"}, err429.after(2*time.Minute))
				}
				now := time.Now()
				store.set(func(s *mapStore) { trouble(s, false) })
				time.Sleep(20 * sec)
				if got := e.Status().Persistence; got != "ok" {
					t.Fatalf("persistence %q", got)
				}
				for c, want := range map[string]struct {
					kind  Kind
					until time.Time
				}{
					"longer": {KindRateLimit, began.Add(9 * time.Minute)}, "shorter": {KindRateLimit, now.Add(2 * time.Minute)},
					"graver": {KindBilling, now.Add(2 * time.Minute)}, "revoked": {KindAuth, time.Time{}},
					"old": {KindRateLimit, began.Add(9 * time.Minute)}, "new": {KindRateLimit, now.Add(2 * time.Minute)},
				} {
					x, out := e.Target(Key{"p", c, "m"}).Check()
					if !out || x.Kind != want.kind || !x.Until.Equal(want.until) {
						t.Errorf("%s: %v until %v, want %v until %v", c, x.Kind, x.Until, want.kind, want.until)
					}
				}
				// The merged state is what the store has, too.
				two := live(t, &mapStore{records: store.snapshot()}, Options{})
				if d := cmp.Diff(outside(e), outside(two)); d != "" {
					t.Errorf("stored (-engine +store):\n%s", d)
				}
				stop(t, two)
				stop(t, e)
			})
		})
	}
}

// Not even a store that ignores its context holds up Start, requests, status or Stop.
func TestP3StoreThatNeverReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.deaf = make(chan struct{})
		e := live(t, store, Options{})
		e.RecordFailure(target("p/a/m"), err429)
		if e.Status().Persistence != "degraded" || e.IsReady(target("p/a/m")) {
			t.Fatal("routing does not go on")
		}
		ctx, cancel := context.WithTimeout(t.Context(), sec)
		defer cancel()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Stop says %v", err)
		}
		close(store.deaf)
		synctest.Wait()
	})
}

func TestP5NothingIsWrittenOnTheHappyPath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		work := func() {
			for i := range 1000 {
				p, err := e.Target(target("p/a/m")).Acquire()
				if err != nil {
					t.Fatal(err)
				}
				p.FirstContent()
				p.Success()
				if i%100 == 0 {
					time.Sleep(50 * ms)
				}
			}
			time.Sleep(sec)
		}
		work()
		if n, _ := store.counts(); n != 0 {
			t.Fatalf("%d writes for 1000 successes", n)
		}
		// Nor do successes beside a trouble that they do not change.
		e.RecordFailure(target("p/b/m"), err429.after(time.Hour))
		e.RecordFailure(target("p/c/bad"), err500)
		e.RecordSuccess(target("p/a/m"))
		time.Sleep(sec)
		n, _ := store.counts()
		work()
		if now, _ := store.counts(); now != n {
			t.Fatalf("%d writes for 1000 successes beside a cooldown", now-n)
		}
		// A probe that tells nothing changes no row.
		e.RecordFailure(target("q/a/m"), err429)
		time.Sleep(1100 * ms)
		n, _ = store.counts()
		p, _ := e.Target(target("q/a/m")).Acquire()
		p.Neutral()
		time.Sleep(sec)
		if now, _ := store.counts(); now != n {
			t.Fatal("a neutral probe was written")
		}
		stop(t, e)
	})
}

func TestWritesAreCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		time.Sleep(sec)
		for range 1000 {
			e.RecordFailure(target("p/a/m"), err500)
			time.Sleep(ms)
		}
		time.Sleep(sec)
		if n, _ := store.counts(); n > 12 {
			t.Fatalf("%d writes in a second", n)
		}
		// Many changed gates go in bounded batches.
		before, _ := store.counts()
		for i := range 2500 {
			e.RecordFailure(Key{"q", "c", string(rune('a'+i%26)) + string(rune(0x100+i))}, model(KindRateLimit))
		}
		time.Sleep(250 * ms)
		after, _ := store.counts()
		if after-before < 3 || len(store.snapshot()) < 2500 {
			t.Fatalf("%d writes stored %d rows", after-before, len(store.snapshot()))
		}
		stop(t, e)
	})
}

func TestStopFlushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		e.RecordFailure(target("p/a/m"), err429)
		stop(t, e)
		stop(t, e) // again is harmless
		if len(store.snapshot()) != 1 {
			t.Fatal("the last change is not stored")
		}
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err == nil {
			t.Fatal("a started engine starts again")
		}
		store.set(func(s *mapStore) { s.fail = errStore })
		e.RecordFailure(target("p/b/m"), err429)
		if err := e.Stop(t.Context()); !errors.Is(err, errStore) {
			t.Fatalf("Stop says %v", err)
		}
		var never Engine
		if err := never.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}
