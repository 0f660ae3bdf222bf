package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
)

const shapeConfig = `
store: "memory:"
providers:
  u: {base_url: "$u", connections: [{id: k1, api_key: upstream-secret}]}
  v: {base_url: "$v", connections: [{id: k2, api_key: upstream-secret}]}
combos:
  m: {targets: [u/m, v/m]}
  alive: {targets: [u/m], keepalive: 15s}
  goes-on: {targets: [u/m], recover: continue}
`

const (
	wholeChat = `{"id":"c1","object":"chat.completion","created":1,"model":"m-1","choices":[{"index":0,"message":{"role":"assistant","content":"All of it."},` +
		`"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`
	chatHead = `data: {"id":"c2","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"role":"assistant","content":"All "},"finish_reason":null}]}` + "\n\n"
	chatTail = `data: {"id":"c2","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"of it."},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"id":"c2","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}` + "\n\n"
	chatDone = "data: [DONE]\n\n"
)

// typed answers with a body of that type, after a rest for each of its beginnings.
func typed(contentType, body string, beginnings ...string) raw {
	return func(w http.ResponseWriter, flush func(), _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		for _, b := range beginnings {
			io.WriteString(w, b)
			flush()
			time.Sleep(time.Second)
		}
		io.WriteString(w, body)
	}
}

// shaped runs a test over an upstream u that answers in its own way, and one that answers as it is asked.
func shaped(t *testing.T, u raw, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		v := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if strings.Contains(string(body), `"stream":true`) {
				says(chatHead+chatTail+chatDone).ServeHTTP(w, r)
				return
			}
			typed("application/json", wholeChat).ServeHTTP(w, r)
		})
		f(t, gatewaytest.Start(t, gatewaytest.Setup{Config: shapeConfig, Handlers: map[string]http.Handler{"u": u, "v": v}}))
	})
}

// TestOtherShape: an upstream that answers whole what was to be streamed, or streams what was to be whole, serves the
// client all the same, in the shape that was asked for.
func TestOtherShape(t *testing.T) {
	t.Parallel()
	for name, u := range map[string]raw{
		"whole":                        typed("application/json", wholeChat),
		"whole, after blanks":          typed("application/json; charset=utf-8", wholeChat, "\n", " \r\n"),
		"whole, without a type":        typed("", wholeChat),
		"a stream that is called JSON": typed("application/json", chatHead+chatTail+chatDone, "\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shaped(t, u, func(t *testing.T, w *gatewaytest.World) {
				for _, combo := range []string{"m", "alive", "goes-on"} {
					a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"`+combo+`","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"}]}`)
					if a.Status != 200 || a.Text != "All of it." || a.Finish != "stop" || !a.Done || a.Wrong != "" || a.Header.Get("X-Omniroute-Provider") != "u" ||
						a.Header.Get("Content-Type") != "text/event-stream; charset=utf-8" || !strings.Contains(a.Body, `"usage":{"prompt_tokens":7,"completion_tokens":3`) {
						t.Errorf("%s: %+v", combo, a)
					}
				}
				if s := w.Stories(); len(s) != 3 || s[0].Usage.Output != 3 || outcomes(s[0]) != "u answered" {
					t.Errorf("%+v", s)
				}
			})
		})
	}
	for name, u := range map[string]raw{
		"a stream":                     typed("text/event-stream", chatHead+chatTail+chatDone),
		"a stream without its end":     typed("text/event-stream", chatTail, chatHead),
		"a stream that is called JSON": typed("application/json", chatHead+chatTail+chatDone),
		"a stream with what is none":   typed("text/event-stream", ": hello\n\n"+chatHead+"data: {\n\n"+chatTail+chatDone+"data: more\n\n"),
	} {
		t.Run("for a whole answer, "+name, func(t *testing.T) {
			t.Parallel()
			shaped(t, u, func(t *testing.T, w *gatewaytest.World) {
				a := w.Chat(t.Context(), "m", false)
				if a.Status != 200 || a.Text != "All of it." || a.Finish != "stop" || a.Header.Get("X-Omniroute-Provider") != "u" ||
					a.Header.Get("Content-Type") != "application/json" || !strings.Contains(a.Body, `"usage":{"prompt_tokens":7,"completion_tokens":3`) {
					t.Errorf("%+v", a)
				}
				if s := w.Stories(); len(s) != 1 || s[0].Usage.Output != 3 || outcomes(s[0]) != "u answered" {
					t.Errorf("%+v", s)
				}
			})
		})
	}
}

// TestOtherShapeFails: in the other shape, too, a failure is one and moves on, and so does what cannot be put into the
// shape that was asked for.
func TestOtherShapeFails(t *testing.T) {
	t.Parallel()
	const refusal = `{"error":{"message":"slow down","type":"rate_limit_error"}}`
	nothing := strings.NewReplacer("All of it.", "", `"completion_tokens":3`, `"completion_tokens":0`).Replace(wholeChat)
	two := strings.Replace(wholeChat, `"choices":[`, `"choices":[{"index":1,"message":{"role":"assistant","content":"Or this."},"finish_reason":"stop"},`, 1)
	for name, c := range map[string]struct {
		u       raw
		stream  bool
		more    string // of the request
		verdict string
	}{
		"an error in a whole answer":       {typed("application/json", refusal), true, "", "connection/rate_limit"},
		"a whole answer that says nothing": {typed("application/json", nothing, "\n"), true, "", "model/empty_response"},
		"a whole answer that is cut":       {typed("application/json", wholeChat[:100]), true, "", "provider/malformed_response"},
		"several answers":                  {typed("application/json", two), true, `"n":2,`, "provider/malformed_response"},
		"nothing but blanks":               {typed("application/json", "  \n", "\n"), true, "", "provider/malformed_response"},
		"a page":                           {typed("text/html", "<html><body>Welcome</body></html>"), true, "", "provider/malformed_response"},
		"an error in a stream":             {typed("text/event-stream", chatHead+"data: "+refusal+"\n\n"), false, "", "connection/rate_limit"},
		"a stream that is cut":             {typed("text/event-stream", chatHead), false, "", "provider/network"},
		"a stream that says nothing":       {typed("text/event-stream", chatDone), false, "", "model/malformed_response"},
		"a stream of several":              {typed("text/event-stream", chatHead+chatTail+chatDone), false, `"n":2,`, "provider/malformed_response"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shaped(t, c.u, func(t *testing.T, w *gatewaytest.World) {
				a := w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,%s"messages":[{"role":"user","content":"q"}]}`, c.stream, c.more))
				s := w.Stories()[0]
				if got, _, _ := strings.Cut(s.Attempts[0].Verdict.String(), " "); a.Status != 200 || a.Text != "All of it." || a.Wrong != "" || outcomes(s) != "u failed, v answered" || got != c.verdict {
					t.Errorf("%s, %s: %+v", outcomes(s), got, a)
				}
			})
		})
	}
}
