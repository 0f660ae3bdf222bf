package gateway_test

import (
	"strings"
	"testing"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// TestDeadConnections: what dies before a byte of an answer on a connection that was used before
// is sent again at once, on a new connection, and tells nothing about the upstream (law R4).
func TestDeadConnections(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]lab.Fault{"reset": lab.ResetReused(), "closed": lab.CloseReused()} {
		t.Run(name, func(t *testing.T) {
			world(t, func(t *testing.T, w *gatewaytest.World) {
				// Several connections are kept, so that the next one kept would be dead too.
				done := make(chan gatewaytest.Answer, 4)
				w.Providers["p"].SetFault(lab.SlowHeaders(time.Second))
				for range cap(done) {
					go func() { done <- w.Chat(t.Context(), "p/m", true) }()
				}
				for range cap(done) {
					<-done
				}
				w.Providers["p"].SetFault(fault)
				for range 6 {
					if a := w.Chat(t.Context(), "p/m", true); a.Status != 200 || !a.Done || a.Header.Get("X-Omniroute-Attempts") != "1" {
						t.Fatalf("%+v", a)
					}
				}
				if st := w.Engine.Status().Providers[0]; st.Breaker.Failures != 0 || st.Connections[0].State != "ready" || st.Connections[1].State != "ready" {
					t.Errorf("%+v", st)
				}
			})
		})
	}
}

// TestLastingRequests: what makes something that stays is repeated only where it was provably not
// sent or was refused (law R10).
func TestLastingRequests(t *testing.T) {
	t.Parallel()
	const jobs, chat, responses = "/v1/fine_tuning/jobs", "/v1/chat/completions", "/v1/responses"
	for _, c := range []struct {
		name, path, body string
		fault            lab.Fault
		repeated         bool
		status           int
	}{
		{"cut", jobs, `{"model":"m"}`, lab.ResetBeforeHeaders(), false, 502},
		{"failed", jobs, `{"model":"m"}`, lab.ServerError(), false, 502},
		{"a gateway's page", jobs, `{"model":"m"}`, lab.BadGateway(), false, 502},
		{"silent", jobs, `{"model":"m"}`, lab.Hang(), false, 504},
		{"unavailable", jobs, `{"model":"m"}`, lab.Unavailable(lab.Hint{}), false, 502},
		{"unavailable until", jobs, `{"model":"m"}`, lab.Unavailable(lab.RetryAfter(9 * time.Second)), true, 200},
		{"limited", jobs, `{"model":"m"}`, lab.RateLimited(lab.RetryAfter(9 * time.Second)), true, 200},
		{"refused", jobs, `{"model":"m"}`, lab.Unauthorized(), true, 200},
		{"a video", "/v1/videos", `{"model":"m"}`, lab.ServerError(), false, 502},
		{"a response", responses, `{"model":"m","input":"x","background":false}`, lab.ServerError(), true, 200},
		{"a chat", chat, `{"model":"m","messages":[{"role":"user","content":"x"}]}`, lab.ServerError(), true, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			world(t, func(t *testing.T, w *gatewaytest.World) {
				w.Providers["p"].SetFault(c.fault)
				a := w.Post(t.Context(), c.path, strings.Replace(c.body, `"m"`, `"c"`, 1))
				if a.Status != c.status || (w.Providers["q"].Total() > 0) != c.repeated {
					t.Errorf("%d calls, then %d; %+v", w.Providers["p"].Total(), w.Providers["q"].Total(), a)
				}
				if !c.repeated {
					if n := w.Providers["p"].Total(); n != 1 || a.Error != "upstream_error" || !strings.Contains(a.Body, "not repeated") {
						t.Errorf("%d calls; %s", n, a.Body)
					}
					if a.Header.Get("X-Should-Retry") != "false" {
						t.Error("a client that repeats failures by itself is not told to leave it")
					}
					if n := w.Engine.Status().Providers[0].Breaker.Failures; n != 1 {
						t.Errorf("%d failures count, want 1", n)
					}
				}
			})
		})
	}
	t.Run("on a dead connection", func(t *testing.T) {
		world(t, func(t *testing.T, w *gatewaytest.World) {
			w.Chat(t.Context(), "p/m", false)
			w.Providers["p"].SetFault(lab.ResetReused())
			a := w.Post(t.Context(), jobs, `{"model":"c"}`)
			if n := w.Providers["p"].Total(); a.Status != 502 || n != 2 || w.Providers["q"].Total() != 0 {
				t.Errorf("%d calls; %+v", n, a)
			}
		})
	})
	t.Run("not sent", func(t *testing.T) {
		world(t, func(t *testing.T, w *gatewaytest.World) {
			w.Listeners["p"].SetDialing(lab.DialRefused)
			if a := w.Post(t.Context(), jobs, `{"model":"c"}`); a.Status != 200 || w.Providers["q"].Total() != 1 {
				t.Errorf("%+v", a)
			}
		})
	})
}
