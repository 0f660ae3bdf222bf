package classify

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"omniroute/resilience"
)

// triggers are all phrases and codes that some rule reads, as a prompt might hold them.
func triggers() []string {
	var ts []string
	for _, r := range BuiltinRules() {
		for _, t := range r.Text {
			ts = append(ts, strings.TrimSuffix(strings.ReplaceAll(t, "*", "gpt-4o"), "$"))
		}
		for _, c := range r.Code {
			ts = append(ts, strings.Trim(c, "*_"))
		}
	}
	return append(ts, "Please try again in 500s", `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`, "retry-after: 900")
}

// echoes are the ways in which upstreams repeat a prompt in a complaint about the request.
var echoes = []func(prompt string) (status int, body any){
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Invalid value for 'content': \"" + p + "\"", "type": "invalid_request_error", "param": "messages[0].content", "code": "invalid_value"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Invalid content: " + p, "type": "invalid_request_error"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "bad request", "echo": p}}
	},
	func(p string) (int, any) {
		return 422, m{"detail": []any{m{"type": "string_type", "loc": []any{"body", "messages", 0, "content"}, "msg": "Input should be a valid string", "input": p}}}
	},
	func(p string) (int, any) {
		return 422, m{"detail": []any{m{"loc": []any{"body"}, "msg": "1 validation error: input_value='" + p + "'", "type": "value_error"}}}
	},
	func(p string) (int, any) {
		return 400, m{"type": "error", "error": m{"type": "invalid_request_error", "message": "messages.0.content: unexpected text `" + p + "`"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"code": 400, "status": "INVALID_ARGUMENT", "message": "Invalid value at 'contents[0].parts[0]': \"" + p + "\"", "details": []any{m{"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": []any{m{"field": "contents[0].parts[0]", "description": p}}}}}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Could not parse the message: " + p, "type": "invalid_request_error", "request": m{"messages": []any{m{"role": "user", "content": p}}}}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Failed to call a function.", "code": "invalid_request_error", "failed_generation": p, "input": p}}
	},
	func(p string) (int, any) {
		return 413, m{"error": m{"message": "Your prompt: " + p + " is too much for us"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Expected a string, but got " + p, "param": "input", "type": "invalid_request_error"}}
	},
	func(p string) (int, any) {
		return 400, m{"object": "error", "message": "Unrecognized request argument supplied: " + p, "type": "BadRequestError", "code": 400}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Unterminated string starting at \"" + p, "type": "invalid_request_error"}}
	},
}

type m = map[string]any

// TestAMessageThatSaysEverythingSaysNothing has no words around the echo that give it away.
func TestAMessageThatSaysEverythingSaysNothing(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	body := `{"error":{"message":"This does not please us, as the user wrote that his account is suspended due to an insufficient balance and an invalid api key, that the model does not exist, and that his quota is used up every day","type":"invalid_request_error"}}`
	if v := cl.Classify(Input{Status: 400, Body: []byte(body), Now: exampleNow}); v.Scope != client {
		t.Errorf("got %v (%s), want the client's own fault", v, v.Evidence)
	}
	body = `{"error":{"message":"Your credit balance is too low. Please go to Plans & Billing to upgrade or purchase credits, or ask your administrator.","type":"invalid_request_error"}}`
	if v := cl.Classify(Input{Status: 400, Body: []byte(body), Now: exampleNow}); v.Kind != billing {
		t.Errorf("got %v (%s), want billing: a real complaint has one cause", v, v.Evidence)
	}
}

