package gateway_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

const twoProviders = `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}, {id: k2, api_key: secret-p2}], models: [m]}
  q: {base_url: "$q", connections: [{id: k3, api_key: secret-q3}], models: [m]}
relay: {answer_timeout: 20s}
combos:
  c: {strategy: priority, targets: [p/m, q/m]}
`

func labs() []lab.Options {
	return []lab.Options{
		{Name: "p", Seed: 1, Keys: map[string]string{"secret-p1": "k1", "secret-p2": "k2"}, Models: []string{"m"}},
		{Name: "q", Seed: 2, Keys: map[string]string{"secret-q3": "k3"}, Models: []string{"m"}},
	}
}

// world runs a test with two providers on virtual time.
func world(t *testing.T, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { f(t, gatewaytest.New(t, twoProviders, labs()...)) })
}

func TestAnswers(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		for _, stream := range []bool{false, true} {
			a := w.Chat(t.Context(), "c", stream)
			if a.Status != 200 || a.Text == "" || a.Finish != "stop" || a.Done != stream || a.Error != "" {
				t.Fatalf("stream %v: %+v", stream, a)
			}
			for h, want := range map[string]string{"X-Omniroute-Provider": "p", "X-Omniroute-Model": "m", "X-Omniroute-Attempts": "1"} {
				if got := a.Header.Get(h); got != want {
					t.Errorf("%s: %q, want %q", h, got, want)
				}
			}
			if a.Header.Get("X-Request-Id") == "" {
				t.Error("no request id")
			}
		}
		if got := w.Providers["p"].Total(); got != 2 {
			t.Errorf("%d upstream calls, want 2", got)
		}
		req := w.Providers["p"].LastRequest()
		if !strings.Contains(string(req.Body), `"model":"m"`) {
			t.Errorf("upstream saw %s", req.Body)
		}
	})
}

// TestFaultsBeforeContentAreInvisible has every way to fail before the first content on the first
// provider: the client sees the second one's answer and nothing else (law S1).
func TestFaultsBeforeContentAreInvisible(t *testing.T) {
	t.Parallel()
	faults := map[string]lab.Fault{
		"429": lab.RateLimited(lab.RetryAfter(30 * time.Second)), "429 without hint": lab.RateLimited(lab.Hint{}),
		"quota": lab.QuotaExhausted(), "401": lab.Unauthorized(), "402": lab.PaymentRequired(), "403": lab.Forbidden(),
		"404 model": lab.ModelNotFound(), "500": lab.ServerError(), "502 page": lab.BadGateway(), "503": lab.Unavailable(lab.Hint{}),
		"529": lab.Overloaded(), "hang": lab.Hang(), "empty body": lab.Empty(), "no choices": lab.NoChoices(),
		"no content": lab.NoContent(), "page with 200": lab.HTML200(), "reset": lab.ResetBeforeHeaders(), "close": lab.CloseBeforeHeaders(),
		"cut at once": lab.Cut(0, lab.CutReset), "malformed": lab.BadEvent(1),
	}
	for name, fault := range faults {
		for _, stream := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				world(t, func(t *testing.T, w *gatewaytest.World) {
					w.Providers["p"].SetFault(fault)
					a := w.Chat(t.Context(), "c", stream)
					if a.Status != 200 || a.Text == "" || a.Finish != "stop" || a.Done != stream || a.Error != "" || a.Header.Get("X-Omniroute-Provider") != "q" {
						t.Fatalf("stream %v: %+v", stream, a)
					}
					if n := w.Providers["p"].Total(); n == 0 || n > 4 {
						t.Errorf("%d calls on the failing provider", n)
					}
				})
			})
		}
	}
}

func TestCutAfterContentIsNeverHidden(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]lab.Fault{
		"reset": lab.Cut(3, lab.CutReset), "fin": lab.Cut(3, lab.CutFIN), "clean end": lab.Cut(3, lab.CutQuiet), "stall": lab.Stall(3, 0),
		"no finish": lab.NoFinish(), "error event": lab.ErrorEvent(3, lab.Error{Message: "boom"}),
	} {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, w *gatewaytest.World) {
				w.Providers["p"].SetFault(fault)
				a := w.Chat(t.Context(), "c", true)
				if a.Status != 200 || a.Text == "" || a.Done || a.Error == "" {
					t.Fatalf("%+v", a)
				}
				if w.Providers["q"].Total() != 0 {
					t.Error("an answer that had begun was asked for again")
				}
			})
		})
	}
}

func TestClientLeaves(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		w.Providers["p"].SetFault(lab.Hang())
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if a := w.Chat(ctx, "c", true); a.Err == nil {
			t.Fatalf("%+v", a)
		}
		left := time.Now()
		if err := w.Providers["p"].Await(t.Context(), 1, 0); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(left); d > time.Second {
			t.Errorf("the upstream call ended %v after the client had left", d)
		}
		for _, p := range w.Engine.Status().Providers {
			if p.Breaker.Failures != 0 || p.Connections[0].State != "ready" {
				t.Errorf("a client that left changed %+v", p)
			}
		}
	})
}

func TestErrors(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		for _, c := range []struct {
			path, body string
			status     int
			want       string
		}{
			{"/v1/chat/completions", `{"model":"nope","messages":[]}`, 404, "model_not_found"},
			{"/v1/chat/completions", `{"model":`, 400, "JSON"},
			{"/v1/chat/completions", `{}`, 400, "model"},
			{"/v1/nothing/here", `{"model":"nope"}`, 404, "model_not_found"},
		} {
			a := w.Post(t.Context(), c.path, c.body)
			if a.Status != c.status || !strings.Contains(a.Error, c.want) {
				t.Errorf("%s %s: %d %s", c.path, c.body, a.Status, a.Body)
			}
		}
		for _, p := range w.Providers {
			p.SetFault(lab.RateLimited(lab.RetryAfter(30 * time.Second)))
		}
		start := time.Now()
		a := w.Chat(t.Context(), "c", false)
		if a.Status != 429 || a.Error != "all_targets_unavailable" || a.Header.Get("Retry-After") != "30" {
			t.Fatalf("%+v", a)
		}
		if d := time.Since(start); d > 50*time.Millisecond {
			t.Errorf("the answer took %v", d)
		}
		before := w.Providers["p"].Total()
		a = w.Chat(t.Context(), "c", false)
		if a.Status != 429 || w.Providers["p"].Total() != before || !strings.Contains(a.Body, `"layer":"connection"`) {
			t.Errorf("%+v", a)
		}
	})
}
