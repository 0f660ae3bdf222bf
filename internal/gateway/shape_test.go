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
  both: {targets: [v/m, u/m], recover: continue}
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
		"whole, with a mark":           typed("application/json", "\xef\xbb\xbf"+wholeChat),
		"whole, called a stream":       typed("text/event-stream", wholeChat),
		"whole, behind comments":       typed("text/event-stream", wholeChat, ": hello\n\n"),
		"whole, called a stream too":   typed("text/event-stream", strings.ReplaceAll(wholeChat, ",", ",\r\n\r\n"), "\n"),
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
	for name, c := range map[string]struct {
		u       raw
		stream  bool
		more    string // of the request
		verdict string
	}{
		"a cut answer that is called a stream": {typed("text/event-stream", wholeChat[:100]), true, "", "provider/malformed_response"},
		"an error in a whole answer":           {typed("application/json", refusal), true, "", "connection/rate_limit"},
		"a whole answer that says nothing":     {typed("application/json", nothing, "\n"), true, "", "model/empty_response"},
		"a whole answer that is cut":           {typed("application/json", wholeChat[:100]), true, "", "provider/malformed_response"},
		"nothing but blanks":                   {typed("application/json", "  \n", "\n"), true, "", "provider/malformed_response"},
		"a page":                               {typed("text/html", "<html><body>Welcome</body></html>"), true, "", "provider/malformed_response"},
		"an error in a stream":                 {typed("text/event-stream", chatHead+"data: "+refusal+"\n\n"), false, "", "connection/rate_limit"},
		"a stream that is cut":                 {typed("text/event-stream", chatHead), false, "", "provider/network"},
		"a stream that says nothing":           {typed("text/event-stream", chatDone), false, "", "model/malformed_response"},
		"a stream that begins with nothing":    {typed("text/event-stream", "data: data: {}\n\n"+chatTail+chatDone), false, "", "provider/malformed_response"},
		"a list of answers":                    {typed("application/json", "["+wholeChat+"]"), false, "", "provider/malformed_response"},
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

// TestOtherShapeLosesNothing: several choices, probabilities and what nobody here knows come along, and requests that no other
// dialect could express are answered.
func TestOtherShapeLosesNothing(t *testing.T) {
	t.Parallel()
	whole := `{"id":"c1","object":"chat.completion","created":1,"model":"m-1","citations":["https://x"],"choices":[` +
		`{"index":0,"message":{"role":"assistant","content":"All of it."},"logprobs":{"content":[{"token":"All","logprob":-1}]},"finish_reason":"stop"},` +
		`{"index":1,"message":{"role":"assistant","content":"Or this."},"logprobs":null,"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`
	stream := `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","citations":["https://x"],"choices":[{"index":0,"delta":{"role":"assistant","content":"All "},"logprobs":{"content":[{"token":"All","logprob":-1}]},"finish_reason":null}]}` + "\n\n" +
		`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":1,"delta":{"role":"assistant","content":"Or this."},"logprobs":null,"finish_reason":"length"}]}` + "\n\n" +
		`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m-1","choices":[{"index":0,"delta":{"content":"of it."},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}` + "\n\ndata: [DONE]\n\n"
	for _, streamed := range []bool{true, false} {
		u := typed("application/json", whole)
		if !streamed {
			u = typed("text/event-stream", stream)
		}
		shaped(t, u, func(t *testing.T, w *gatewaytest.World) {
			a := w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(`{"model":"m","stream":%v,"n":2,"logprobs":true,"logit_bias":{"50":1},"web_search_options":{},"messages":[{"role":"user","content":"q"}]}`, streamed))
			for _, want := range []string{"Or this.", `"finish_reason":"length"`, `"logprob":-1`, `"citations":["https://x"]`} {
				if !strings.Contains(a.Body, want) {
					t.Errorf("streamed %v: no %s in %s", streamed, want, a.Body)
				}
			}
			if a.Status != 200 || a.Wrong != "" || a.Header.Get("X-Omniroute-Provider") != "u" || outcomes(w.Stories()[0]) != "u answered" {
				t.Errorf("streamed %v: %+v", streamed, a)
			}
		})
	}
}

