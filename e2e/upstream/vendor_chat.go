package upstream

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// chatWire is Chat Completions, with the reasoning field that compatible vendors have.
type chatWire struct{}

// words are the texts of a content that is a string or parts.
func words(content gjson.Result) string {
	if content.IsArray() {
		var b strings.Builder
		for _, p := range content.Array() {
			b.WriteString(p.Get("text").String())
		}
		return b.String()
	}
	return content.String()
}

// dataURL is the base64 behind "data:image/png;base64,", or "".
func dataURL(url string) string {
	_, data, _ := strings.Cut(url, "data:image/png;base64,")
	return data
}

func names(tools gjson.Result) []string {
	var all []string
	for _, n := range tools.Array() {
		all = append(all, n.String())
	}
	return all
}

func (chatWire) read(body gjson.Result) seen {
	in := seen{results: map[string]string{}, tools: names(body.Get("tools.#.function.name"))}
	for _, m := range body.Get("messages").Array() {
		content := m.Get("content")
		switch m.Get("role").String() {
		case "system", "developer":
			in.system += words(content)
		case "user":
			in.prompt += words(content)
			for _, url := range content.Get("#.image_url.url").Array() {
				in.images = append(in.images, dataURL(url.String()))
			}
		case "assistant":
			in.calls = append(in.calls, names(m.Get("tool_calls.#.id"))...)
		case "tool":
			in.results[m.Get("tool_call_id").String()] = words(content)
		}
	}
	in.schema = body.Get("response_format.json_schema.schema.properties.answer").Exists()
	in.thinking = body.Get("reasoning_effort").Exists()
	return in
}

const chatUsage = `"usage":{"prompt_tokens":12,"completion_tokens":7,"total_tokens":19}`

func chatFinish(a answer) string {
	if len(a.calls) > 0 {
		return "tool_calls"
	}
	return "stop"
}

func (chatWire) whole(a answer) string {
	message := `"role":"assistant","content":` + quoted(strings.Join(a.text, ""))
	if a.thought != "" {
		message += `,"reasoning_content":` + quoted(a.thought)
	}
	if len(a.calls) > 0 {
		var calls []string
		for _, c := range a.calls {
			calls = append(calls, fmt.Sprintf(`{"id":%q,"type":"function","function":{"name":%q,"arguments":%s}}`, c.ID, c.Name, quoted(c.Args)))
		}
		message += `,"tool_calls":[` + strings.Join(calls, ",") + "]"
	}
	return fmt.Sprintf(`{"id":"chatcmpl-8","object":"chat.completion","created":1767225600,"model":%q,`+
		`"choices":[{"index":0,"message":{%s},"finish_reason":%q}],%s}`, a.model, message, chatFinish(a), chatUsage)
}

func (chatWire) events(a answer) []string {
	chunk := func(choices, rest string) string {
		return event("", fmt.Sprintf(`{"id":"chatcmpl-8","object":"chat.completion.chunk","created":1767225600,"model":%q,"choices":[%s]%s}`, a.model, choices, rest))
	}
	delta := func(d string) string { return chunk(`{"index":0,"delta":`+d+`,"finish_reason":null}`, "") }
	all := []string{delta(`{"role":"assistant","content":""}`)}
	if a.thought != "" {
		all = append(all, delta(`{"reasoning_content":`+quoted(a.thought)+"}"))
	}
	for _, t := range a.text {
		all = append(all, delta(`{"content":`+quoted(t)+"}"))
	}
	for i, c := range a.calls {
		half := len(c.Args) / 2
		all = append(all,
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"id":%q,"type":"function","function":{"name":%q,"arguments":""}}]}`, i, c.ID, c.Name)),
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(c.Args[:half]))),
			delta(fmt.Sprintf(`{"tool_calls":[{"index":%d,"function":{"arguments":%s}}]}`, i, quoted(c.Args[half:]))))
	}
	return append(all,
		chunk(fmt.Sprintf(`{"index":0,"delta":{},"finish_reason":%q}`, chatFinish(a)), ""),
		chunk("", ","+chatUsage),
		event("", "[DONE]"))
}

func (chatWire) failure(int) string {
	return event("", `{"error":{"message":"The server had an error while processing your request.","type":"server_error","param":null,"code":null}}`)
}

func (chatWire) refusal(status int, message string) string {
	kind := map[int]string{429: "rate_limit_error", 401: "authentication_error"}[status]
	if kind == "" {
		kind = "invalid_request_error"
	}
	return fmt.Sprintf(`{"error":{"message":%s,"type":%q,"param":null,"code":null}}`, quoted(message), kind)
}
