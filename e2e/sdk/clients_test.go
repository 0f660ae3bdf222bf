package sdk

import (
	"net/http"
	"testing"

	"omniroute/e2e/upstream"
)

// TestClientsTellTheTruth lets the clients speak to the provider itself: a client that retried or
// glossed over a failure would make every other test here worthless.
func TestClientsTellTheTruth(t *testing.T) {
	t.Parallel()
	for _, cl := range clients {
		for _, stream := range []bool{false, true} {
			t.Run(cl.name+"/"+kindOfCall(stream), func(t *testing.T) {
				t.Parallel()
				up := upstream.New(t, "good", "limited", "broken", "cut")
				up.Set(upstream.RateLimit, "limited")
				up.Set(upstream.ServerError, "broken")
				up.Set(upstream.Cut, "cut")
				job := call{baseURL: up.URL, model: "m", n: 4, concurrency: 2, stream: stream}

				job.key = "good"
				wantAllGood(t, job, cl.run(t, job))

				for key, status := range map[string]int{
					"limited": http.StatusTooManyRequests,
					"broken":  http.StatusInternalServerError,
					"cut":     0, // no status says it: the answer just ends
				} {
					job.key = key
					results := cl.run(t, job)
					for _, r := range results {
						if r.OK || r.Status != status {
							t.Errorf("key %s: %+v, want a failure with status %d", key, r, status)
						}
					}
				}
				for key, n := range up.Calls() {
					if n != job.n {
						t.Errorf("key %s was asked %d times by %d calls", key, n, job.n)
					}
				}
			})
		}
	}
}