// TestCompleteStreamForWholeAnswer: how the bytes of a complete answer end takes nothing from it.
func TestCompleteStreamForWholeAnswer(t *testing.T) {
	t.Parallel()
	cut := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(w, chatHead+chatTail)
		flush()
		panic(http.ErrAbortHandler)
	})
	shaped(t, cut, func(t *testing.T, w *gatewaytest.World) {
		if a := w.Chat(t.Context(), "m", false); a.Status != 200 || a.Text != "All of it." || a.Header.Get("X-Omniroute-Provider") != "u" {
			t.Errorf("%+v", a)
		}
	})
}

// TestListedStream: Google's API sends a stream as one list where it did not hear of events.
func TestListedStream(t *testing.T) {
	t.Parallel()
	part := func(text, more string) string {
		return `{"candidates":[{"content":{"role":"model","parts":[{"text":"` + text + `"}]}` + more + `}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3},"modelVersion":"m-1"}`
	}
	list := "[" + part("All ", "") + "\n,\r\n" + part("of it.", `,"finishReason":"STOP"`) + "\n]"
	u := raw(func(w http.ResponseWriter, _ func(), _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=UTF-8")
		io.WriteString(w, list)
	})
	config := strings.NewReplacer(`base_url: "$u"`, `dialect: gemini, base_url: "$u"`).Replace(shapeConfig)
	for path, want := range map[string]string{
		"/v1beta/models/u/m:streamGenerateContent?alt=sse": "data: " + part("All ", "") + "\n\ndata: " + part("of it.", `,"finishReason":"STOP"`) + "\n\n",
		"/v1beta/models/u/m:generateContent":               `{"candidates":[{"content":{"parts":[{"text":"All of it."}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3},"modelVersion":"m-1"}`,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := gatewaytest.Start(t, gatewaytest.Setup{Config: config, Handlers: map[string]http.Handler{"u": u, "v": u}})
			if a := w.Post(t.Context(), path, `{"contents":[{"parts":[{"text":"q"}]}]}`); a.Status != 200 || a.Body != want {
				t.Errorf("%s: %d\n got %s\nwant %s", path, a.Status, a.Body, want)
			}
			for _, stream := range []bool{false, true} {
				if a := w.Chat(t.Context(), "u/m", stream); a.Status != 200 || a.Text != "All of it." || a.Wrong != "" {
					t.Errorf("chat, streamed %v: %+v", stream, a)
				}
			}
		})
	}
}

// TestWholeAnswerFinishesAStream: a target that answers whole whatever it is asked can finish what another has begun; what it says
// otherwise, or refuses, does not.
func TestWholeAnswerFinishesAStream(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ body, text, broke string }{
		"the same":    {"\xef\xbb\xbf" + wholeChat, "All of it.", ""},
		"otherwise":   {strings.Replace(wholeChat, "All of it.", "None of it.", 1), "All ", "upstream_error"},
		"an error":    {`{"error":{"message":"slow down","type":"rate_limit_error"}}`, "All ", "upstream_error"},
		"not whole":   {wholeChat[:100], "All ", "upstream_error"},
		"not a thing": {`{"id":"c1"}`, "All ", "upstream_error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := gatewaytest.Start(t, gatewaytest.Setup{Config: shapeConfig, Handlers: map[string]http.Handler{
					"u": typed("application/json", c.body, "\n"), "v": typed("text/event-stream", "", chatHead)}})
				a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"both","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"q"}]}`)
				if a.Text != c.text || a.Done != (c.broke == "") || a.Error != c.broke || a.Wrong != "" {
					t.Errorf("%+v", a)
				}
				if s := w.Stories()[0]; c.broke == "" && s.Usage.Output != 3 {
					t.Errorf("%+v", s.Usage)
				}
			})
		})
	}
}
