package resilience

import (
	"context"
	"fmt"
	"testing"
	"time"
)

func benchEngine(b *testing.B) *Engine {
	b.Helper()
	e, err := New(Options{Logger: quiet})
	if err != nil {
		b.Fatal(err)
	}
	return e
}

// Taking and settling a permit with three healthy layers. Run it with -cpu 1,2.
func BenchmarkPermit(b *testing.B) {
	t := benchEngine(b).Target(target("p/a/m"))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := t.Acquire()
			if err != nil {
				b.Fatal(err)
			}
			p.Success()
		}
	})
}

// The same as a stream settles it: first content, then the end.
func BenchmarkPermitStream(b *testing.B) {
	t := benchEngine(b).Target(target("p/a/m"))
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := t.Acquire()
			if err != nil {
				b.Fatal(err)
			}
			p.FirstContent()
			p.Success()
		}
	})
}

// A provider with a failure on its books: successes take the lock.
func BenchmarkPermitAfterFailure(b *testing.B) {
	e := benchEngine(b)
	t := e.Target(target("p/a/m"))
	b.ReportAllocs()
	for b.Loop() {
		p, err := t.Acquire()
		if err != nil {
			b.Fatal(err)
		}
		p.Failure(err500)
		p, _ = t.Acquire()
		p.Success()
	}
}

// Deciding over a plan of which a third is excluded, each target on a connection of its own.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := benchEngine(b)
			targets, want := thirdExcluded(e, n)
			b.ReportAllocs()
			for b.Loop() {
				ready := 0
				for _, t := range targets {
					if _, out := t.Check(); !out {
						ready++
					}
				}
				if ready != want {
					b.Fatalf("%d of %d are ready, want %d", ready, n, want)
				}
			}
		})
	}
}

// The same as one who plans does it: all at once.
func BenchmarkStandings(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			e := benchEngine(b)
			targets, _ := thirdExcluded(e, n)
			var plan []Standing
			b.ReportAllocs()
			for b.Loop() {
				plan = e.Standings(targets, false, plan)
			}
		})
	}
}

func thirdExcluded(e *Engine, n int) (targets []*Target, ready int) {
	for i := range n {
		k := Key{"p", fmt.Sprintf("c%d", i), "m"}
		targets = append(targets, e.Target(k))
		if i%3 == 0 {
			e.RecordFailure(k, account(KindQuotaExhausted).after(5*time.Hour))
		} else {
			ready++
		}
	}
	return targets, ready
}

func BenchmarkExecute(b *testing.B) {
	c := benchEngine(b).CircuitBreaker("p", BreakerOptions{})
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		if err := c.Execute(ctx, fine); err != nil {
			b.Fatal(err)
		}
	}
}

// Loading 100,000 stored exclusions, without the store's own share.
func BenchmarkRestore(b *testing.B) {
	store := newStore()
	e, _ := New(Options{Logger: quiet, Store: store})
	for i := range 100_000 {
		k := Key{fmt.Sprintf("p%d", i%50), fmt.Sprintf("c%d", i%2000), fmt.Sprintf("m%d", i)}
		e.RecordFailure(k, Verdict{Scope: ScopeModel, Kind: KindModelNotFound, Certain: true})
	}
	if err := e.Start(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := e.Stop(b.Context()); err != nil {
		b.Fatal(err)
	}
	if n := len(store.records); n != 100_000 {
		b.Fatalf("%d records", n)
	}
	for b.Loop() {
		e, _ := New(Options{Logger: quiet, Store: store})
		if err := e.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		_ = e.Stop(b.Context())
	}
}

func BenchmarkStatus(b *testing.B) {
	e := benchEngine(b)
	thirdExcluded(e, 1000)
	for b.Loop() {
		e.Status()
	}
}
