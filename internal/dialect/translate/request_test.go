package translate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
)

// TestRequestsSurvive: any request written to a dialect and read back is the same but for what lossy lists.
func TestRequestsSurvive(t *testing.T) {
	t.Parallel()
	for _, c := range codecs {
		t.Run(c.Name(), func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				given := drawRequest(t, c.Name())
				out, err := c.WriteRequest(given)
				if err != nil {
					if !expected(c.Name(), given, err) {
						t.Fatalf("%v", err)
					}
					return
				}
				path, _, _ := strings.Cut(out.Path, "?")
				asked, err := c.ReadRequest("/v1"+path, out.Body)
				if err != nil {
					t.Fatalf("%s: %v", out.Body, err)
				}
				if asked.Stream != given.Stream || asked.Model != given.Model {
					t.Fatalf("%s %s: read as %+v", out.Path, out.Body, asked)
				}
				got, err := c.ReadNeutral(asked)
				if err != nil {
					t.Fatalf("%s: %v", out.Body, err)
				}
				if len(got.Native) > 0 {
					t.Fatalf("%s: %v", out.Body, got.Native)
				}
				want := lossy(c.Name(), given)
				got.IncludeUsage, got.Echo = false, nil
				got.Turns = neutral.Merged(got.Turns)
				if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmp.FilterValues(func(a, b json.RawMessage) bool { return len(a)+len(b) > 0 }, cmp.Comparer(sameJSON))); diff != "" {
					t.Fatalf("%s\n%s", out.Body, diff)
				}
			})
		})
	}
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	if json.Compact(&x, a) != nil || json.Compact(&y, b) != nil {
		return string(a) == string(b)
	}
	return x.String() == y.String()
}

// expected are the refusals of a writer.
func expected(d string, r *neutral.Request, err error) bool {
	e, ok := errors.AsType[*neutral.UnsupportedError](err)
	if !ok || e.Field == "" || e.Reason == "" {
		return false
	}
	switch {
	case d == "responses" && len(r.Stop) > 0:
		return e.Field == "stop"
	case d == "gemini" || d == "openai":
		return strings.Contains(e.Reason, "address")
	}
	return false
}

// lossy returns what is left of a request in a dialect.
func lossy(d string, given *neutral.Request) *neutral.Request {
	r := *given
	r.Turns = nil
	for _, t := range given.Turns {
		if t = lossyTurn(d, r.Model, t); len(t.Parts) > 0 {
			r.Turns = append(r.Turns, t)
		}
	}
	r.Turns = neutral.Merged(r.Turns)
	r.Tools = append([]neutral.Tool(nil), r.Tools...)
	for i := range r.Tools {
		t := &r.Tools[i]
		if t.Custom != nil && !free(d, r.Model) { // becomes a function
			*t = neutral.Tool{Name: t.Name, Description: t.Told(), Schema: t.Parameters(), Cache: t.Cache}
		}
		if d != "anthropic" {
			t.Cache = nil // a hint of Anthropic's
		}
		switch d {
		case "anthropic":
			t.Schema = t.Parameters()
			if t.Strict != nil && !*t.Strict {
				t.Strict = nil // not to be strict is the default
			}
		case "responses":
			if t.Custom != nil {
				break
			}
			t.Schema = t.Parameters()
			if t.Strict == nil {
				t.Strict = neutral.True(false) // to be strict is the default
			}
		case "openai":
			t.Schema = t.Parameters()
		case "gemini":
			t.Strict = nil
		}
	}
	if len(r.Tools) == 0 {
		r.Choice, r.Sequential = neutral.Choice{}, false
	}
	if d == "openai" || d == "responses" { // one text stands above the conversation
		r.System = neutral.Texts(neutral.Text(given.System, "\n\n"))
	}
	lossyOptions(d, &r)
	return &r
}

