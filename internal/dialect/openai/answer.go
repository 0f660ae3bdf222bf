package openai

import (
	"cmp"
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// ReadAnswer reads a complete answer. Of several choices the first counts.
func (Dialect) ReadAnswer(c *neutral.Context, body []byte) (*neutral.Answer, bool) {
	var in struct {
		ID      string
		Model   string
		Choices []struct {
			Message      *message
			Delta        message // of services that put a stream's chunk in the place of an answer
			Text         text
			FinishReason text `json:"finish_reason"`
		}
	}
	if neutral.Decode(body, &in) != nil || in.Choices == nil {
		return nil, false
	}
	out := &neutral.Answer{ID: in.ID, Model: in.Model, Usage: scanChunk(body, false).usage}
	if len(in.Choices) == 0 {
		return out, true
	}
	first := &in.Choices[0]
	end := finishOf([]byte(first.FinishReason))
	out.Finish, out.Native = end.finish, end.native
	m := first.Message
	if m == nil {
		m = &first.Delta
	}
	if thought := thoughtOf(m); thought != "" {
		out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartReasoning, Text: thought})
	}
	if m.Content != nil {
		for _, p := range m.Content.parts {
			switch {
			case p.Type == "refusal":
				out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartRefusal, Text: p.Refusal})
			case p.Text != "":
				out.Parts = append(out.Parts, neutral.Part{Text: p.Text})
			}
		}
	}
	out.Parts = append(out.Parts, neutral.Texts(string(first.Text))...)
	out.Parts = append(out.Parts, neutral.Texts(imagesText(m.Images))...)
	if m.Refusal != "" {
		out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartRefusal, Text: m.Refusal})
	}
	calls := m.ToolCalls
	if m.FunctionCall != nil {
		calls = append(calls, wireCall{Function: m.FunctionCall})
	}
	for _, w := range calls {
		if own := w.Custom; own != nil {
			w.Function = &called{Name: own.Name, Arguments: arguments(neutral.FreeArguments(own.Input))}
		}
		if w.Function == nil {
			continue
		}
		if x := w.ExtraContent; x != nil && x.Google.ThoughtSignature != "" {
			out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartReasoning, Seal: neutral.Unwrap("gemini", x.Google.ThoughtSignature)})
		}
		call := neutral.Call{ID: c.CallID(w.ID), Name: w.Function.Name, Arguments: string(w.Function.Arguments), Custom: w.Custom != nil}
		out.Parts = append(out.Parts, neutral.Part{Kind: neutral.PartCall, Call: call})
	}
	return out, true
}

// thoughtOf returns the thoughts in a message, under whichever name.
func thoughtOf(m *message) string {
	if m.ReasoningContent != "" {
		return m.ReasoningContent
	}
	if m.Reasoning != "" {
		return string(m.Reasoning)
	}
	if said := detailsText(m.ReasoningDetails); said != "" {
		return said
	}
	if m.Content == nil {
		return ""
	}
	out := ""
	for _, p := range m.Content.parts {
		out += thinkingText(p.Thinking)
	}
	return out
}

// detailsText reads OpenRouter's thoughts: texts and summaries, beside what is sealed.
func detailsText(raw json.RawMessage) string {
	var list []struct{ Text, Summary text }
	if neutral.First(raw) != '[' || neutral.Decode(raw, &list) != nil {
		return ""
	}
	out := ""
	for _, d := range list {
		out += string(cmp.Or(d.Text, d.Summary))
	}
	return out
}

// imagesText puts the images of an answer into words. OpenAI's own API has none.
func imagesText(raw json.RawMessage) string {
	var list []struct {
		ImageURL imageURL `json:"image_url"`
	}
	if neutral.First(raw) != '[' || neutral.Decode(raw, &list) != nil {
		return ""
	}
	out := ""
	for i := range list {
		if m := (neutral.Media{URL: list[i].ImageURL.URL}); m.URL != "" {
			out += m.Shown()
		}
	}
	return out
}

// thinkingText reads Mistral's thoughts: a string, or a list of texts.
func thinkingText(raw json.RawMessage) string {
	switch neutral.First(raw) {
	case '"':
		var s string
		if json.Unmarshal(raw, &s) == nil {
			return s
		}
	case '[':
		var list []struct{ Text string }
		if neutral.Decode(raw, &list) == nil {
			s := ""
			for _, p := range list {
				s += p.Text
			}
			return s
		}
	}
	return ""
}

// WriteAnswer makes a complete answer.
func (Dialect) WriteAnswer(c *neutral.Context, a *neutral.Answer) []byte {
	m := message{Role: "assistant"}
	said := ""
	var seal neutral.Seal
	for i := range a.Parts {
		p := &a.Parts[i]
		switch p.Kind {
		case neutral.PartText:
			said += p.Text
		case neutral.PartRefusal:
			m.Refusal += p.Text
		case neutral.PartReasoning:
			m.ReasoningContent += p.Text
			seal = p.Seal
		case neutral.PartCall:
			m.ToolCalls = append(m.ToolCalls, writeCall(&p.Call, seal))
			seal = neutral.Seal{}
		}
	}
	if said != "" || m.ToolCalls == nil && m.Refusal == "" {
		m.Content = plain(said)
	}
	if c.Request.Functions && m.ToolCalls != nil {
		m.FunctionCall, m.ToolCalls = m.ToolCalls[0].Function, nil
	}
	reason := finishWord(c.Request, a.Finish, neutral.HasCall(a.Parts))
	out := completion{ID: a.ID, Object: "chat.completion", Created: c.Now.Unix(), Model: c.ModelOr(a.Model),
		Choices: []fullChoice{{Message: m, FinishReason: &reason}}, Usage: countOf(a.Usage)}
	if out.ID == "" {
		out.ID = c.NewID("chatcmpl-")
	}
	return neutral.Encode(out)
}

// writeCall returns a call, with the seal of the thought before it where that has a place.
func writeCall(c *neutral.Call, seal neutral.Seal) wireCall {
	out := wireCall{ID: c.ID, Type: "function", ExtraContent: extra(seal)}
	if c.Custom {
		out.Type, out.Custom = "custom", &customCall{Name: c.Name, Input: c.Free()}
		return out
	}
	out.Function = &called{Name: c.Name, Arguments: arguments(cmp.Or(c.Arguments, "{}"))}
	return out
}

// finishWord returns OpenAI's word for an ending.
func finishWord(r *neutral.Request, f dialect.Finish, called bool) string {
	calls := "tool_calls"
	if r.Functions {
		calls = "function_call"
	}
	switch f {
	case dialect.FinishLength:
		return "length"
	case dialect.FinishFilter:
		return "content_filter"
	}
	if called {
		return calls
	}
	return "stop"
}
