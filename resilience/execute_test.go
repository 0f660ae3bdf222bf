package resilience

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

var errBoom = errors.New("boom")

func failing(context.Context) error { return errBoom }
func fine(context.Context) error    { return nil }

func TestCircuitBreakerWalk(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	var walk []string
	b := r.CircuitBreaker("db", BreakerOptions{
		FailureThreshold: 3, ResetTimeout: 10 * sec, EarlyProbes: []time.Duration{},
		OnStateChange: func(name string, from, to BreakerState) { walk = append(walk, fmt.Sprint(name, " ", from, " ", to)) },
	})
	fail := func() { t.Helper(); wantErr(t, b.Execute(t.Context(), failing), errBoom) }
	fail()
	fail()
	if s := b.Status(); s.State != Degraded || s.Failures != 2 || s.FailureThreshold != 3 {
		t.Fatalf("status %+v", s)
	}
	wantErr(t, b.Execute(t.Context(), fine), nil)
	for range 3 {
		fail()
	}
	if b.CanExecute() {
		t.Fatal("an open breaker lets calls through")
	}
	err := b.Execute(t.Context(), func(context.Context) error { t.Error("an open breaker called the function"); return nil })
	var x *ExcludedError
	if !errors.As(err, &x) || x.RetryAfter != 10*sec || !x.Until.Equal(epoch.Add(10*sec)) || x.Layer != LayerBreaker {
		t.Fatalf("the refusal is %v", err)
	}
	if want := "db is excluded by its breaker (server_error) until 2026-01-02T03:04:15.000Z"; err.Error() != want {
		t.Fatalf("it says %q", err)
	}
	r.at(10 * sec)
	if !b.CanExecute() || b.Status().State != HalfOpen {
		t.Fatal("it is not half-open")
	}
	wantErr(t, b.Execute(t.Context(), func(context.Context) error {
		inner := b.Execute(t.Context(), fine) // the probe runs
		var x *ExcludedError
		if !errors.As(inner, &x) || !x.Held || x.RetryAfter != sec {
			t.Errorf("a second call in half-open gets %v", inner)
		}
		return errBoom
	}), errBoom)
	r.at(20 * sec)
	wantErr(t, b.Execute(t.Context(), fine), nil)
	for range 3 {
		fail()
	}
	b.Reset()
	wantErr(t, b.Execute(t.Context(), fine), nil)
	want := []string{"db CLOSED DEGRADED", "db DEGRADED CLOSED", "db CLOSED DEGRADED", "db DEGRADED OPEN", "db OPEN HALF_OPEN",
		"db HALF_OPEN OPEN", "db OPEN HALF_OPEN", "db HALF_OPEN CLOSED", "db CLOSED DEGRADED", "db DEGRADED OPEN", "db OPEN CLOSED"}
	if !slices.Equal(walk, want) {
		t.Fatalf("the walk was\n%q, want\n%q", walk, want)
	}
}

func wantErr(t *testing.T, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || want == nil && got != nil {
		t.Fatalf("error %v, want %v", got, want)
	}
}

func TestCircuitBreakerCounts(t *testing.T) {
	t.Parallel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range []struct {
		name  string
		opts  BreakerOptions
		call  func(b *CircuitBreaker)
		count int
	}{
		{"an error", BreakerOptions{}, func(b *CircuitBreaker) { _ = b.Execute(t.Context(), failing) }, 1},
		{"success", BreakerOptions{}, func(b *CircuitBreaker) { _ = b.Execute(t.Context(), fine) }, 0},
		{"the caller's cancellation", BreakerOptions{}, func(b *CircuitBreaker) {
			_ = b.Execute(cancelled, func(ctx context.Context) error { return fmt.Errorf("call: %w", ctx.Err()) })
		}, 0},
		{"somebody else's cancellation", BreakerOptions{}, func(b *CircuitBreaker) {
			_ = b.Execute(t.Context(), func(context.Context) error { return context.Canceled })
		}, 1},
		{"an error that is classified as cancelled", BreakerOptions{ClassifyError: func(error) Kind { return KindCanceled }},
			func(b *CircuitBreaker) { _ = b.Execute(t.Context(), failing) }, 0},
		{"a rate limit", BreakerOptions{ClassifyError: func(error) Kind { return KindRateLimit }},
			func(b *CircuitBreaker) { _ = b.Execute(t.Context(), failing) }, 1},
		{"a panic", BreakerOptions{}, func(b *CircuitBreaker) {
			defer func() {
				if recover() == nil {
					t.Error("the panic got lost")
				}
			}()
			_ = b.Execute(t.Context(), func(context.Context) error { panic("x") })
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b := newRig(t, Options{}).CircuitBreaker("b", c.opts)
			c.call(b)
			if s := b.Status(); s.Failures != c.count {
				t.Fatalf("%d failures are counted, want %d", s.Failures, c.count)
			}
		})
	}
}

func TestCircuitBreakerByName(t *testing.T) {
	t.Parallel()
	own := Policy{Breaker: BreakerPolicy{FailureThreshold: 7}}
	r := newRig(t, Options{Config: Config{Providers: map[string]Provider{"p": {Policy: &own, Connections: []Connection{{ID: "a"}}}}}})
	if s := r.CircuitBreaker("p", BreakerOptions{}).Status(); s.FailureThreshold != 7 {
		t.Fatalf("without options the provider's own policy holds, but the threshold is %d", s.FailureThreshold)
	}
	changes := 0
	for range 5 { // as a program does that asks for it before each call
		r.CircuitBreaker("p", BreakerOptions{FailureThreshold: 2, OnStateChange: func(string, BreakerState, BreakerState) { changes++ }})
	}
	_ = r.CircuitBreaker("p", BreakerOptions{}).Execute(t.Context(), failing)
	_ = r.CircuitBreaker("p", BreakerOptions{}).Execute(t.Context(), failing)
	if s := r.CircuitBreaker("p", BreakerOptions{}).Status(); s.State != Open || s.FailureThreshold != 2 {
		t.Fatalf("the breaker is %+v", s)
	}
	if changes != 1 { // OPEN, told to the last listener alone
		t.Fatalf("%d changes of state were told", changes)
	}
	r.refused("p/a/m") // the gateway sees the same breaker
	// A breaker of no provider survives a new configuration.
	alone := r.CircuitBreaker("db", BreakerOptions{FailureThreshold: 1})
	_ = alone.Execute(t.Context(), failing)
	if err := r.Configure(Config{Providers: map[string]Provider{"p": {}}}); err != nil {
		t.Fatal(err)
	}
	if alone.CanExecute() || r.CircuitBreaker("db", BreakerOptions{}).CanExecute() {
		t.Fatal("a new configuration closed a breaker that it does not know")
	}
}