// TestEchoedPromptsChangeNoState pairs request errors that repeat the prompt with prompts that
// hold the phrases of every rule.
func TestEchoedPromptsChangeNoState(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	rng := rand.New(rand.NewPCG(1, 2))
	ts := triggers()
	shapes := []func([]string) string{
		func(p []string) string { return strings.Join(p, ". ") },
		func(p []string) string { return "Explain this log line to me: " + strings.Join(p, "; ") },
		func(p []string) string { return "She said \"" + strings.Join(p, "\" and \"") + "\", didn't she?" },
		func(p []string) string { return strings.ToUpper(strings.Join(p, "\n")) },
	}
	for i := range 520 {
		// Every phrase at once in the first rounds, then a few of them.
		phrases := ts
		if i >= 52 {
			phrases = nil
			for range 1 + rng.IntN(5) {
				phrases = append(phrases, ts[rng.IntN(len(ts))])
			}
		}
		prompt := shapes[i%len(shapes)](phrases)
		status, body := echoes[i%len(echoes)](prompt)
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range []string{"openai", "acme", "zhipu"} {
			v := cl.Classify(Input{Provider: p, Model: "gpt-4o", Status: status, Body: raw, Now: exampleNow})
			if v.Scope != resilience.ScopeRequest && v.Scope != resilience.ScopeClient {
				t.Fatalf("pair %d at %s: an echoed prompt made %v (%s)\n%.600s", i, p, v, v.Evidence, raw)
			}
		}
	}
}

// TestModelsMayTalkAboutErrors has the same phrases in good answers, whole and streamed.
func TestModelsMayTalkAboutErrors(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	all := strings.Join(triggers(), ". ")
	quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	for _, said := range []string{all, `{"error":{"code":"insufficient_quota"}}`, "data: {\"error\":1}\n\nevent: error\n", "<html>502 Bad Gateway</html>", `"error":"x"`} {
		q := quote(said)
		for name, body := range map[string]string{
			"openai":           `{"id":"1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":` + q + `},"finish_reason":"stop"}],"usage":{"completion_tokens":5},"error":null}`,
			"openai tools":     `{"object":"chat.completion","choices":[{"message":{"content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":` + q + `}}]},"finish_reason":"tool_calls"}]}`,
			"responses":        `{"id":"r","object":"response","status":"completed","error":null,"output":[{"type":"message","content":[{"type":"output_text","text":` + q + `}]}]}`,
			"anthropic":        `{"type":"message","role":"assistant","content":[{"type":"text","text":` + q + `}],"stop_reason":"end_turn"}`,
			"gemini":           `{"candidates":[{"content":{"parts":[{"text":` + q + `}]},"finishReason":"STOP"}]}`,
			"ollama":           `{"model":"m","message":{"role":"assistant","content":` + q + `},"done":true}`,
			"openai stream":    `data: {"choices":[{"delta":{"content":` + q + `}}]}` + "\n\n" + `data: {"choices":[{"delta":{},"finish_reason":"stop"}]}` + "\n\ndata: [DONE]\n\n",
			"anthropic stream": "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{}}\n\nevent: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"type\":\"text_delta\",\"text\":" + q + "}}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"}}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
			"responses stream": "event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"delta\":" + q + "}\n\nevent: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"object\":\"response\",\"status\":\"completed\",\"error\":null}}\n\n",
			"gemini stream":    `data: {"candidates":[{"content":{"parts":[{"text":` + q + `}]},"finishReason":"STOP"}]}` + "\n\n",
			"ollama stream":    `{"message":{"content":` + q + `},"done":false}` + "\n" + `{"message":{"content":""},"done":true,"done_reason":"stop"}` + "\n",
		} {
			if v := cl.Classify(Input{Status: 200, Body: []byte(body), Now: exampleNow}); v.Scope != resilience.ScopeNone {
				t.Errorf("%s: a good answer became %v (%s)\n%.300s", name, v, v.Evidence, body)
			}
		}
	}
}

