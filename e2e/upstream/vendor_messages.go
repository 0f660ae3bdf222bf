package upstream

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// messagesWire is Anthropic's Messages API.
type messagesWire struct{}

func (messagesWire) read(body gjson.Result) seen {
	in := seen{results: map[string]string{}, tools: names(body.Get("tools.#.name")), system: words(body.Get("system"))}
	for _, m := range body.Get("messages").Array() {
		content, user := m.Get("content"), m.Get("role").String() == "user"
		if user {
			in.prompt += words(content)
		}
		if !content.IsArray() {
			continue
		}
		for _, b := range content.Array() {
			switch b.Get("type").String() {
			case "image":
				in.images = append(in.images, b.Get("source.data").String())
			case "tool_use":
				in.calls = append(in.calls, b.Get("id").String())
			case "tool_result":
				in.results[b.Get("tool_use_id").String()] = words(b.Get("content"))
			}
		}
	}
	in.schema = body.Get("output_config.format.schema.properties.answer").Exists()
	in.thinking = body.Get("thinking.type").Exists() || body.Get("output_config.effort").Exists()
	return in
}

func messagesStop(a answer) string {
	if len(a.calls) > 0 {
		return "tool_use"
	}
	return "end_turn"
}

func (messagesWire) whole(a answer) string {
	var blocks []string
	if a.thought != "" {
		blocks = append(blocks, fmt.Sprintf(`{"type":"thinking","thinking":%s,"signature":"c2VhbGVk"}`, quoted(a.thought)))
	}
	blocks = append(blocks, fmt.Sprintf(`{"type":"text","text":%s}`, quoted(strings.Join(a.text, ""))))
	for _, c := range a.calls {
		blocks = append(blocks, fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":%s}`, c.ID, c.Name, c.Args))
	}
	return fmt.Sprintf(`{"id":"msg_8","type":"message","role":"assistant","model":%q,"content":[%s],"stop_reason":%q,"stop_sequence":null,`+
		`"usage":{"input_tokens":12,"output_tokens":7}}`, a.model, strings.Join(blocks, ","), messagesStop(a))
}

func (messagesWire) events(a answer) []string {
	var all []string
	add := func(kind, fields string, args ...any) {
		all = append(all, event(kind, fmt.Sprintf(`{"type":%q`, kind)+fmt.Sprintf(fields, args...)+"}"))
	}
	n := 0
	block := func(start string, deltas ...string) {
		add("content_block_start", `,"index":%d,"content_block":%s`, n, start)
		for _, d := range deltas {
			add("content_block_delta", `,"index":%d,"delta":%s`, n, d)
		}
		add("content_block_stop", `,"index":%d`, n)
		n++
	}
	add("message_start", `,"message":{"id":"msg_8","type":"message","role":"assistant","model":%q,"content":[],"stop_reason":null,"stop_sequence":null,`+
		`"usage":{"input_tokens":12,"output_tokens":1}}`, a.model)
	add("ping", "")
	if a.thought != "" {
		block(`{"type":"thinking","thinking":"","signature":""}`,
			fmt.Sprintf(`{"type":"thinking_delta","thinking":%s}`, quoted(a.thought)),
			`{"type":"signature_delta","signature":"c2VhbGVk"}`)
	}
	var texts []string
	for _, t := range a.text {
		texts = append(texts, fmt.Sprintf(`{"type":"text_delta","text":%s}`, quoted(t)))
	}
	block(`{"type":"text","text":""}`, texts...)
	for _, c := range a.calls {
		half := len(c.Args) / 2
		block(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name),
			`{"type":"input_json_delta","partial_json":""}`,
			fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, quoted(c.Args[:half])),
			fmt.Sprintf(`{"type":"input_json_delta","partial_json":%s}`, quoted(c.Args[half:])))
	}
	add("message_delta", `,"delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":7}`, messagesStop(a))
	add("message_stop", "")
	return all
}

func (messagesWire) failure(int) string {
	return event("error", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
}

func (messagesWire) refusal(status int, message string) string {
	kind := map[int]string{429: "rate_limit_error", 401: "authentication_error", 404: "not_found_error"}[status]
	if kind == "" {
		kind = "invalid_request_error"
	}
	return fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%s},"request_id":"req_8"}`, kind, quoted(message))
}
