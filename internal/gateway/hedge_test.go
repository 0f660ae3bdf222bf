package gateway_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/internal/telemetry"
)

const hedgeConfig = `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}], models: [m]}
  q: {base_url: "$q", connections: [{id: k3, api_key: secret-q3}], models: [m, n, o, x]}
resilience: {cooldown: {transient_after: 9}}
relay: {max_wait: 0s}
combos:
  c: {targets: [p/m, q/m], hedge: {after: 5s, budget: 100%}}
  rare: {targets: [p/m, q/m], hedge: {after: 5s, budget: 10%}}
`

// hedging runs a test with two providers of which the first is asked first.
func hedging(t *testing.T, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		pace := lab.Latency{FirstContent: lab.Delay{Median: time.Second}, Gap: lab.Delay{Median: 100 * time.Millisecond}}
		f(t, gatewaytest.New(t, hedgeConfig,
			lab.Options{Name: "p", Keys: map[string]string{"secret-p1": "k1"}, Latency: pace},
			lab.Options{Name: "q", Keys: map[string]string{"secret-q3": "k3"}, Latency: pace}))
	})
}

// outcomes tells how a request's attempts ended.
func outcomes(s telemetry.Story) string {
	var all []string
	for _, a := range s.Attempts {
		word := a.Key.Provider + " " + string(a.Outcome)
		if a.Hedge {
			word += " (hedge)"
		}
		all = append(all, word)
	}
	return strings.Join(all, ", ")
}

// clean fails when anything counts against anybody.
func cleanState(t *testing.T, w *gatewaytest.World) {
	t.Helper()
	for _, p := range w.Engine.Status().Providers {
		if p.Breaker.Failures != 0 || p.Breaker.State != "CLOSED" || p.Connections[0].State != "ready" {
			t.Errorf("a race counts against %s: %+v", p.ID, p)
		}
	}
}

// TestHedge: where the first target shows no content in time a second one is asked, the first
// content wins, and the loser is ended at once and counts against nobody.
func TestHedge(t *testing.T) {
	t.Parallel()
	t.Run("the second wins", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.SlowFirstContent(20*time.Second, time.Second))
			cancelled := make(chan time.Duration, 1)
			start := time.Now()
			go func() {
				if err := w.Providers["q"].Await(t.Context(), 1, 1); err != nil {
					t.Error(err)
				}
				if err := w.Providers["p"].Await(t.Context(), 1, 0); err != nil {
					t.Error(err)
				}
				cancelled <- time.Since(start)
			}()
			a := w.Chat(t.Context(), "c", true)
			if a.Status != 200 || !a.Done || a.Header.Get("X-Omniroute-Provider") != "q" || a.Header.Get("X-Omniroute-Attempts") != "2" {
				t.Errorf("%+v", a)
			}
			if d := <-cancelled; d < 6*time.Second || d > 7*time.Second {
				t.Errorf("the loser was ended after %v; the winner's content came after 6s", d)
			}
			s := w.Stories()[0]
			if got := outcomes(s); got != "p hedge_lost, q answered (hedge)" || s.FirstContent.Round(time.Second/10) != 6*time.Second {
				t.Errorf("%s, first content after %v", got, s.FirstContent)
			}
			if log := w.Logged(); !strings.Contains(log, "attempts=2 first=6") || !strings.Contains(log, "target=q/k3/m hedge=won") {
				t.Errorf("the log says %s", log)
			}
			cleanState(t, w)
		})
	})
	t.Run("the first wins", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.SlowFirstContent(5500*time.Millisecond, 0))
			a := w.Chat(t.Context(), "c", true)
			synctest.Wait()
			if got := outcomes(w.Stories()[0]); a.Header.Get("X-Omniroute-Provider") != "p" || !a.Done || got != "p answered, q hedge_lost (hedge)" || w.Providers["q"].InFlight() != 0 {
				t.Errorf("%s %+v", got, a)
			}
			if log := w.Logged(); !strings.Contains(log, "target=p/k1/m hedge=lost") {
				t.Errorf("the log names another target than the one that answered: %s", log)
			}
			cleanState(t, w)
		})
	})
	t.Run("a quick first is alone", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Chat(t.Context(), "c", true)
			if n := w.Providers["q"].Total(); n != 0 {
				t.Errorf("the second was asked %d times", n)
			}
		})
	})
	t.Run("a whole answer has longer", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.SlowHeaders(20 * time.Second))
			if a := w.Chat(t.Context(), "c", false); a.Status != 200 || w.Providers["q"].Total() != 0 {
				t.Errorf("hedged after 5 s, of which it says nothing: %+v", a)
			}
			w.Providers["p"].SetFault(lab.SlowHeaders(200 * time.Second))
			start := time.Now()
			a := w.Chat(t.Context(), "c", false)
			if took := time.Since(start); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "q" || took < 30*time.Second || took > 40*time.Second {
				t.Errorf("after %v: %+v", took, a)
			}
		})
	})
	t.Run("both fail", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.All(lab.SlowHeaders(6*time.Second), lab.Invalid()))
			w.Providers["q"].SetFault(lab.All(lab.SlowHeaders(2*time.Second), lab.ServerError()))
			a := w.Chat(t.Context(), "c", true)
			if got := outcomes(w.Stories()[0]); a.Status != 400 || got != "p failed, q failed (hedge)" {
				t.Errorf("%s %+v", got, a)
			}
		})
	})
	t.Run("the first's refusal does not end the second", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.All(lab.SlowHeaders(5500*time.Millisecond), lab.Invalid()))
			a := w.Chat(t.Context(), "c", true)
			if got := outcomes(w.Stories()[0]); a.Status != 200 || !a.Done || got != "p failed, q answered (hedge)" {
				t.Errorf("%s %+v", got, a)
			}
		})
	})
	t.Run("the client leaves", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.Hang())
			w.Providers["q"].SetFault(lab.Hang())
			ctx, cancel := context.WithTimeout(t.Context(), 5500*time.Millisecond)
			defer cancel()
			w.Chat(ctx, "c", true)
			time.Sleep(time.Second)
			synctest.Wait()
			if got := outcomes(w.Stories()[0]); got != "p canceled, q canceled (hedge)" || w.Providers["p"].InFlight()+w.Providers["q"].InFlight() != 0 {
				t.Errorf("%s, %d and %d calls go on", got, w.Providers["p"].InFlight(), w.Providers["q"].InFlight())
			}
			cleanState(t, w)
		})
	})
	t.Run("not with a DEGRADED second", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["q"].SetFault(lab.First(3, lab.ServerError()))
			for _, model := range []string{"q/n", "q/o", "q/x"} {
				w.Chat(t.Context(), model, true)
			}
			if st := w.Engine.Status().Providers[1].Breaker; st.State != "DEGRADED" {
				t.Fatalf("%+v", st)
			}
			before := w.Providers["q"].Total()
			w.Providers["p"].SetFault(lab.SlowFirstContent(10*time.Second, 0))
			if a := w.Chat(t.Context(), "c", true); a.Header.Get("X-Omniroute-Provider") != "p" || w.Providers["q"].Total() != before {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("what would be made twice is not", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			w.Providers["p"].SetFault(lab.SlowHeaders(100 * time.Second))
			a := w.Post(t.Context(), "/v1/fine_tuning/jobs", `{"model":"c"}`)
			if a.Status != 200 || w.Providers["p"].Total() != 1 || w.Providers["q"].Total() != 0 {
				t.Errorf("%d and %d calls: %+v", w.Providers["p"].Total(), w.Providers["q"].Total(), a)
			}
		})
	})
	t.Run("no more than the budget", func(t *testing.T) {
		hedging(t, func(t *testing.T, w *gatewaytest.World) {
			// Slower than the hedge, and not so slow that suspicion would take over.
			w.Providers["p"].SetFault(lab.SlowFirstContent(5900*time.Millisecond, 0))
			w.Providers["q"].SetFault(lab.SlowFirstContent(time.Minute, 0))
			done := make(chan bool)
			for range 40 {
				go func() { w.Chat(t.Context(), "rare", true); done <- true }()
			}
			for range 40 {
				<-done
			}
			if n := w.Providers["q"].Total(); n != 4 {
				t.Errorf("%d of 40 requests were hedged, want a tenth", n)
			}
		})
	})
}

