package bench

import (
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go"
	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"
)

// The references are set as ours is by default: five failures in a row open for thirty seconds.
const (
	threshold = 5
	openFor   = 30 * time.Second
)

// round is one admission and its settlement. It reports false when the breaker turned it away.
type round func() bool

// measure runs a round alone and from all cores. A round that is turned away fails the benchmark:
// refusing is cheaper, and not what is measured.
func measure(b *testing.B, r round) {
	b.Helper()
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if !r() {
				b.Fatal("a healthy breaker turned a call away")
			}
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if !r() {
					b.Error("a healthy breaker turned a call away")
					return
				}
			}
		})
	})
}

// gobreakerRound is one Execute of a function that succeeds.
func gobreakerRound() round {
	cb := gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= threshold },
	})
	succeed := func() (struct{}, error) { return struct{}{}, nil }
	return func() bool {
		_, err := cb.Execute(succeed)
		return err == nil
	}
}

func failsafeBreaker() circuitbreaker.CircuitBreaker[any] {
	return circuitbreaker.NewBuilder[any]().WithFailureThreshold(threshold).WithDelay(openFor).Build()
}

// failsafePermitRound takes a permit and records its success, without an executor.
func failsafePermitRound() round {
	cb := failsafeBreaker()
	return func() bool {
		if !cb.TryAcquirePermit() {
			return false
		}
		cb.RecordSuccess()
		return true
	}
}

// failsafeExecutorRound is one Run of an executor with the breaker as its only policy.
func failsafeExecutorRound() round {
	executor := failsafe.With(failsafeBreaker())
	succeed := func() error { return nil }
	return func() bool { return executor.Run(succeed) == nil }
}

func BenchmarkAdmitGobreakerExecute(b *testing.B) { measure(b, gobreakerRound()) }
func BenchmarkAdmitFailsafePermit(b *testing.B)   { measure(b, failsafePermitRound()) }
func BenchmarkAdmitFailsafeExecutor(b *testing.B) { measure(b, failsafeExecutorRound()) }

// TestReferencesOpen makes sure that the references are set to do their work: a breaker that can
// never open would be no comparison.
func TestReferencesOpen(t *testing.T) {
	t.Parallel()
	fs := failsafeBreaker()
	for range threshold {
		fs.RecordFailure()
	}
	if fs.TryAcquirePermit() {
		t.Errorf("failsafe-go's breaker is closed after %d failures", threshold)
	}
	for name, r := range map[string]round{
		"gobreaker": gobreakerRound(), "failsafe permit": failsafePermitRound(), "failsafe executor": failsafeExecutorRound(),
	} {
		if !r() {
			t.Errorf("%s: turned the first call away", name)
		}
	}
}
