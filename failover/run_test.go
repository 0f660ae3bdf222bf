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

func TestRunMovesOnAndWaits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := resilience.New(resilience.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rn := failover.NewRunner(e)
		defer rn.Close()
		keys := []resilience.Key{{Provider: "a", Connection: "1", Model: "m"}, {Provider: "b", Connection: "1", Model: "m"}}
		limited := limitedError{}
		got, err := failover.Run(t.Context(), rn, keys, func(ctx context.Context, a *failover.Attempt) (string, error) {
			if a.Target.Key().Provider == "a" {
				return "", limited
			}
			return a.Target.Key().String(), nil
		})
		if got != "b/1/m" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		start := time.Now()
		_, err = failover.Run(t.Context(), rn, keys[:1], func(ctx context.Context, a *failover.Attempt) (string, error) {
			if time.Since(start) < 3*time.Second {
				return "", limited
			}
			return "ok", nil
		})
		if err != nil || time.Since(start) != 3*time.Second {
			t.Fatalf("%v after %v, want an answer after the cooldowns of 1s and 2s", err, time.Since(start))
		}
		_, err = failover.Run(t.Context(), rn, keys[:1], func(ctx context.Context, a *failover.Attempt) (string, error) {
			return "", limited
		})
		var failed *failover.Error
		if !errors.As(err, &failed) || !errors.Is(err, limited) || failed.Report.Class != failover.ClassLimited {
			t.Fatalf("got %v", err)
		}
	})
}

type limitedError struct{}

func (limitedError) Error() string { return "slow down" }
func (limitedError) Verdict() resilience.Verdict {
	return resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
}
