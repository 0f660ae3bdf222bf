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
			ts = append(ts, strings.Trim(strings.ReplaceAll(t, "*", "gpt-4o"), "^$"))
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
		return 400, m{"error": m{"message": "Unknown role: " + p, "type": "BadRequestError", "code": 400}}
	},
	func(p string) (int, any) {
		return 404, m{"error": m{"message": "No such File object: " + p, "type": "invalid_request_error", "param": "id"}}
	},
	func(p string) (int, any) {
		return 404, m{"error": m{"message": "No such batch: " + p, "type": "invalid_request_error"}}
	},
	func(p string) (int, any) {
		return 400, m{"object": "error", "message": "Failed to convert the grammar from GBNF: " + p, "type": "BadRequestError"}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"code": 400, "status": "INVALID_ARGUMENT", "message": "Invalid JSON payload received. Unexpected token.\n" + p + "\n^"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "参数错误：「" + p + "」不是有效的角色", "type": "invalid_request_error"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "参数错误：『" + p + "』不是有效的角色"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Le rôle «" + p + "» est inconnu"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Bad role “" + p + "” given"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": "Cannot use " + p + " here", "type": "invalid_request_error", "param": "logit_bias"}}
	},
	func(p string) (int, any) {
		return 400, m{"error": m{"message": p + " is not one of system, user, assistant"}}
	},
	func(p string) (int, any) {
		return 422, m{"detail": p + " is not a valid enum value"}
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
	all := 4 * len(echoes)
	for i := range 10 * all {
		// Every phrase at once in the first rounds, then a few of them.
		phrases := ts
		if i >= all {
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

// parserFaults are the 5xx of servers whose own parser did not take what it was given.
var parserFaults = []func(prompt string) any{
	func(p string) any {
		return m{"error": m{"code": 500, "message": "Failed to parse input at pos 0: " + p, "type": "server_error"}}
	},
	func(p string) any {
		return m{"error": m{"code": 500, "message": "parse error at line 1, column 9: syntax error while parsing value; last read: " + p}}
	},
	func(p string) any {
		return m{"error": m{"message": "error parsing grammar\n" + p, "type": "api_error"}}
	},
	func(p string) any {
		return m{"error": "Failed to apply the template: " + p}
	},
}

// TestEchoesOfParsersBlameNoKey has every phrase alone in a parser's 5xx: a fault of the server at
// most, never of the key or its wallet.
func TestEchoesOfParsersBlameNoKey(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, phrase := range triggers() {
		for i, fault := range parserFaults {
			raw, err := json.Marshal(fault(phrase))
			if err != nil {
				t.Fatal(err)
			}
			if v := cl.Classify(Input{Provider: "llamacpp", Status: 500, Body: raw, Now: exampleNow}); v.Quarantine || v.Scope == resilience.ScopeConnection && v.Kind != serverError {
				t.Errorf("parser %d: %v by %s (%s)\n%s", i, v, v.Rule, v.Evidence, raw)
			}
		}
	}
}

// TestEveryPhraseEchoedAlone has each phrase on its own in each echo: nothing else gives it away.
func TestEveryPhraseEchoedAlone(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, phrase := range triggers() {
		for i, echo := range echoes {
			status, body := echo(phrase)
			raw, err := json.Marshal(body)
			if err != nil {
				t.Fatal(err)
			}
			if v := cl.Classify(Input{Provider: "acme", Model: "gpt-4o", Status: status, Body: raw, Now: exampleNow}); v.Scope != request && v.Scope != client {
				t.Errorf("echo %d: %v by %s (%s)\n%s", i, v, v.Rule, v.Evidence, raw)
			}
		}
	}
}

// TestFaultsOfTheRequest has words that mean a key, a wallet or a throttle elsewhere, in complaints
// about the request.
func TestFaultsOfTheRequest(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	for _, tt := range []struct {
		status int
		body   string
	}{
		{400, `{"error":{"message":"Invalid token in JSON at position 12","type":"invalid_request_error"}}`},
		{400, `{"object":"error","message":"Invalid token id 151936 in prompt_token_ids","type":"BadRequestError","code":400}`},
		{400, `{"error":{"message":"Invalid key 'foo' in logit_bias","param":"logit_bias"}}`},
		{400, `{"error":{"message":"Invalid key 'foo' in tools[0]","type":"invalid_request_error"}}`},
		{400, `{"error":{"message":"max_tokens 参数非法：输出令牌数不能大于 8192"}}`},
		{400, `{"error":{"message":"Function overload is not possible in a tool's schema","type":"invalid_request_error"}}`},
		{400, `{"error":{"message":"Invalid date: the day must be like YYYY-MM-DD, e.g. today"}}`},
		{400, `{"error":{"message":"Too many tokens requested: max_tokens must be at most 8192"}}`},
		{400, `{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}`},
		{400, `{"error":{"message":"Timeout while downloading the picture.","code":"invalid_image_url"}}`},
		{400, `{"error":{"message":"Error while downloading it: too many requests","code":"invalid_image_url"}}`},
		{400, `{"error":{"message":"Unable to download the file. Its host said internal server error."}}`},
		{424, `{"error":{"message":"Error retrieving the tool list from MCP server: 401 (Unauthorized)","type":"invalid_request_error"}}`},
		{404, `{"error":{"message":"Vector store vs_abc not found.","type":"invalid_request_error"}}`},
	} {
		if v := cl.Classify(Input{Provider: "acme", Status: tt.status, Body: []byte(tt.body), Now: exampleNow}); v.Scope != request && v.Scope != client {
			t.Errorf("%d %s: %v by %s (%s)", tt.status, tt.body, v, v.Rule, v.Evidence)
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