func lossyOptions(d string, r *neutral.Request) {
	switch d {
	case "anthropic":
		r.Seed, r.Frequency, r.Presence, r.Key, r.Verbosity = "", "", "", "", ""
		if r.Sequential && r.Choice.Mode == neutral.ChoiceDefault {
			r.Choice.Mode = neutral.ChoiceAuto // the only place of the member
		}
		if r.Choice.Mode == neutral.ChoiceNone {
			r.Sequential = false
		}
		r.Output.Name, r.Output.Description, r.Output.Strict = "", "", nil
		if r.Output.Kind == neutral.OutputJSON { // asked for in words
			r.Output.Kind = neutral.OutputText
			r.System = append(r.System[:len(r.System):len(r.System)], neutral.Part{Text: "Answer with one JSON object and nothing else."})
		}
		if r.MaxTokens == nil {
			r.MaxTokens = neutral.Integer(8192)
		}
		forced := r.Choice.Mode == neutral.ChoiceAny
		if r.Reasoning.Asked() && !forced {
			budget := r.Reasoning.Tokens()
			r.Reasoning = neutral.Reasoning{Budget: &budget, Show: neutral.True(true)}
			r.Temperature, r.TopP, r.TopK = "", "", "" // thinking and sampling exclude each other
			if *r.MaxTokens <= budget {
				r.MaxTokens = neutral.Integer(*r.MaxTokens + budget)
			}
		} else {
			r.Reasoning = neutral.Reasoning{}
		}
		if r.Temperature != "" {
			r.TopP = ""
		}
	case "openai":
		r.TopK = ""
		r.Reasoning = neutral.Reasoning{Effort: openai.Effort(r.Model, r.Reasoning.Word())}
		named(r)
	case "responses":
		if r.Model == thinker {
			r.Temperature, r.TopP = "", ""
		}
		r.TopK, r.Seed, r.Frequency, r.Presence = "", "", "", ""
		show := r.Reasoning.Show
		if show == nil || !*show || !r.Reasoning.Asked() {
			show = nil
		}
		r.Reasoning = neutral.Reasoning{Effort: openai.Effort(r.Model, r.Reasoning.Word()), Show: show}
		if r.MaxTokens != nil && *r.MaxTokens < 16 {
			r.MaxTokens = neutral.Integer(16)
		}
		named(r)
	case "gemini":
		r.User, r.Key, r.Verbosity, r.Sequential = "", "", "", false
		r.Output.Name, r.Output.Description, r.Output.Strict = "", "", nil
		for i := range r.System {
			r.System[i].Cache = nil
		}
		effort := r.Reasoning.Word()
		switch effort {
		case "none", "minimal":
			effort = "low"
		case "xhigh", "max":
			effort = "high"
		}
		show := r.Reasoning.Show
		if show == nil && r.Reasoning.Asked() {
			show = neutral.True(true)
		}
		if !r.Reasoning.Asked() {
			show = nil
		}
		r.Reasoning = neutral.Reasoning{Effort: effort, Show: show}
	}
}

// named: OpenAI's schemas have names.
func named(r *neutral.Request) {
	if r.Output.Kind == neutral.OutputSchema && r.Output.Name == "" {
		r.Output.Name = "answer"
	}
}

// free reports whether custom tools stay what they are.
func free(d, model string) bool { return d == "responses" && model == thinker }

func lossyTurn(d, model string, given neutral.Turn) neutral.Turn {
	t := neutral.Turn{Role: given.Role}
	for _, p := range given.Parts {
		if d != "anthropic" {
			p.Cache = nil
		}
		switch p.Kind {
		case neutral.PartReasoning:
			if p.Seal.Origin != d { // thoughts go back only to where they are from
				continue
			}
			if d == "gemini" {
				p.Text = "" // only the seal goes back, with the call that follows
			}
		case neutral.PartImage:
			if d == "anthropic" || d == "gemini" {
				p.Media.Detail = ""
			} else if d == "responses" && p.Media.Detail == "" {
				p.Media.Detail = "auto"
			}
			if d == "openai" || d == "responses" || d == "anthropic" {
				p.Media.Name = ""
			}
			if p.Media.URL != "" {
				p.Media.Type = ""
			}
		case neutral.PartFile:
			if p.Media.Text != "" && d != "anthropic" { // becomes a text
				text := p.Media.Text
				if p.Media.Name != "" {
					text = p.Media.Name + "\n\n" + text
				}
				p = neutral.Part{Text: text}
				break
			}
			if (d == "openai" || d == "responses") && p.Media.Name == "" {
				p.Media.Name = "document"
			}
			if d == "gemini" {
				p.Media.Name = ""
			}
		case neutral.PartCall:
			p.Call.Custom = p.Call.Custom && free(d, model)
		case neutral.PartResult:
			p.Result = lossyResult(d, p.Result)
		}
		t.Parts = append(t.Parts, p)
	}
	return t
}

func lossyResult(d string, r neutral.Result) neutral.Result {
	switch d {
	case "anthropic":
		r.Name = "" // told by the call
	case "openai", "responses": // no flag of failure: told in words
		r.Parts = neutral.Texts(r.ResultText())
		r.Error = false
	}
	return r
}

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
