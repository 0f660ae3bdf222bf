package upstream

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// responsesWire is OpenAI's Responses API.
type responsesWire struct{}

func (responsesWire) read(body gjson.Result) seen {
	in := seen{results: map[string]string{}, tools: names(body.Get("tools.#.name")), system: body.Get("instructions").String()}
	input := body.Get("input")
	if input.Type == gjson.String {
		in.prompt = input.String()
	}
	for _, item := range input.Array() {
		content := item.Get("content")
		switch item.Get("type").String() {
		case "function_call":
			in.calls = append(in.calls, item.Get("call_id").String())
		case "function_call_output":
			in.results[item.Get("call_id").String()] = words(item.Get("output"))
		default:
			switch item.Get("role").String() {
			case "system", "developer":
				in.system += words(content)
			case "user":
				in.prompt += words(content)
				for _, url := range content.Get("#.image_url").Array() {
					in.images = append(in.images, dataURL(url.String()))
				}
			}
		}
	}
	in.schema = body.Get("text.format.schema.properties.answer").Exists()
	in.thinking = body.Get("reasoning.effort").Exists()
	return in
}

// items are the parts of an answer, each whole.
func (responsesWire) items(a answer) []string {
	var all []string
	if a.thought != "" {
		all = append(all, fmt.Sprintf(`{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":%s}],"encrypted_content":"c2VhbGVk"}`, quoted(a.thought)))
	}
	all = append(all, fmt.Sprintf(`{"type":"message","id":"msg_1","role":"assistant","status":"completed",`+
		`"content":[{"type":"output_text","text":%s,"annotations":[]}]}`, quoted(strings.Join(a.text, ""))))
	for _, c := range a.calls {
		all = append(all, fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"name":%q,"arguments":%s,"status":"completed"}`, c.ID, c.ID, c.Name, quoted(c.Args)))
	}
	return all
}

func (responsesWire) response(a answer, status, output, rest string) string {
	return fmt.Sprintf(`{"id":"resp_8","object":"response","created_at":1767225600,"status":%q,"error":null,"incomplete_details":null,`+
		`"instructions":null,"metadata":{},"model":%q,"output":[%s],"parallel_tool_calls":true,"temperature":1,"tool_choice":"auto","tools":[],"top_p":1%s}`,
		status, a.model, output, rest)
}

const responsesUsage = `,"usage":{"input_tokens":12,"input_tokens_details":{"cached_tokens":0},"output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":19}`

func (v responsesWire) whole(a answer) string {
	return v.response(a, "completed", strings.Join(v.items(a), ","), responsesUsage)
}

func (v responsesWire) events(a answer) []string {
	var all []string
	add := func(kind, fields string, args ...any) {
		all = append(all, event(kind, fmt.Sprintf(`{"type":%q,"sequence_number":%d,`, kind, len(all))+fmt.Sprintf(fields, args...)+"}"))
	}
	add("response.created", `"response":%s`, v.response(a, "in_progress", "", ""))
	add("response.in_progress", `"response":%s`, v.response(a, "in_progress", "", ""))
	items, at := v.items(a), 0
	if a.thought != "" {
		at = 1
		add("response.output_item.added", `"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}`)
		add("response.reasoning_summary_part.added", `"output_index":0,"item_id":"rs_1","summary_index":0,"part":{"type":"summary_text","text":""}`)
		add("response.reasoning_summary_text.delta", `"output_index":0,"item_id":"rs_1","summary_index":0,"delta":%s`, quoted(a.thought))
		add("response.reasoning_summary_text.done", `"output_index":0,"item_id":"rs_1","summary_index":0,"text":%s`, quoted(a.thought))
		add("response.reasoning_summary_part.done", `"output_index":0,"item_id":"rs_1","summary_index":0,"part":{"type":"summary_text","text":%s}`, quoted(a.thought))
		add("response.output_item.done", `"output_index":0,"item":%s`, items[0])
	}
	place := fmt.Sprintf(`"output_index":%d,"item_id":"msg_1","content_index":0`, at)
	text := quoted(strings.Join(a.text, ""))
	add("response.output_item.added", `"output_index":%d,"item":{"type":"message","id":"msg_1","role":"assistant","status":"in_progress","content":[]}`, at)
	add("response.content_part.added", `%s,"part":{"type":"output_text","text":"","annotations":[]}`, place)
	for _, t := range a.text {
		add("response.output_text.delta", `%s,"delta":%s`, place, quoted(t))
	}
	add("response.output_text.done", `%s,"text":%s`, place, text)
	add("response.content_part.done", `%s,"part":{"type":"output_text","text":%s,"annotations":[]}`, place, text)
	add("response.output_item.done", `"output_index":%d,"item":%s`, at, items[at])
	for _, c := range a.calls {
		at++
		place, half := fmt.Sprintf(`"output_index":%d,"item_id":"fc_%s"`, at, c.ID), len(c.Args)/2
		add("response.output_item.added", `"output_index":%d,"item":{"type":"function_call","id":"fc_%s","call_id":%q,"name":%q,"arguments":"","status":"in_progress"}`, at, c.ID, c.ID, c.Name)
		add("response.function_call_arguments.delta", `%s,"delta":%s`, place, quoted(c.Args[:half]))
		add("response.function_call_arguments.delta", `%s,"delta":%s`, place, quoted(c.Args[half:]))
		add("response.function_call_arguments.done", `%s,"arguments":%s`, place, quoted(c.Args))
		add("response.output_item.done", `"output_index":%d,"item":%s`, at, items[at])
	}
	add("response.completed", `"response":%s`, v.whole(a))
	return all
}

func (v responsesWire) failure(after int) string {
	r := strings.Replace(v.response(answer{model: "m"}, "failed", "", ""), `"error":null`,
		`"error":{"code":"server_error","message":"The server had an error while processing your request."}`, 1)
	return event("response.failed", fmt.Sprintf(`{"type":"response.failed","sequence_number":%d,"response":%s}`, after, r))
}

func (responsesWire) refusal(status int, message string) string {
	return chatWire{}.refusal(status, message)
}
