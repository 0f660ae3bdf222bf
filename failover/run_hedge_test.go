package failover_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"omniroute/failover"
)

// Run with a hedge asks a second target beside one that is slow, takes the first answer, and ends
// the other call.
func TestRunHedges(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := failover.Options{Hedge: failover.Hedge{After: 2 * time.Second, Share: 1}, Answer: time.Minute}
		ended := make(chan time.Duration, 1)
		start := time.Now()
		// A whole answer has at least a tenth of its timeout.
		got, err := failover.RunWith(t.Context(), rn, keys, o, func(ctx context.Context, a *failover.Attempt) (string, error) {
			if a.Target.Key() == a1 {
				<-ctx.Done()
				ended <- time.Since(start)
				return "", ctx.Err()
			}
			time.Sleep(time.Second)
			return name(ctx, a)
		})
		if got != "b" || err != nil || time.Since(start) != 7*time.Second {
			t.Errorf("%q, %v after %v", got, err, time.Since(start))
		}
		if d := <-ended; d != 7*time.Second {
			t.Errorf("the slow call was ended after %v", d)
		}
		for _, k := range keys {
			if x, out := rn.Engine().Target(k).Check(); out {
				t.Errorf("%s is out: %+v", k, x)
			}
		}
	})
}

// A stream's first content is what counts, and an error of one call leaves the other running.
func TestRunHedgesStreams(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := failover.Options{Hedge: failover.Hedge{After: 2 * time.Second, Share: 1}, Stream: true}
		got, err := failover.RunWith(t.Context(), rn, keys, o, func(_ context.Context, a *failover.Attempt) (string, error) {
			if a.Target.Key() == b1 {
				return "", refused
			}
			if time.Sleep(4 * time.Second); !a.FirstContent() {
				t.Error("nobody else has answered")
			}
			time.Sleep(time.Hour / 10)
			return "a", nil
		})
		if got != "a" || err != nil {
			t.Errorf("%q, %v", got, err)
		}
	})
}

func TestRunRefusesOptions(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		_, err := failover.RunWith(t.Context(), rn, keys, failover.Options{Hedge: failover.Hedge{P95: true, Share: 2}}, name)
		if err == nil || !strings.Contains(err.Error(), "hedge share 2") {
			t.Error(err)
		}
	})
}
