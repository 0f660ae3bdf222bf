package gateway_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
)

const aliveConfig = `
store: "memory:"
providers:
  u: {base_url: "$u", connections: [{id: k1, api_key: upstream-secret}]}
combos:
  m: {targets: [u/m], keepalive: 15s, max_wait: 0s}
  quiet: {targets: [u/m], max_wait: 0s}
`

// living runs a test with one upstream that keeps its clients waiting.
func living(t *testing.T, u raw, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f(t, gatewaytest.Start(t, gatewaytest.Setup{Config: aliveConfig, Handlers: map[string]http.Handler{"u": u}}))
	})
}

// after waits before it answers with a stream.
func after(d time.Duration, text string) raw {
	return func(w http.ResponseWriter, _ func(), _ *http.Request) {
		time.Sleep(d)
		io.WriteString(w, text)
	}
}

// fails waits before it answers with an error that says when to come back.
func fails(d time.Duration) raw {
	return func(w http.ResponseWriter, _ func(), _ *http.Request) {
		time.Sleep(d)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "120")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"error":{"message":"slow down","type":"rate_limit_error"}}`)
	}
}

const whole = hello + gap + finish + gap + done + gap

// TestKeepalive: the client of a stream gets the status and a sign of life once nothing has come for
// so long, and again as often, and then the answer as it would have come.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	t.Run("every 15s until the answer begins", func(t *testing.T) {
		living(t, after(50*time.Second, whole), func(t *testing.T, w *gatewaytest.World) {
			start := time.Now()
			resp := ask(t, w, `{"model":"m","stream":true}`)
			defer resp.Body.Close()
			if d := time.Since(start); d != 15*time.Second || resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" || resp.Header.Get("X-Request-Id") == "" {
				t.Errorf("after %v: %d %v", d, resp.StatusCode, resp.Header)
			}
			var at []time.Duration
			var got strings.Builder
			for lines := bufio.NewReader(resp.Body); ; {
				line, err := lines.ReadString('\n')
				if got.WriteString(line); strings.HasPrefix(line, ":") {
					at = append(at, time.Since(start))
				}
				if err != nil {
					break
				}
			}
			const sign = ": keep-alive\n\n"
			if want := sign + sign + sign + whole; got.String() != want {
				t.Errorf("got %q, want %q", got.String(), want)
			}
			if len(at) != 3 || at[1] != 30*time.Second || at[2] != 45*time.Second {
				t.Errorf("signs of life after %v", at)
			}
			if s := w.Stories()[0]; s.Status != 200 || s.Broke != "" || s.FirstContent != 50*time.Second || outcomes(s) != "u answered" {
				t.Errorf("%+v", s)
			}
		})
	})
	t.Run("not before its time, nor after the answer has begun", func(t *testing.T) {
		slow := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
			time.Sleep(14 * time.Second)
			io.WriteString(w, hello+gap)
			flush()
			time.Sleep(50 * time.Second)
			io.WriteString(w, finish+gap+done+gap)
		})
		living(t, slow, func(t *testing.T, w *gatewaytest.World) {
			if a := w.Chat(t.Context(), "m", true); a.Body != whole || a.Header.Get("X-Omniroute-Provider") != "u" {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("not for a whole answer", func(t *testing.T) {
		const body = `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`
		living(t, raw(func(w http.ResponseWriter, _ func(), _ *http.Request) {
			time.Sleep(50 * time.Second)
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, body)
		}), func(t *testing.T, w *gatewaytest.World) {
			if a := w.Chat(t.Context(), "m", false); a.Body != body || a.Header.Get("X-Omniroute-Provider") != "u" {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("not where it is not wanted", func(t *testing.T) {
		living(t, fails(50*time.Second), func(t *testing.T, w *gatewaytest.World) {
			if a := w.Chat(t.Context(), "quiet", true); a.Status != 429 || a.Header.Get("Retry-After") == "" {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("an early failure has its status", func(t *testing.T) {
		living(t, fails(14*time.Second), func(t *testing.T, w *gatewaytest.World) {
			if a := w.Chat(t.Context(), "m", true); a.Status != 429 || a.Header.Get("Retry-After") == "" || w.Stories()[0].Broke != "" {
				t.Errorf("%+v", a)
			}
		})
	})
	t.Run("the client leaves", func(t *testing.T) {
		living(t, after(55*time.Second, whole), func(t *testing.T, w *gatewaytest.World) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			w.Chat(ctx, "m", true)
			time.Sleep(time.Second)
			synctest.Wait()
			if s := w.Stories(); len(s) != 1 || s[0].Status != 499 || outcomes(s[0]) != "u canceled" || s[0].Duration > 21*time.Second {
				t.Errorf("%+v", s)
			}
		})
	})
}

// TestKeepaliveThenFailure: once the status is sent a total failure is said within the stream, in
// the client's dialect, with everything that the error's own answer would have said.
func TestKeepaliveThenFailure(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, path, body, sign, want, last string }{
		{"chat", "/v1/chat/completions", `{"model":"m","stream":true,"messages":[{"role":"user","content":"q"}]}`,
			": keep-alive\n\n", `data: {"error":{"message":`, ""},
		{"responses", "/v1/responses", `{"model":"m","stream":true,"input":"q"}`,
			": keep-alive\n\n", "event: error\ndata: {\"type\":\"error\",\"sequence_number\":0,\"error\":{\"message\":",
			"event: response.failed\ndata: {\"type\":\"response.failed\",\"sequence_number\":1,\"response\":{\"id\":\"resp_"},
		{"messages", "/v1/messages", `{"model":"m","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"q"}]}`,
			"event: ping\ndata: {\"type\": \"ping\"}\n\n", "event: error\ndata: {\"type\":\"error\",", ""},
		{"gemini", "/v1beta/models/m:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"q"}]}]}`,
			"\n\n", `data: {"error":{"code":429,`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			living(t, fails(40*time.Second), func(t *testing.T, w *gatewaytest.World) {
				a := w.Post(t.Context(), c.path, c.body)
				rest, ok := strings.CutPrefix(a.Body, c.sign+c.sign)
				rest, last, _ := strings.Cut(rest, "\n\n")
				if a.Status != 200 || !ok || !strings.HasPrefix(rest, c.want) || !strings.HasPrefix(last, c.last) ||
					strings.Count(last, "\n\n") != min(1, len(c.last)) || last != "" && !strings.HasSuffix(last, "\n\n") {
					t.Errorf("%d %q", a.Status, a.Body)
				}
				for _, part := range []string{"rate limited or out of quota", "slow down", `"attempts":[{"provider":"u"`, `"retry_after_ms":`, `"request_id":"` + a.Header.Get("X-Request-Id") + `"`} {
					if !strings.Contains(rest, part) {
						t.Errorf("%s is missing in %s", part, rest)
					}
				}
				if log := w.Logged(); !strings.Contains(log, "level=WARN msg=request") || strings.Contains(log, "status=5") {
					t.Errorf("the log says %s", log)
				}
				s := w.Stories()[0]
				if s.Status != 200 || s.Code != "all_targets_unavailable" || !strings.Contains(s.Broke, s.Code) {
					t.Errorf("%+v", s)
				}
			})
		})
	}
	t.Run("the deadline", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			w := gatewaytest.Start(t, gatewaytest.Setup{Config: strings.Replace(aliveConfig, "keepalive: 15s", "keepalive: 15s, deadline: 50s", 1), Handlers: map[string]http.Handler{"u": after(55*time.Second, whole)}})
			if a := w.Chat(t.Context(), "m", true); a.Status != 200 || a.Error != "deadline_exceeded" || a.Done || a.Wrong != "" {
				t.Errorf("%+v", a)
			}
		})
	})
}
