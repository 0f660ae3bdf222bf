package gateway_test

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

const lastResort = `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: x}], models: [m]}
  q: {base_url: "$q", connections: [{id: k1, api_key: x}], models: [m]}
relay: {max_wait: 1s}
combos:
  c: {targets: [p/m, q/m], last_resort: true}
  d: {targets: [p/m, q/m]}
`

// TestPanicMode: everything is out for minutes by its own word, and one upstream is well again
// before that: a combo with last_resort finds out with its next request, one request at a time, and
// says so meanwhile.
func TestPanicMode(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := lab.Latency{FirstContent: lab.Delay{Median: time.Second}}
		w := gatewaytest.New(t, lastResort, lab.Options{Name: "p", Latency: slow}, lab.Options{Name: "q", Latency: slow})
		w.Providers["p"].SetFault(lab.RateLimited(lab.RetryAfter(5 * time.Minute)))
		w.Providers["q"].SetFault(lab.RateLimited(lab.RetryAfter(4 * time.Minute)))
		if a := w.Chat(t.Context(), "d", true); a.Status != http.StatusTooManyRequests {
			t.Fatalf("%+v", a)
		}
		if !w.Router.Panic() {
			t.Error("all is out and nobody panics")
		}
		calls := func() int { return w.Providers["p"].Total() + w.Providers["q"].Total() }
		before := calls()
		if a := w.Chat(t.Context(), "d", true); a.Status != http.StatusTooManyRequests || calls() != before {
			t.Errorf("a combo without last_resort: %+v", a)
		}
		w.Providers["q"].SetFault(lab.Fault{})
		var wg sync.WaitGroup
		statuses := make(chan int, 20)
		for range cap(statuses) {
			wg.Go(func() { statuses <- w.Chat(t.Context(), "c", true).Status })
		}
		wg.Wait()
		close(statuses)
		served := 0
		for s := range statuses {
			if s == 200 {
				served++
			}
		}
		// One asks q, which is back soonest. Of the others one at a time asks p, which refuses at once.
		if served != 1 || w.Providers["q"].Total() != 2 {
			t.Errorf("%d of 20 were served, by %d calls of q", served, w.Providers["q"].Total()-1)
		}
		if w.Router.Panic() {
			t.Error("panic although a target is back")
		}
		if a := w.Chat(t.Context(), "d", true); a.Status != 200 {
			t.Errorf("after the answer: %+v", a)
		}
	})
}
