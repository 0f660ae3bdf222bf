package translate

import (
	"encoding/json"
	"fmt"

	"pgregory.net/rapid"

	"omniroute/internal/dialect/neutral"
)

var (
	words    = []string{"Hi", "é \"x\"\n", "<a&b>", "日本", "\u2028", "{\"a\":1}", "Error: no"}
	schemas  = []string{"", `{"type":"object","properties":{"n":{"const":12345678901234567890}}}`, `{"$schema":"x","type":"object","additionalProperties":false}`}
	argument = []string{`{}`, `{"big":12345678901234567890,"f":1.0}`, `{"s":"é\"\\"}`}
	png      = neutral.Media{Type: "image/png", Data: "iVBORw0KGgo="}
	texts    = []string{"", "*** Begin Patch\n+\t\"é\\\"\n", "{\"input\":\"😀\u2028\"}", "\\u0041\x01\x7f"}
	numbers  = []json.Number{"", "0", "0.5", "1"}
)

// thinker is a model that OpenAI's own API knows custom tools for.
const thinker = "gpt-5.2"

// drawRequest makes a request of the kind that readers make: roles take turns, results come
// first in the turn after the calls.
func drawRequest(t *rapid.T, d string) *neutral.Request {
	pick := func(list []string, label string) string { return rapid.SampledFrom(list).Draw(t, label) }
	flag := func(label string) bool { return rapid.Bool().Draw(t, label) }
	number := func(label string) json.Number { return rapid.SampledFrom(numbers).Draw(t, label) }
	cache := func() json.RawMessage {
		if flag("cache") {
			return json.RawMessage(`{"type":"ephemeral"}`)
		}
		return nil
	}
	r := &neutral.Request{Model: "m-1", Stream: flag("stream"), Sequential: flag("sequential"),
		Temperature: number("temperature"), TopP: number("topP"), TopK: number("topK"), Seed: rapid.SampledFrom([]json.Number{"", "7"}).Draw(t, "seed"),
		Frequency: number("frequency"), Presence: number("presence"),
		User: pick([]string{"", "u-1"}, "user"), Key: pick([]string{"", "k"}, "key"), Verbosity: pick([]string{"", "low"}, "verbosity")}
	if d == "responses" && flag("thinker") {
		r.Model = thinker
	}
	if flag("max") {
		r.MaxTokens = neutral.Integer(rapid.Int64Range(1, 100000).Draw(t, "maxTokens"))
	}
	if flag("stop") {
		r.Stop = []string{"END", "\n\nX"}
	}
	for range rapid.IntRange(0, 2).Draw(t, "system") {
		p := neutral.Part{Text: pick(words, "text")}
		if d == "anthropic" {
			p.Cache = cache()
		}
		r.System = append(r.System, p)
	}
	for i := range rapid.IntRange(0, 3).Draw(t, "tools") {
		tool := neutral.Tool{Name: fmt.Sprintf("tool_%d", i), Description: pick([]string{"", "does"}, "description"), Cache: cache()}
		if s := pick(schemas, "schema"); s != "" {
			tool.Schema = json.RawMessage(s)
		}
		tool.Strict = rapid.SampledFrom([]*bool{nil, neutral.True(true), neutral.True(false)}).Draw(t, "strict")
		if flag("custom") {
			tool.Schema, tool.Strict, tool.Custom = nil, nil, &neutral.Custom{}
			if flag("grammar") {
				tool.Custom = &neutral.Custom{Syntax: "lark", Definition: "start: /.+/\n"}
			}
		}
		r.Tools = append(r.Tools, tool)
	}
	if len(r.Tools) > 0 {
		r.Choice.Mode = neutral.ChoiceMode(rapid.IntRange(0, 3).Draw(t, "choice"))
		if r.Choice.Mode == neutral.ChoiceAny && flag("named") {
			r.Choice.Names = []string{"tool_0"}
		}
	}
	switch kind := neutral.OutputKind(rapid.IntRange(0, 2).Draw(t, "output")); kind {
	case neutral.OutputSchema:
		r.Output = neutral.Output{Kind: kind, Name: pick([]string{"", "out"}, "name"), Schema: json.RawMessage(schemas[1]), Strict: neutral.True(true)}
	default:
		r.Output.Kind = kind
	}
	r.Reasoning.Effort = pick([]string{"", "none", "minimal", "low", "medium", "high", "xhigh", "max"}, "effort")
	if r.Reasoning.Effort == "" && flag("budget") {
		r.Reasoning.Budget = neutral.Integer(rapid.Int64Range(1024, 40000).Draw(t, "tokens"))
	}
	if flag("show") {
		r.Reasoning.Show = neutral.True(flag("shown"))
	}
	drawTurns(t, d, r, cache)
	return r
}

