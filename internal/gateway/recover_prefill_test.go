package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/failover"
	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/relay"
)

// goer is an upstream that is cut off within its first answer and goes on in its second. It keeps
// what it was asked.
type goer struct {
	first, second string
	wait          time.Duration // before the second answer

	mu    sync.Mutex
	asked []string
}

func (g *goer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	g.mu.Lock()
	g.asked = append(g.asked, string(body))
	n := len(g.asked)
	g.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	if n > 1 {
		time.Sleep(g.wait)
		_, _ = io.WriteString(w, g.second)
		return
	}
	_, _ = io.WriteString(w, g.first)
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

const (
	messagesBegun = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"One two\n"}}

`
	messagesOn = `event: message_start
data: {"type":"message_start","message":{"id":"msg_2","type":"message","role":"assistant","model":"claude-x","content":[],"stop_reason":null,"usage":{"input_tokens":12,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"\nthree"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":4}}

event: message_stop
data: {"type":"message_stop"}

`
	chatBegun = `data: {"id":"chat-one","object":"chat.completion.chunk","created":5,"model":"m-x","choices":[{"index":0,"delta":{"role":"assistant","content":"One two\n"},"finish_reason":null}]}

`
	chatOn = `data: {"id":"chat-two","object":"chat.completion.chunk","created":6,"model":"m-x","choices":[{"index":0,"delta":{"role":"assistant","content":"\nthree"},"finish_reason":null}]}

data: {"id":"chat-two","object":"chat.completion.chunk","created":6,"model":"m-x","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":12,"completion_tokens":4}}

data: [DONE]

`
)

// TestPrefill asks upstreams to go on from the beginning of an answer, each in its way, and looks
// at what they were asked and at what the client reads.
func TestPrefill(t *testing.T) {
	t.Parallel()
	const chat = `{"model":"c","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"hi"}],"x":1}`
	const messages = `{"model":"c","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"hi"}],"x":1}`
	asked := func(member, more string) string {
		return fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":48,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"One two"%s}],"x":1%s}`, member, more)
	}
	for _, c := range []struct {
		name, dialect, prefill string
		first, second          string
		path, body             string
		asked                  string   // a part of the second request
		want                   []string // parts of what the client reads, in order
		not                    string
	}{
		{"chat, plain", "openai", "plain", chatBegun, chatOn, "/v1/chat/completions", chat, asked("", ""),
			[]string{`"id":"chat-one"`, `One two\n"`, `"id":"chat-one","object":"chat.completion.chunk","created":5,"model":"m-x"`, `"content":"three"`, `"finish_reason":"stop"`, "[DONE]"}, "chat-two"},
		{"chat, prefix", "openai", "prefix", chatBegun, chatOn, "/v1/chat/completions", chat, asked(`,"prefix":true`, ""), []string{`"content":"three"`, "[DONE]"}, "chat-two"},
		{"chat, partial", "openai", "partial", chatBegun, chatOn, "/v1/chat/completions", chat, asked(`,"partial":true`, ""), []string{`"content":"three"`, "[DONE]"}, "chat-two"},
		{"chat, continue_final_message", "openai", "continue_final_message", chatBegun, chatOn, "/v1/chat/completions", chat,
			asked("", `,"continue_final_message":true,"add_generation_prompt":false`), []string{`"content":"three"`, "[DONE]"}, "chat-two"},
		{"messages", "anthropic", "plain", messagesBegun, messagesOn, "/v1/messages", messages,
			`{"model":"m","stream":true,"max_tokens":48,"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"text","text":"One two"}]}],"x":1}`,
			[]string{`"id":"msg_1"`, `"index":0`, `One two\n"`, `"index":0,"delta":{"type":"text_delta","text":"three"}`, `"content_block_stop","index":0`, `"stop_reason":"end_turn"`, `"input_tokens":21`, `"output_tokens":5`, "message_stop"}, "msg_2"},
		{"a chat client over messages", "anthropic", "plain", messagesBegun, messagesOn, "/v1/chat/completions",
			`{"model":"c","stream":true,"max_tokens":50,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
			`{"role":"assistant","content":[{"type":"text","text":"One two"}]}`,
			[]string{`"id":"msg_1"`, `"content":"One two\n"`, `"id":"msg_1"`, `"content":"three"`, `"finish_reason":"stop"`, `"prompt_tokens":21,"completion_tokens":5`, "[DONE]"}, "msg_2"},
		{"a messages client over chat", "openai", "prefix", chatBegun, chatOn, "/v1/messages", `{"model":"c","stream":true,"max_tokens":50,"messages":[{"role":"user","content":"hi"}]}`,
			`{"role":"assistant","content":"One two","prefix":true}`,
			[]string{`"id":"chat-one"`, `"index":0,"delta":{"type":"text_delta","text":"One two\n"}`, `"index":0,"delta":{"type":"text_delta","text":"three"}`, `"stop_reason":"end_turn"`, "message_stop"}, "chat-two"},
		{"a responses client over chat", "openai", "prefix", chatBegun, chatOn, "/v1/responses", `{"model":"c","stream":true,"input":"hi"}`,
			`{"role":"assistant","content":"One two","prefix":true}`,
			[]string{`"sequence_number":0`, `"delta":"One two\n"`, `"sequence_number":5`, `"delta":"three"`, `"text":"One two\nthree"`, "response.completed"}, "chat-two"},
		{"thinking: said again, and here it is not", "anthropic", "plain", messagesBegun, messagesOn, "/v1/messages",
			`{"model":"c","stream":true,"max_tokens":5000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[{"role":"user","content":"hi"}]}`,
			`"messages":[{"role":"user","content":"hi"}]}`, []string{`One two\n"`, "event: error"}, "three"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				up := &goer{first: c.first, second: c.second}
				w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"up": up}, Config: fmt.Sprintf(`
store: "memory:"
providers:
  up: {base_url: "$up", dialect: %s, prefill: none, models: [{id: m, prefill: %s}], connections: [{id: a, api_key: k}]}
combos:
  c: {targets: [up/m], recover: continue, max_attempts: 2}
`, c.dialect, c.prefill)})
				a := w.Post(t.Context(), c.path, c.body)
				rest := a.Body
				for _, part := range c.want {
					_, after, ok := strings.Cut(rest, part)
					if !ok {
						t.Fatalf("%s is not where it should be:\n%s", part, a.Body)
					}
					rest = after
				}
				if strings.Contains(a.Body, c.not) {
					t.Errorf("the client sees %s:\n%s", c.not, a.Body)
				}
				if len(up.asked) != 2 || !strings.Contains(up.asked[1], c.asked) {
					t.Errorf("asked: %s", up.asked)
				}
			})
		})
	}
}

