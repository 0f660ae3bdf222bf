package resilience_test

import (
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
	"omniroute/store/memory"
)

// driven is an engine that is driven on a clock of its own, without a goroutine.
type driven struct {
	*resilience.Engine
	now time.Time
}

func drive(t *testing.T, s resilience.Store) *driven {
	t.Helper()
	d := &driven{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	e, err := resilience.New(resilience.Options{Store: s, Logger: quiet, Now: func() time.Time { return d.now }})
	if err != nil {
		t.Fatal(err)
	}
	d.Engine = e
	d.sync(t)
	return d
}

func (d *driven) sync(t *testing.T) {
	t.Helper()
	if err := d.Sync(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// An engine that is driven step by step loads, writes and cleans up without being started.
func TestSyncIsTheBackgroundsWork(t *testing.T) {
	t.Parallel()
	store := memory.New()
	d := drive(t, store)
	d.RecordFailure(key, err429)
	d.sync(t)
	next := drive(t, store)
	if x, out := next.Target(key).Check(); !out || x.Kind != resilience.KindRateLimit {
		t.Errorf("after a restart: %+v, %v", x, out)
	}
	d.now = d.now.Add(time.Hour)
	d.sync(t)
	if left, err := store.Load(t.Context()); err != nil || len(left) != 0 {
		t.Errorf("an hour later %v are kept, %v", left, err)
	}
	if err := d.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer d.Stop(t.Context())
	if d.Sync(t.Context()) == nil {
		t.Error("a started engine lets itself be driven")
	}
}

// Nodes that are driven learn of each other at their next Sync, or as soon as they are told, and
// probe one at a time.
func TestSyncSharesLikeTheBackground(t *testing.T) {
	t.Parallel()
	var a, b *driven
	hub := memory.NewHub(func() time.Time { return a.now })
	a = &driven{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	a = drive(t, hub.Node("a"))
	b = drive(t, hub.Node("b"))
	both := func() { a.sync(t); b.sync(t); a.sync(t) }
	both()
	a.RecordFailure(key, err429)
	both()
	if _, out := b.Target(key).Check(); !out {
		t.Fatal("the other node does not know")
	}
	a.now, b.now = a.now.Add(2*time.Second), b.now.Add(2*time.Second)
	admitted := 0
	for range 3 {
		for _, d := range []*driven{a, b} {
			if _, err := d.Target(key).Acquire(); err == nil {
				admitted++
			}
			both()
		}
	}
	if admitted != 1 {
		t.Errorf("%d probes are in flight, want one", admitted)
	}
}

// However long the store takes by the machine's clock, Sync waits for it: the clock of who drives the engine is another.
func TestSyncIsBoundByItsCallerAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var a *driven
		hub := memory.NewHub(func() time.Time { return a.now })
		a = &driven{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		store := hub.Node("a")
		store.Slow(time.Minute)
		a = drive(t, store)
		a.RecordFailure(key, err429)
		a.sync(t)
		a.now = a.now.Add(2 * time.Second)
		if _, err := a.Target(key).Acquire(); err == nil {
			t.Fatal("it probes without a right")
		}
		a.sync(t)
		if _, err := a.Target(key).Acquire(); err != nil {
			t.Errorf("it asked for the right and did not get it: %v", err)
		}
	})
}
