package gateway_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"omniroute/internal/gateway/gatewaytest"
)

// TestFramesForOfficialClients: an upstream of the client's own dialect frames its events in a way that official clients
// fail on. Data stays as it is, and a stream that is framed well stays so altogether.
func TestFramesForOfficialClients(t *testing.T) {
	const (
		message = `data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}

data: {"x":1.0,"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

`
		google = `: hello
event: message
id: 1
data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]}}],
data: "x":1.0}

: keep-alive

data: {"candidates":[{"content":{"role":"model","parts":[{"text":"!"}]},"finishReason":"STOP"}]}

`
	)
	named := regexp.MustCompile(`(?m)^(event: .*\n)?data: (\{.*"type":"([a-z_]+)".*)$`).ReplaceAllStringFunc(message, func(block string) string {
		_, data, _ := strings.Cut(block, "data: ")
		var v struct{ Type string }
		if err := json.Unmarshal([]byte(data), &v); err != nil {
			t.Fatal(err)
		}
		return "event: " + v.Type + "\ndata: " + data
	})
	ups := map[string]*upstream{"anth": {answers: []answer{{body: message}, {body: named}}}, "goog": {answers: []answer{{body: google}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		for range 2 {
			if a := w.Post(t.Context(), "/v1/messages", fmt.Sprintf(askMessages, "m-anth")); a.Body != named {
				t.Errorf("%s", a.Body)
			}
		}
		a := w.Post(t.Context(), "/v1beta/models/m-goog:streamGenerateContent?alt=sse", `{"contents":[{"parts":[{"text":"q"}]}]}`)
		want := `data: {"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]}}], "x":1.0}` + "\n\n" +
			`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"!"}]},"finishReason":"STOP"}]}` + "\n\n"
		if a.Body != want {
			t.Errorf("%s", a.Body)
		}
	})
}

// TestCountThatNobodyMakes: a provider without a count of tokens says so by a 404 of its router, which is nothing against
// the model.
func TestCountThatNobodyMakes(t *testing.T) {
	const told = `{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1,"output_tokens":1}}`
	for _, body := range []string{`{"detail":"Not Found"}`, `404 page not found`, `{"type":"error","error":{"type":"not_found_error","message":"Not Found"}}`} {
		t.Run("", func(t *testing.T) {
			ups := map[string]*upstream{"anth": {answers: []answer{{status: 404, kind: "application/json", body: body}, {kind: "application/json", body: told}}}}
			across(t, ups, func(t *testing.T, w *gatewaytest.World) {
				a := w.Post(t.Context(), "/v1/messages/count_tokens", `{"model":"m-anth","messages":[{"role":"user","content":"q"}]}`)
				if a.Status != 404 {
					t.Errorf("%+v", a)
				}
				if a = w.Post(t.Context(), "/v1/messages", `{"model":"m-anth","max_tokens":9,"messages":[{"role":"user","content":"q"}]}`); a.Status != 200 {
					t.Errorf("the model is out: %+v", a)
				}
			})
		})
	}
}

// TestResponsesBodyOnTheChatPath: an editor sends a Responses request to the chat path, and reads a chat's answer.
func TestResponsesBodyOnTheChatPath(t *testing.T) {
	ups := map[string]*upstream{"chat": {answers: []answer{{body: chatTools}}}, "anth": {answers: []answer{{kind: "application/json", body: `{"id":"msg_1","type":"message","role":"assistant","model":"x","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`}}}}
	across(t, ups, func(t *testing.T, w *gatewaytest.World) {
		const ask = `{"model":%q,"stream":%t,"instructions":"Be brief.","input":[{"role":"user","content":[{"type":"input_text","text":"q"}]}],"tools":[{"type":"function","name":"f","parameters":{"type":"object"},"strict":false}],"reasoning":{"effort":"low"}}`
		a := w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(ask, "m-chat", true))
		if a.Status != 200 || a.Body != chatTools {
			t.Errorf("%+v", a)
		}
		want := `{"model":"m-chat","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"q"}],"stream":true,"stream_options":{"include_usage":true},` +
			`"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"},"strict":false}}],"reasoning_effort":"low"}`
		if got := ups["chat"].last(t).body; got != want {
			t.Errorf("%s", got)
		}
		a = w.Post(t.Context(), "/v1/chat/completions", fmt.Sprintf(ask, "m-anth", false))
		if a.Status != 200 || !strings.Contains(a.Body, `"object":"chat.completion"`) {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1/chat/completions", `{"model":"m-chat","input":"q","previous_response_id":"resp_1"}`)
		if a.Status != 400 || !strings.Contains(a.Body, `"param":"previous_response_id"`) {
			t.Errorf("%+v", a)
		}
		a = w.Post(t.Context(), "/v1/responses", `{"model":"m-chat","messages":[{"role":"user","content":"q"}]}`)
		if a.Status != 400 || !strings.Contains(a.Body, "/v1/chat/completions") {
			t.Errorf("%+v", a)
		}
	})
}
