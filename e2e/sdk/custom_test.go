package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"

	"omniroute/e2e/harness"
	"omniroute/e2e/upstream"
)

// patch is the text of a custom tool's call, and patchPieces the function's arguments that vendors make of it, cut
// within an escape.
const patch = "*** Begin Patch\n+\tsay(\"é😀\")\n*** End Patch\n"

var patchPieces = []string{`{"inp`, `ut": "*** Begin Patch\n+\`, `tsay(\"\u00e9\ud83d`, `\ude00\")\n*** End`, ` Patch\n"}`}

// patchVendor is a provider whose model calls apply_patch, and keeps what it was asked last.
type patchVendor struct {
	dialect string
	mu      sync.Mutex
	asked   string
}

func (v *patchVendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	v.mu.Lock()
	v.asked = string(body)
	v.mu.Unlock()
	quoted := func(s string) string { b, _ := json.Marshal(s); return string(b) }
	arguments := strings.Join(patchPieces, "")
	stream := strings.Contains(string(body), `"stream":true`) || strings.Contains(r.URL.Path, "streamGenerate")
	var out bytes.Buffer
	event := func(name, format string, args ...any) {
		if name != "" {
			fmt.Fprintf(&out, "event: %s\n", name)
		}
		fmt.Fprintf(&out, "data: "+format+"\n\n", args...)
	}
	w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[stream])
	switch {
	case v.dialect == "openai" && !stream:
		fmt.Fprintf(&out, `{"id":"c1","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"apply_patch","arguments":%s}}]},"finish_reason":"tool_calls"}]}`, quoted(arguments))
	case v.dialect == "openai":
		event("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"role":"assistant","tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"apply_patch","arguments":""}}]}}]}`)
		for _, p := range patchPieces {
			event("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":%s}}]}}]}`, quoted(p))
		}
		event("", `{"id":"c1","object":"chat.completion.chunk","created":1,"model":"up","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}`)
		event("", `[DONE]`)
	case v.dialect == "anthropic" && !stream:
		fmt.Fprintf(&out, `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"tool_use","id":"call_1","name":"apply_patch","input":%s}],"stop_reason":"tool_use","usage":{"input_tokens":1,"output_tokens":2}}`, arguments)
	case v.dialect == "anthropic":
		event("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`)
		event("content_block_start", `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"call_1","name":"apply_patch","input":{}}}`)
		for _, p := range patchPieces {
			event("content_block_delta", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":%s}}`, quoted(p))
		}
		event("content_block_stop", `{"type":"content_block_stop","index":0}`)
		event("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":2}}`)
		event("message_stop", `{"type":"message_stop"}`)
	case v.dialect == "gemini":
		answer := fmt.Sprintf(`{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"call_1","name":"apply_patch","args":%s}}]},"finishReason":"STOP"}],"responseId":"r1","modelVersion":"up"}`, arguments)
		if stream {
			event("", "%s", answer)
		} else {
			out.WriteString(answer)
		}
	default:
		item := fmt.Sprintf(`{"id":"ctc_1","type":"custom_tool_call","status":"completed","call_id":"call_1","name":"apply_patch","input":%s}`, quoted(patch))
		response := `{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"completed","output":[` + item + `],"usage":{"input_tokens":1,"output_tokens":2,"total_tokens":3}}`
		if !stream {
			out.WriteString(response)
			break
		}
		event("response.created", `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","created_at":1,"model":"up","status":"in_progress","output":[]}}`)
		event("response.output_item.added", `{"type":"response.output_item.added","sequence_number":1,"output_index":0,"item":{"id":"ctc_1","type":"custom_tool_call","status":"in_progress","call_id":"call_1","name":"apply_patch","input":""}}`)
		event("response.custom_tool_call_input.delta", `{"type":"response.custom_tool_call_input.delta","sequence_number":2,"output_index":0,"item_id":"ctc_1","delta":%s}`, quoted(patch))
		event("response.custom_tool_call_input.done", `{"type":"response.custom_tool_call_input.done","sequence_number":3,"output_index":0,"item_id":"ctc_1","input":%s}`, quoted(patch))
		event("response.output_item.done", `{"type":"response.output_item.done","sequence_number":4,"output_index":0,"item":%s}`, item)
		event("response.completed", `{"type":"response.completed","sequence_number":5,"response":%s}`, response)
	}
	w.Write(out.Bytes())
}