// TestEmptyAnswers follows S5: empty is legitimate with a reason or with output tokens.
func TestEmptyAnswers(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	choice := func(message, finish, usage string) string {
		return fmt.Sprintf(`{"object":"chat.completion","choices":[{"message":%s,"finish_reason":%q}],"usage":%s}`, message, finish, usage)
	}
	none := `{"content":""}`
	for _, tt := range []struct{ body, want string }{
		{choice(none, "stop", `{"completion_tokens":0}`), "model/empty_response"},
		{choice(none, "stop", `{}`), "model/empty_response"},
		{choice(none, "stop", `{"completion_tokens":3}`), "none/unknown"},
		{choice(none, "length", `{"completion_tokens":0}`), "none/unknown"},
		{choice(none, "content_filter", `{}`), "none/unknown"},
		{choice(`{"content":null,"tool_calls":[{"id":"1"}]}`, "tool_calls", `{}`), "none/unknown"},
		{choice(`{"content":null,"tool_calls":[]}`, "stop", `{}`), "model/empty_response"},
		{choice(`{"content":"","reasoning_content":"hm"}`, "stop", `{}`), "none/unknown"},
		{choice(`{"content":null,"refusal":"no"}`, "stop", `{}`), "none/unknown"},
		{choice(none, "error", `{}`), "model/server_error"},
		{`{"choices":[]}`, "model/malformed_response"},
		{`{"type":"message","content":[],"stop_reason":"end_turn","usage":{"output_tokens":0}}`, "model/empty_response"},
		{`{"type":"message","content":[],"stop_reason":"end_turn","usage":{"output_tokens":2}}`, "none/unknown"},
		{`{"type":"message","content":[],"stop_reason":"max_tokens","usage":{"output_tokens":0}}`, "none/unknown"},
		{`{"type":"message","content":[],"stop_reason":"refusal"}`, "none/unknown"},
		{`{"type":"message","content":[{"type":"tool_use","id":"1","name":"f","input":{}}],"stop_reason":"tool_use"}`, "none/unknown"},
		{`{"object":"response","status":"completed","output":[]}`, "model/empty_response"},
		{`{"object":"response","status":"incomplete","incomplete_details":{"reason":"max_output_tokens"},"output":[]}`, "none/unknown"},
		{`{"object":"response","status":"completed","output":[{"type":"function_call","name":"f"}]}`, "none/unknown"},
		{`{"object":"response","status":"queued","output":[],"background":true}`, "none/unknown"},
		{`{"object":"response","status":"failed","error":{"code":"server_error","message":"x"},"output":[]}`, "provider/server_error"},
		{`{"candidates":[{"content":{"parts":[]},"finishReason":"STOP"}]}`, "model/empty_response"},
		{`{"candidates":[{"content":{},"finishReason":"MAX_TOKENS"}]}`, "none/unknown"},
		{`{"candidates":[{"finishReason":"SAFETY"}]}`, "none/unknown"},
		{`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f","args":{}}}]},"finishReason":"STOP"}]}`, "none/unknown"},
		{`{"candidates":[],"promptFeedback":{"blockReason":"SAFETY"}}`, "request/content_policy"},
		{`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL"}]}`, "model/malformed_response"},
		{`[{"candidates":[{"content":{"parts":[{"text":"Hi"}]},"finishReason":"STOP"}]}]`, "none/unknown"},
		{`{"object":"list","data":[]}`, "none/unknown"},
		{`{"object":"list","data":[{"embedding":[0.1]}]}`, "none/unknown"},
		{`{"input_tokens":12}`, "none/unknown"},
		{`{}`, "none/unknown"},
		{`{"choices":[{"message":{"content":"Once`, "provider/malformed_response"},
		{"data: {\"choices\":[{\"delta\":{\"role\":\"assistant\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", "model/empty_response"},
		{"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n", "none/unknown"},
		{"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: {\"choices\":[],\"usage\":{\"completion_tokens\":1}}\n\ndata: [DONE]\n\n", "provider/network"},
		{"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"output_tokens\":1}}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n", "provider/network"},
	} {
		v := cl.Classify(Input{Status: 200, Body: []byte(tt.body), Now: exampleNow})
		if got := v.Scope.String() + "/" + v.Kind.String(); got != tt.want {
			t.Errorf("got %s by %s (%s), want %s\n\t%s", got, v.Rule, v.Evidence, tt.want, tt.body)
		}
	}
	if v := cl.Classify(Input{Status: 204, Now: exampleNow}); v.Scope != resilience.ScopeNone {
		t.Errorf("204 has no body by definition, got %v", v)
	}
}
