package translate

import (
	"bytes"
	"encoding/json"
	"errors"
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