// TestCustomTools: official OpenAI clients call a custom tool over every dialect of provider, plain and streamed, and give
// its result back. What they see is a custom tool's call with the text as the model meant it.
func TestCustomTools(t *testing.T) {
	t.Parallel()
	vendors := map[string]*patchVendor{}
	var config strings.Builder
	fmt.Fprintf(&config, "client_keys: [%q]\nstore: \"memory:\"\nproviders:\n", clientKey)
	for _, dialect := range upstream.Dialects {
		v := &patchVendor{dialect: dialect}
		server := httptest.NewServer(v)
		t.Cleanup(server.Close)
		vendors[dialect] = v
		// The Responses API has custom tools for these models alone.
		fmt.Fprintf(&config, "  p%s: {dialect: %s, base_url: %q, models: [gpt-5.2-%s], connections: [{id: a, api_key: k}]}\n", dialect, dialect, server.URL+"/v1", dialect)
	}
	g := harness.Start(t, harness.Options{Binary: harness.Binary(t), Config: config.String()})
	sdk := newOpenAI(g.URL, &http.Client{Transport: &http.Transport{}})
	for _, dialect := range upstream.Dialects {
		model := "gpt-5.2-" + dialect
		for _, stream := range []bool{false, true} {
			t.Run("responses over "+dialect+" "+kindOfCall(stream), func(t *testing.T) {
				customOverResponses(t, sdk, vendors[dialect], model, stream)
			})
			if dialect == "openai" { // passes through, to a provider that answers by a function
				continue
			}
			t.Run("chat over "+dialect+" "+kindOfCall(stream), func(t *testing.T) {
				if got := customOverChat(t, sdk, model, stream); got != patch {
					t.Errorf("got %q", got)
				}
			})
		}
		t.Run("npm over "+dialect, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), findNode(t), "custom.mjs", "--base-url", g.URL+"/v1", "--key", clientKey, "--model", model)
			cmd.Dir = "../npm"
			out, err := cmd.CombinedOutput()
			var got []string
			if err != nil || json.Unmarshal(out, &got) != nil || len(got) != 3 || got[0] != patch || got[1] != patch || got[2] != patch {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
}

func customOverResponses(t *testing.T, sdk openai.Client, v *patchVendor, model string, stream bool) {
	tool := responses.ToolParamOfCustom("apply_patch")
	tool.OfCustom.Description = openai.String("Edits files.")
	tool.OfCustom.Format = shared.CustomToolInputFormatUnionParam{OfGrammar: &shared.CustomToolInputFormatGrammarParam{Syntax: "lark", Definition: "start: patch"}}
	p := responses.ResponseNewParams{Model: model, Store: openai.Bool(false), Tools: []responses.ToolUnionParam{tool}}
	input := responses.ResponseInputParam{responses.ResponseInputItemParamOfMessage("Fix it.", responses.EasyInputMessageRoleUser)}
	p.Input.OfInputItemList = input
	ask := func() *responses.Response {
		if !stream {
			answer, err := sdk.Responses.New(t.Context(), p)
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		s := sdk.Responses.NewStreaming(t.Context(), p)
		defer s.Close()
		var deltas, done string
		var final *responses.Response
		for s.Next() {
			switch e := s.Current(); e.Type {
			case "response.custom_tool_call_input.delta":
				deltas += e.Delta
			case "response.custom_tool_call_input.done":
				done = e.Input
			case "response.completed":
				final = &e.Response
			}
		}
		if s.Err() != nil || final == nil || deltas != patch || done != patch {
			t.Fatalf("%v, deltas %q, done %q", s.Err(), deltas, done)
		}
		return final
	}
	answer := ask()
	if len(answer.Output) != 1 || answer.Output[0].Type != "custom_tool_call" || answer.Output[0].AsCustomToolCall().Input != patch {
		t.Fatalf("%s", answer.RawJSON())
	}
	call := answer.Output[0].AsCustomToolCall()
	input = append(input, responses.ResponseInputItemParamOfCustomToolCall(call.CallID, call.Input, call.Name),
		responses.ResponseInputItemParamOfCustomToolCallOutput(call.CallID, "Patched well."))
	p.Input.OfInputItemList = input
	ask()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !strings.Contains(v.asked, "Patched well.") || !strings.Contains(v.asked, "start: patch") || !strings.Contains(v.asked, "Begin Patch") {
		t.Errorf("the provider was asked %s", v.asked)
	}
}

func customOverChat(t *testing.T, sdk openai.Client, model string, stream bool) string {
	p := openai.ChatCompletionNewParams{Model: model, Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Fix it.")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionCustomTool(openai.ChatCompletionCustomToolCustomParam{Name: "apply_patch"})}}
	if !stream {
		answer, err := sdk.Chat.Completions.New(t.Context(), p)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Choices[0].Message.ToolCalls[0].Custom.Input
	}
	s := sdk.Chat.Completions.NewStreaming(t.Context(), p)
	defer s.Close()
	text := ""
	for s.Next() {
		for _, c := range s.Current().Choices {
			for _, call := range c.Delta.ToolCalls {
				var raw struct{ Custom struct{ Input string } } // the client has no name for it in a stream
				if err := json.Unmarshal([]byte(call.RawJSON()), &raw); err != nil {
					t.Fatal(err)
				}
				text += raw.Custom.Input
			}
		}
	}
	if s.Err() != nil {
		t.Fatal(s.Err())
	}
	return text
}
