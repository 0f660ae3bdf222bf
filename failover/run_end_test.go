package failover_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// A call that takes too long is given up even if it does not listen, and its late value is lost.
func TestRunTimesOut(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		start := time.Now()
		o := failover.Options{Answer: 5 * time.Second}
		got, err := failover.RunWith(t.Context(), rn, keys, o, func(ctx context.Context, a *failover.Attempt) (string, error) {
			if a.Target.Key() == a1 {
				time.Sleep(20 * time.Second) // deaf
			}
			return name(ctx, a)
		})
		if got != "b" || err != nil || time.Since(start) != 5*time.Second {
			t.Errorf("got %q, %v after %v", got, err, time.Since(start))
		}
		time.Sleep(time.Minute)
	})
}

func TestRunEndsWithItsContext(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		wait := func(ctx context.Context, _ *failover.Attempt) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		if _, err := failover.Run(ctx, rn, keys, wait); !errors.Is(err, context.Canceled) {
			t.Errorf("a cancelled call: %v", err)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := failover.Run(ctx, rn, keys, wait); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller's own deadline: %v", err)
		}
		o := failover.Options{Limits: failover.Limits{Deadline: 3 * time.Second}}
		_, err := failover.RunWith(t.Context(), rn, keys, o, wait)
		var failed *failover.Error
		if !errors.As(err, &failed) || failed.Report.Cause != failover.CauseDeadline || failed.Report.Attempts[0].Outcome != failover.OutcomeDeadline {
			t.Errorf("the request's deadline: %v", err)
		}
		for _, s := range rn.Engine().Status().Providers {
			if s.Breaker.Failures != 0 || !s.Available {
				t.Errorf("%s was blamed: %+v", s.ID, s)
			}
		}
	})
}

// A request that waits in the room and leaves makes no noise.
func TestRunLeavesTheRoom(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		rn.Engine().RecordFailure(a1, resilience.Verdict(limited))
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if _, err := failover.Run(ctx, rn, keys[:1], name); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// Closing a runner lets those who wait go.
func TestRunnerClose(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		rn.Engine().RecordFailure(a1, resilience.Verdict(limited))
		done := make(chan error)
		go func() {
			_, err := failover.Run(t.Context(), rn, keys[:1], name)
			done <- err
		}()
		synctest.Wait()
		if rn.Waiting() != 1 {
			t.Fatal("nobody waits")
		}
		rn.Close()
		if err := <-done; err == nil {
			t.Error("an answer from a target that is out")
		}
	})
}
