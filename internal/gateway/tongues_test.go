package gateway_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// tongue is one dialect's API as a test speaks it: what a client asks, and the events of an answer.
// In these, $T is a piece of text and $A the text so far as JSON strings, $M the model's, $ID the
// answer's, and $N the number of the event.
type tongue struct {
	path, ask                        string // $M is the combo
	start, text, finish, done, fault string
}

var tongues = map[string]tongue{
	"openai": {
		"/v1/chat/completions", `{"model":"$M","stream":true,"messages":[{"role":"user","content":"q"}]}`,
		chatEvent(`{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}`),
		chatEvent(`{"index":0,"delta":{"content":$T},"finish_reason":null}`),
		chatEvent(`{"index":0,"delta":{},"finish_reason":"stop"}`),
		"data: [DONE]\n\n", `data: {"error":{"message":"boom","type":"server_error","code":"server_error"}}` + "\n\n",
	},
	"anthropic": {
		"/v1/messages", `{"model":"$M","stream":true,"max_tokens":999,"messages":[{"role":"user","content":"q"}]}`,
		named(`{"type":"message_start","message":{"id":"$ID","type":"message","role":"assistant","model":"$M","content":[],"stop_reason":null,"usage":{"input_tokens":9,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`, `{"type":"ping"}`),
		named(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":$T}}`),
		named(`{"type":"content_block_stop","index":0}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}}`),
		named(`{"type":"message_stop"}`), named(`{"type":"error","error":{"type":"overloaded_error","message":"boom"}}`),
	},
	"responses": {
		"/v1/responses", `{"model":"$M","stream":true,"input":"q"}`,
		named(`{"type":"response.created","sequence_number":$N,"response":{"id":"$ID","object":"response","created_at":1,"status":"in_progress","model":"$M","output":[]}}`,
			`{"type":"response.output_item.added","sequence_number":$N,"output_index":0,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]}}`,
			`{"type":"response.content_part.added","sequence_number":$N,"item_id":"msg_1","output_index":0,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}`),
		named(`{"type":"response.output_text.delta","sequence_number":$N,"item_id":"msg_1","output_index":0,"content_index":0,"delta":$T}`),
		named(`{"type":"response.output_text.done","sequence_number":$N,"item_id":"msg_1","output_index":0,"content_index":0,"text":$A}`),
		named(`{"type":"response.completed","sequence_number":$N,"response":{"id":"$ID","object":"response","created_at":1,"status":"completed","model":"$M",` +
			`"output":[{"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":$A,"annotations":[]}]}],` +
			`"usage":{"input_tokens":9,"output_tokens":20,"total_tokens":29}}}`),
		named(`{"type":"error","sequence_number":$N,"error":{"type":"server_error","code":"server_error","message":"boom","param":null}}`,
			`{"type":"response.failed","sequence_number":$N,"response":{"id":"$ID","status":"failed","error":{"code":"server_error","message":"boom"}}}`),
	},
	"gemini": {
		"/v1beta/models/$M:streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"q"}]}]}`,
		"", geminiEvent(`{"content":{"role":"model","parts":[{"text":$T}]},"index":0}`), geminiEvent(`{"content":{"role":"model","parts":[{"text":""}]},"finishReason":"STOP","index":0}`),
		"", `data: {"error":{"code":503,"message":"boom","status":"UNAVAILABLE"}}` + "\n\n",
	},
}

func chatEvent(choice string) string {
	return `data: {"id":"$ID","object":"chat.completion.chunk","created":1,"model":"$M","choices":[` + choice + "]}\n\n"
}

func geminiEvent(candidate string) string {
	return `data: {"candidates":[` + candidate + `],"usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":20,"totalTokenCount":29},"modelVersion":"$M","responseId":"$ID"}` + "\n\n"
}

// named gives each event the name that is its type.
func named(events ...string) string {
	var out strings.Builder
	for _, e := range events {
		kind, _, _ := strings.Cut(strings.TrimPrefix(e, `{"type":"`), `"`)
		fmt.Fprintf(&out, "event: %s\ndata: %s\n\n", kind, e)
	}
	return out.String()
}

// heard is what a client makes of a stream that came to its end.
type heard struct {
	text         string
	ends, errors int
	wrong        string // what no stream of the dialect may have
}

// hear reads a stream of a dialect as a strict client does.
func hear(dialect, stream string) heard {
	h := heard{}
	var ids, models []string
	number, blocks, stopped := 0, 0, 0
	bad := func(format string, v ...any) {
		if h.wrong == "" {
			h.wrong = fmt.Sprintf(format, v...)
		}
	}
	if !strings.HasSuffix(stream, "\n\n") {
		bad("half an event at the end")
	}
	for block := range strings.SplitSeq(strings.TrimSuffix(stream, "\n\n"), "\n\n") {
		_, data, ok := strings.Cut("\n"+block, "\ndata:")
		if !ok {
			continue // a comment, or nothing
		}
		if h.ends > 0 && strings.TrimSpace(data) != "[DONE]" || h.errors > 0 {
			bad("after the end: %s", block)
		}
		if strings.TrimSpace(data) == "[DONE]" && dialect == "openai" {
			h.ends++
			continue
		}
		var e struct {
			Type, ID, Model, ResponseID, ModelVersion string
			Index                                     int
			Delta                                     json.RawMessage
			Error                                     json.RawMessage
			Text                                      *string
			Number                                    *int `json:"sequence_number"`
			Message, Response                         struct{ ID, Model string }
			Choices                                   []struct{ Delta struct{ Content string } }
			Candidates                                []struct {
				Content      struct{ Parts []struct{ Text string } }
				FinishReason string
			}
		}
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			bad("%v in %s", err, data)
			continue
		}
		ids = append(ids, e.ID, e.ResponseID, e.Message.ID, e.Response.ID)
		models = append(models, e.Model, e.ModelVersion, e.Message.Model, e.Response.Model)
		var delta struct{ Text string }
		switch {
		case dialect == "anthropic" || dialect == "responses":
			if name, _, _ := strings.Cut(block, "\n"); name != "event: "+e.Type {
				bad("%s before %s", name, e.Type)
			}
		case e.Error != nil:
			h.errors++
		}
		if dialect == "responses" {
			if e.Number == nil || *e.Number != number {
				bad("a number other than %d in %s", number, block)
			}
			number++
		}
		switch e.Type {
		case "content_block_start":
			if blocks++; e.Index != blocks-1 || stopped != blocks-1 {
				bad("a block out of turn: %s", block)
			}
		case "content_block_delta":
			_ = json.Unmarshal(e.Delta, &delta)
			h.text += delta.Text
		case "content_block_stop":
			stopped++
		case "message_stop", "response.completed":
			if h.ends++; stopped != blocks {
				bad("an end within a block")
			}
		case "error":
			if dialect == "anthropic" {
				h.errors++
			}
		case "response.failed":
			h.errors++
		case "response.output_text.delta":
			var piece string
			_ = json.Unmarshal(e.Delta, &piece)
			h.text += piece
		case "response.output_text.done":
			if e.Text == nil || *e.Text != h.text {
				bad("another text at the end: %s", block)
			}
		}
		for _, c := range e.Choices {
			h.text += c.Delta.Content
		}
		for _, c := range e.Candidates {
			for _, p := range c.Content.Parts {
				h.text += p.Text
			}
			if c.FinishReason != "" {
				h.ends++
			}
		}
	}
	for _, names := range [][]string{ids, models} {
		slices.Sort(names)
		if names = slices.Compact(names); len(names) > 2 { // and the empty one
			bad("two answers in one: %q", names)
		}
	}
	return h
}
