package upstream

import (
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
)

// geminiWire is Gemini's generateContent.
type geminiWire struct{}

func (geminiWire) read(body gjson.Result) seen {
	in := seen{results: map[string]string{}, system: words(body.Get("systemInstruction.parts"))}
	for _, t := range body.Get("tools").Array() {
		in.tools = append(in.tools, names(t.Get("functionDeclarations.#.name"))...)
	}
	for _, c := range body.Get("contents").Array() {
		parts := c.Get("parts")
		if c.Get("role").String() != "model" {
			in.prompt += words(parts)
		}
		for _, p := range parts.Array() {
			if d := p.Get("inlineData.data"); d.Exists() {
				in.images = append(in.images, d.String())
			}
			if f := p.Get("functionCall"); f.Exists() {
				in.calls = append(in.calls, f.Get("name").String())
			}
			if f := p.Get("functionResponse"); f.Exists() {
				in.results[f.Get("name").String()] = f.Get("response").Raw
			}
		}
	}
	g := body.Get("generationConfig")
	in.schema = g.Get("responseJsonSchema.properties.answer").Exists() || g.Get("responseSchema.properties.answer").Exists()
	in.thinking = g.Get("thinkingConfig").Exists()
	return in
}

const geminiUsage = `"usageMetadata":{"promptTokenCount":12,"candidatesTokenCount":7,"totalTokenCount":19}`

func (geminiWire) response(a answer, parts, finish string) string {
	if finish != "" {
		finish = fmt.Sprintf(`,"finishReason":%q`, finish)
	}
	return fmt.Sprintf(`{"candidates":[{"content":{"parts":[%s],"role":"model"}%s,"index":0}],%s,"modelVersion":%q,"responseId":"r8"}`,
		parts, finish, geminiUsage, a.model)
}

func geminiCalls(a answer) string {
	var all []string
	for i, c := range a.calls {
		seal := ""
		if i == 0 { // parallel calls are sealed at the first
			seal = `,"thoughtSignature":"c2VhbGVk"`
		}
		all = append(all, fmt.Sprintf(`{"functionCall":{"id":%q,"name":%q,"args":%s}%s}`, c.ID, c.Name, c.Args, seal))
	}
	return strings.Join(all, ",")
}

func (v geminiWire) whole(a answer) string {
	var parts []string
	if a.thought != "" {
		parts = append(parts, fmt.Sprintf(`{"text":%s,"thought":true}`, quoted(a.thought)))
	}
	parts = append(parts, fmt.Sprintf(`{"text":%s}`, quoted(strings.Join(a.text, ""))))
	if len(a.calls) > 0 {
		parts = append(parts, geminiCalls(a))
	}
	return v.response(a, strings.Join(parts, ","), "STOP")
}

func (v geminiWire) events(a answer) []string {
	var all []string
	if a.thought != "" {
		all = append(all, event("", v.response(a, fmt.Sprintf(`{"text":%s,"thought":true}`, quoted(a.thought)), "")))
	}
	for _, t := range a.text {
		all = append(all, event("", v.response(a, fmt.Sprintf(`{"text":%s}`, quoted(t)), "")))
	}
	if len(a.calls) > 0 {
		return append(all, event("", v.response(a, geminiCalls(a), "STOP")))
	}
	return append(all, event("", v.response(a, `{"text":""}`, "STOP")))
}

func (geminiWire) failure(int) string {
	return event("", `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`)
}

func (geminiWire) refusal(status int, message string) string {
	word := map[int]string{429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED", 404: "NOT_FOUND"}[status]
	if word == "" {
		word = "INVALID_ARGUMENT"
	}
	return fmt.Sprintf(`{"error":{"code":%d,"message":%s,"status":%q}}`, status, quoted(message), word)
}
