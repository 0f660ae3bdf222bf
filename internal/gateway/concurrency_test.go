package gateway_test

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/resilience"
)

const narrow = `
store: "memory:"
client_keys: [key-of-alice, key-of-bob]
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1, max_concurrent: 2}], models: [m, n]}
  q: {base_url: "$q", connections: [{id: k3, api_key: secret-q3, max_concurrent: 1}], models: [m]}
relay: {queue: {wait: 5s, depth: 4}}
combos:
  c: {targets: [p/m, q/m]}
  d: {targets: [p/n]}
`

func narrowWorld(t *testing.T, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow := lab.Latency{FirstContent: lab.Delay{Median: time.Second}}
		f(t, gatewaytest.New(t, narrow,
			lab.Options{Name: "p", Keys: map[string]string{"secret-p1": "k1"}, Latency: slow},
			lab.Options{Name: "q", Keys: map[string]string{"secret-q3": "k3"}, Latency: slow}))
	})
}

func chatAs(ctx context.Context, w *gatewaytest.World, key, model string, stream bool) gatewaytest.Answer {
	body := `{"model":"` + model + `","stream":` + strconv.FormatBool(stream) + `,"messages":[{"role":"user","content":"hi"}]}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return gatewaytest.Answer{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+key)
	return w.Do(req)
}

// TestPlacesAreSharedByCombos: a connection's limit counts all that runs on it, whatever it was
// asked for by; what is free elsewhere is taken at once, then requests wait, then they are told to
// come back, and no gate has heard of it.
func TestPlacesAreSharedByCombos(t *testing.T) {
	narrowWorld(t, func(t *testing.T, w *gatewaytest.World) {
		start := time.Now()
		var wg sync.WaitGroup
		served := map[string]int{}
		var mu sync.Mutex
		ask := func(model string) {
			wg.Go(func() {
				a := chatAs(t.Context(), w, "key-of-alice", model, true)
				mu.Lock()
				defer mu.Unlock()
				served[a.Header.Get("X-Omniroute-Provider")]++
				if a.Status != 200 {
					t.Errorf("%+v", a)
				}
			})
			synctest.Wait()
		}
		ask("d")
		ask("p/m") // the connection is full now
		ask("c")   // goes to q at once
		ask("d")   // waits
		wg.Wait()
		if served["p"] != 3 || served["q"] != 1 {
			t.Errorf("served by %v", served)
		}
		if took := time.Since(start); took < 2*time.Second || took > 4*time.Second {
			t.Errorf("all took %v", took)
		}
		for _, p := range w.Engine.Status().Providers {
			for _, c := range p.Connections {
				if c.State != "ready" || c.LastError != nil {
					t.Errorf("%s/%s: %+v", p.ID, c.ID, c)
				}
			}
		}
	})
}

// TestQueueFull: the answer when no place is free in time says so, in the client's dialect, with
// when to come back.
func TestQueueFull(t *testing.T) {
	narrowWorld(t, func(t *testing.T, w *gatewaytest.World) {
		w.Providers["p"].SetFault(lab.Hang())
		ctx, leave := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() { chatAs(ctx, w, "key-of-alice", "d", true) })
		}
		synctest.Wait()
		start := time.Now()
		a := chatAs(t.Context(), w, "key-of-alice", "d", true)
		if a.Status != 503 || a.Error != "queue_full" || a.Header.Get("Retry-After") == "" || time.Since(start) != 5*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), a)
		}
		if !strings.Contains(a.Body, `"layer":"concurrency"`) || !strings.Contains(a.Body, "max_concurrent") {
			t.Errorf("the answer does not say why: %s", a.Body)
		}
		for range 4 { // the line is full with these
			wg.Go(func() { chatAs(ctx, w, "key-of-alice", "d", true) })
			synctest.Wait()
		}
		start = time.Now()
		if a := chatAs(t.Context(), w, "key-of-alice", "d", true); a.Error != "queue_full" || time.Since(start) > 50*time.Millisecond {
			t.Errorf("behind a full line after %v: %+v", time.Since(start), a)
		}
		leave() // everybody leaves the calls and the line, and all places are back
		wg.Wait()
		w.Providers["p"].SetFault(lab.Fault{})
		start = time.Now()
		if a := chatAs(t.Context(), w, "key-of-bob", "d", true); a.Status != 200 || time.Since(start) > 2*time.Second {
			t.Errorf("when all have left, after %v: %+v", time.Since(start), a)
		}
	})
}

// TestCallersTakeTurns: a caller with many requests in line does not keep another one waiting for
// all of them.
func TestCallersTakeTurns(t *testing.T) {
	narrowWorld(t, func(t *testing.T, w *gatewaytest.World) {
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() { chatAs(t.Context(), w, "key-of-alice", "d", false) })
			synctest.Wait()
		}
		start := time.Now()
		a := chatAs(t.Context(), w, "key-of-bob", "d", false)
		once := time.Since(start)
		wg.Wait()
		if total := time.Since(start); a.Status != 200 || once > total*3/4 {
			t.Errorf("bob was answered after %v of %v: %+v", once, total, a)
		}
	})
}

// TestDrainLetsStreamsEnd: a connection that an operator takes out gets no new request, those that
// run end well, and the exclusion is what the answer names.
func TestDrainLetsStreamsEnd(t *testing.T) {
	narrowWorld(t, func(t *testing.T, w *gatewaytest.World) {
		var running gatewaytest.Answer
		var wg sync.WaitGroup
		wg.Go(func() { running = chatAs(t.Context(), w, "key-of-alice", "d", true) })
		synctest.Wait()
		before := w.Providers["p"].Total()
		key := resilience.Key{Provider: "p", Connection: "k1"}
		if err := w.Engine.Exclude(key, 10*time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		if a := chatAs(t.Context(), w, "key-of-alice", "c", true); a.Header.Get("X-Omniroute-Provider") != "q" {
			t.Errorf("a new request: %+v", a)
		}
		a := chatAs(t.Context(), w, "key-of-alice", "d", true)
		if a.Status != 503 || !strings.Contains(a.Body, `"layer":"operator"`) {
			t.Errorf("a new request that has no other target: %+v", a)
		}
		wg.Wait()
		if running.Status != 200 || !running.Done || running.Error != "" {
			t.Errorf("the stream that ran: %+v", running)
		}
		if got := w.Providers["p"].Total(); got != before {
			t.Errorf("%d more calls on the drained connection", got-before)
		}
		time.Sleep(10 * time.Minute)
		if a := chatAs(t.Context(), w, "key-of-alice", "d", true); a.Status != 200 {
			t.Errorf("after its end: %+v", a)
		}
	})
}
