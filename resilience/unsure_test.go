package resilience_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
	"omniroute/store/memory"
)

// A lease that was given out, but whose answer its node never got, holds up nobody: the node gives it
// back when it is in touch again, though no request there ever asks for it.
func TestK2ALeaseWithoutAnAnswerIsGivenBack(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 5 * time.Second})
		time.Sleep(6 * time.Second)
		f.ways[0].Slow(1600 * time.Millisecond) // what is asked arrives within a second, what is answered does not
		if _, err := f.Target(key).Acquire(); err == nil {
			t.Fatal("a probe without a lease")
		}
		time.Sleep(moment)
		if f.state(0) != resilience.ClusterIsolated {
			t.Fatal(f.state(0))
		}
		f.ways[0].Slow(2 * time.Millisecond)
		time.Sleep(time.Second)
		if f.state(0) != resilience.ClusterOK {
			t.Fatal(f.state(0))
		}
		p := f.probe(1)
		f.refused(0)
		p.Success()
		time.Sleep(soon)
		f.out(false)
	})
}

// Leases that were wanted before the store went away are not asked for when it is back: nobody would
// use them.
func TestK2WhatWasWantedBeforeAnIsolationIsNotAskedFor(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		keys := []resilience.Key{}
		for i := range 10 {
			k := resilience.Key{Provider: "p", Connection: fmt.Sprint(i), Model: "m"}
			keys = append(keys, k)
			f.RecordFailure(k, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 5 * time.Second})
		}
		time.Sleep(6 * time.Second)
		f.ways[0].Slow(10 * time.Second)
		for _, k := range keys {
			if _, err := f.Target(k).Acquire(); err == nil {
				t.Fatal("a probe without a lease")
			}
		}
		time.Sleep(moment)
		f.ways[0].Slow(2 * time.Millisecond)
		time.Sleep(2 * moment)
		if f.state(0) != resilience.ClusterOK {
			t.Fatal(f.state(0))
		}
		for _, k := range keys {
			_, _ = f.all[1].Target(k).Acquire()
		}
		time.Sleep(soon)
		for _, k := range keys {
			if p, err := f.all[1].Target(k).Acquire(); err != nil {
				t.Errorf("%v: %v", k, err)
			} else {
				p.Success()
			}
		}
	})
}

// However much there is to read, and however far away the store is: a call may take its time, not all
// of them together.
func TestK3AFarStoreWithMuchInIt(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		var changes []resilience.Change
		until := time.Now().Add(time.Hour)
		for i := range 4500 {
			k := resilience.Key{Provider: "p", Connection: "b", Model: fmt.Sprint(i)}
			changes = append(changes, resilience.Change{Record: resilience.Record{Layer: resilience.LayerModel, Key: k, State: "locked",
				Kind: resilience.KindRateLimit, SinceMs: time.Now().UnixMilli(), UntilMs: until.UnixMilli(), Level: 1}})
		}
		if err := f.hub.Node("writer").Apply(t.Context(), changes); err != nil {
			t.Fatal(err)
		}
		f.ways[1].Cut(errGone)
		time.Sleep(moment)
		f.ways[1].Slow(400 * time.Millisecond)
		f.ways[1].Cut(nil)
		time.Sleep(2 * moment)
		if f.state(1) != resilience.ClusterOK {
			t.Error(f.state(1))
		}
	})
}

// forgetful is a way to a server that fails over to one without the last writes: what it says was
// merged is gone, and the connections end.
type forgetful struct {
	resilience.Shared
	forgets atomic.Bool

	mu       sync.Mutex
	hangUp   context.CancelFunc
	lifeName string
}

func (s *forgetful) Beat(ctx context.Context, b resilience.Beat) (resilience.Pulse, error) {
	p, err := s.Shared.Beat(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lifeName = p.Life
	return p, err
}

func (s *forgetful) Merge(ctx context.Context, c resilience.Contribution) (resilience.Merged, error) {
	if !s.forgets.Load() {
		return s.Shared.Merge(ctx, c)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return resilience.Merged{Life: s.lifeName}, nil
}

func (s *forgetful) Listen(ctx context.Context, hear func(resilience.News)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.hangUp = cancel
	s.mu.Unlock()
	return s.Shared.Listen(ctx, hear)
}

// A failover that lost a write is noticed though the revision is what it was, since another node has
// written meanwhile, and no call has failed: the node whose write it was brings it back.
func TestK3AFailoverThatNobodyNotices(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, hub: memory.NewHub(nil)}
		way := &forgetful{Shared: f.hub.Node("forgetful")}
		first, err := resilience.New(resilience.Options{Store: way, Logger: quiet})
		if err == nil {
			err = first.Start(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		f.Engine, f.all = first, append(f.all, first)
		f.add(1, resilience.Options{})
		defer func() {
			for _, e := range f.all {
				f.stop(e)
			}
		}()
		time.Sleep(moment)
		way.forgets.Store(true)
		first.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute})
		time.Sleep(soon)
		way.forgets.Store(false)
		other := resilience.Key{Provider: "q", Connection: "a", Model: "m"}
		f.all[1].RecordFailure(other, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute})
		time.Sleep(soon)
		f.out(true, 0)
		f.out(false, 1)
		way.mu.Lock()
		way.hangUp()
		way.mu.Unlock()
		time.Sleep(moment)
		f.out(true)
		if f.state(0) != resilience.ClusterOK {
			t.Error(f.state(0))
		}
	})
}