// While another attempt is asked the client has what came before, also where it came together
// with the end.
func TestRecoveryHoldsNothingBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const boom = `data: {"error":{"message":"boom","type":"server_error"}}` + "\n\n"
		up := &goer{first: chatBegun + boom, second: chatOn, wait: 5 * time.Second}
		w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"up": up}, Config: `
store: "memory:"
providers:
  up: {base_url: "$up", prefill: plain, models: [m], connections: [{id: a, api_key: k}]}
combos:
  c: {targets: [up/m], recover: continue}
`})
		start := time.Now()
		resp, err := w.Client.Post(w.URL+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"c","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		begun := make([]byte, len(chatBegun))
		if _, err := io.ReadFull(resp.Body, begun); err != nil || string(begun) != chatBegun {
			t.Fatalf("%v %s", err, begun)
		}
		if took := time.Since(start); took > time.Second {
			t.Errorf("what came at once was held back for %v", took)
		}
		rest, err := io.ReadAll(resp.Body)
		if err != nil || !strings.Contains(string(rest), "three") || time.Since(start) < 5*time.Second {
			t.Errorf("%v %s", err, rest)
		}
	})
}

// A client that leaves while another attempt is asked, and a gateway that shuts down then, end
// the request at once, and blame nobody for it but the attempt that broke off.
func TestRecoveryIsAbandoned(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		cause  error
		status int
		ends   string
	}{
		{"the client leaves", nil, 499, ""},
		{"a shutdown", relay.ErrShuttingDown, 200, "shutting_down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				up := &goer{first: chatBegun, second: chatOn, wait: 5 * time.Second}
				w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"up": up}, Config: `
store: "memory:"
providers:
  up: {base_url: "$up", prefill: plain, models: [m], connections: [{id: a, api_key: k}]}
combos:
  c: {targets: [up/m], recover: continue}
`})
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(2*time.Second, func() { cancel(c.cause) })
				req := httptest.NewRequestWithContext(ctx, "POST", "http://localhost/v1/chat/completions", strings.NewReader(`{"model":"c","stream":true,"messages":[{"role":"user","content":"hi"}]}`))
				req.RemoteAddr = "127.0.0.1:1"
				rec := httptest.NewRecorder()
				start := time.Now()
				w.Gateway.ServeHTTP(rec, req)
				if took := time.Since(start); took > 2500*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				rest, ok := strings.CutPrefix(rec.Body.String(), chatBegun)
				if !ok || (c.ends == "") != (rest == "") || !strings.Contains(rest, c.ends) || strings.Contains(rest, "[DONE]") {
					t.Errorf("the client got %s", rec.Body)
				}
				s := w.Stories()[0]
				if s.Status != c.status || len(s.Attempts) != 2 || s.Attempts[0].Outcome != failover.OutcomeFailed || s.Attempts[1].Outcome != failover.OutcomeCanceled {
					t.Errorf("status %d, %+v", s.Status, s.Attempts)
				}
				time.Sleep(5 * time.Second) // until the upstream has noticed
			})
		})
	}
}
