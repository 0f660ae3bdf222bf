package bench

import (
	"fmt"
	"testing"

	"omniroute/resilience"
)

// ourRound takes a permit through all three layers of a healthy target and settles it.
func ourRound(tb testing.TB) round {
	tb.Helper()
	e, err := resilience.New(resilience.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	t := e.Target(resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-5.2"})
	return func() bool {
		p, err := t.Acquire()
		if err != nil {
			return false
		}
		p.Success()
		return true
	}
}

func BenchmarkAdmitOurs(b *testing.B) { measure(b, ourRound(b)) }

// BenchmarkDecide checks a list of targets of which a third is excluded, as a combo does for every
// request. It reports the time for the whole list.
func BenchmarkDecide(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			targets, want := mixedTargets(b, n)
			b.ReportAllocs()
			for b.Loop() {
				if got := eligible(targets); got != want {
					b.Fatalf("%d targets are eligible, want %d", got, want)
				}
			}
		})
	}
}

func eligible(targets []*resilience.Target) int {
	n := 0
	for _, t := range targets {
		if _, out := t.Check(); !out {
			n++
		}
	}
	return n
}

// mixedTargets returns n targets on as many connections, each third with a spent quota, and how
// many of them are eligible.
func mixedTargets(tb testing.TB, n int) ([]*resilience.Target, int) {
	tb.Helper()
	e, err := resilience.New(resilience.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	targets := make([]*resilience.Target, n)
	want := n
	for i := range targets {
		targets[i] = e.Target(resilience.Key{
			Provider:   fmt.Sprintf("p%d", i%20),
			Connection: fmt.Sprintf("c%d", i),
			Model:      "m",
		})
		if i%3 != 0 {
			continue
		}
		want--
		p, err := targets[i].Acquire()
		if err != nil {
			tb.Fatal(err)
		}
		p.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted})
	}
	return targets, want
}

// TestOursIsMeasuredAtWork makes sure that the benchmarks' targets are what they say.
func TestOursIsMeasuredAtWork(t *testing.T) {
	t.Parallel()
	if !ourRound(t)() {
		t.Error("a healthy target turned a call away")
	}
	targets, want := mixedTargets(t, 100)
	if got := eligible(targets); got != want || want != 66 {
		t.Errorf("%d of 100 targets are eligible, want 66", got)
	}
}