// TestHedgeBesideHiddenError: an error in the first's answer with status 200, after the second was
// asked, leaves the second alone, and what the loser says later counts for nothing.
func TestHedgeBesideHiddenError(t *testing.T) {
	t.Parallel()
	failing := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
		io.WriteString(w, role+gap)
		flush()
		time.Sleep(5500 * time.Millisecond)
		io.WriteString(w, `data: {"error":{"message":"boom","type":"server_error"}}`+gap)
	})
	good := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
		time.Sleep(time.Second)
		io.WriteString(w, hello+gap+finish+gap+done+gap)
	})
	for name, c := range map[string]struct {
		u, v http.Handler
		want string
	}{
		"of the first": {failing, good, "u failed, v answered (hedge)"},
		"of the loser, and late": {raw(func(w http.ResponseWriter, _ func(), _ *http.Request) {
			time.Sleep(10 * time.Second)
			w.WriteHeader(500)
		}), good, "u hedge_lost, v answered (hedge)"},
		"of the second, and early": {raw(func(w http.ResponseWriter, f func(), r *http.Request) { time.Sleep(6 * time.Second); good(w, f, r) }), says(`data: {"error":{"message":"boom","type":"server_error"}}` + gap), "u answered, v failed (hedge)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := gatewaytest.Start(t, gatewaytest.Setup{Config: `
store: "memory:"
providers:
  u: {base_url: "$u", connections: [{id: k1, api_key: upstream-secret}]}
  v: {base_url: "$v", connections: [{id: k2, api_key: upstream-secret}]}
combos:
  m: {targets: [u/m, v/m], hedge: {after: 5s, budget: 100%}}
`, Handlers: map[string]http.Handler{"u": c.u, "v": c.v}})
				a := w.Chat(t.Context(), "m", true)
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if got := outcomes(w.Stories()[0]); a.Status != 200 || !a.Done || a.Text != "hello" || got != c.want {
					t.Errorf("%s %+v", got, a)
				}
				if n := w.Engine.Status().Providers[0].Breaker.Failures; (n != 0) != (name == "of the first") {
					t.Errorf("%d failures count against the first", n)
				}
			})
		})
	}
}