func drawTurns(t *rapid.T, d string, r *neutral.Request, cache func() json.RawMessage) {
	flag := func(label string) bool { return rapid.Bool().Draw(t, label) }
	text := func() string { return rapid.SampledFrom(words).Draw(t, "text") }
	var calls []neutral.Call
	made := 0
	for range rapid.IntRange(1, 3).Draw(t, "turns") {
		user := neutral.Turn{}
		for _, c := range calls {
			res := neutral.Result{ID: c.ID, Name: c.Name, Parts: neutral.Texts(text())}
			res.Error = flag("failed")
			user.Parts = append(user.Parts, neutral.Part{Kind: neutral.PartResult, Result: res, Cache: cache()})
		}
		calls = nil
		for i := range rapid.IntRange(1, 3).Draw(t, "parts") {
			p := neutral.Part{Text: text(), Cache: cache()}
			switch kind := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case i == 0 || kind < 3:
			case kind == 3:
				p = neutral.Part{Kind: neutral.PartImage, Media: png}
				p.Media.Detail = rapid.SampledFrom([]string{"", "low"}).Draw(t, "detail")
				if flag("url") {
					p.Media.Data, p.Media.URL = "", "https://pictures.example/a.png"
				}
			case kind == 4:
				p = neutral.Part{Kind: neutral.PartFile, Media: neutral.Media{Type: "application/pdf", Data: "JVBERi0=", Name: rapid.SampledFrom([]string{"", "a.pdf"}).Draw(t, "file")}}
			default:
				p = neutral.Part{Kind: neutral.PartFile, Media: neutral.Media{Type: "text/plain", Text: "DOC", Name: "t.txt"}}
			}
			user.Parts = append(user.Parts, p)
		}
		said := neutral.Turn{Role: neutral.RoleAssistant}
		own := ""
		if flag("thought") {
			value := "c2ln"
			if d == "responses" {
				value = "rs_1|c2ln"
			}
			own = rapid.SampledFrom([]string{d, "elsewhere"}).Draw(t, "origin")
			if d != "openai" {
				said.Parts = append(said.Parts, neutral.Part{Kind: neutral.PartReasoning, Text: "hm", Seal: neutral.Seal{Origin: own, Value: value}})
			}
		}
		if flag("answers") && (d != "gemini" || own == "") {
			said.Parts = append(said.Parts, neutral.Part{Text: text()})
		}
		n := rapid.IntRange(0, 2).Draw(t, "calls")
		if d == "gemini" && own == d || len(said.Parts) == 0 || said.Parts[len(said.Parts)-1].Kind == neutral.PartReasoning {
			n = max(n, 1)
		}
		if n > 0 && d == "anthropic" && (own != d) {
			r.Reasoning = neutral.Reasoning{} // Anthropic's thinking is left off then, which has its own test
		}
		for range n {
			made++
			c := neutral.Call{ID: fmt.Sprintf("call_%d", made), Name: fmt.Sprintf("tool_%d", made%2), Arguments: rapid.SampledFrom(argument).Draw(t, "arguments")}
			if flag("custom") {
				c.Custom, c.Arguments = true, neutral.FreeArguments(rapid.SampledFrom(texts).Draw(t, "input"))
			}
			calls = append(calls, c)
			p := neutral.Part{Kind: neutral.PartCall, Call: c}
			if flag("cached") {
				p.Cache = json.RawMessage(`{"type":"ephemeral"}`)
			}
			said.Parts = append(said.Parts, p)
		}
		r.Turns = append(r.Turns, user, said)
	}
	last := neutral.Turn{}
	for _, c := range calls {
		last.Parts = append(last.Parts, neutral.Part{Kind: neutral.PartResult, Result: neutral.Result{ID: c.ID, Name: c.Name, Parts: neutral.Texts("3")}})
	}
	if len(last.Parts) == 0 {
		last.Parts = neutral.Texts("Go on")
	}
	r.Turns = append(r.Turns, last)
}
