package anthropic

import (
	"encoding/json"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// The versions of the API. The newer one refuses sampling parameters.
const (
	versionSampling = "2023-06-01"
	versionCurrent  = "2026-10-21"
)

// jsonOnly asks in words for what the API has no member for.
const jsonOnly = "Answer with one JSON object and nothing else."

// filler stands where Anthropic wants a turn of the user before the assistant's first.
const filler = "."

// WriteRequest makes a Messages request, or one for its count.
func (Dialect) WriteRequest(r *neutral.Request) (*neutral.Outgoing, error) {
	can := abilitiesOf(r.Model)
	out := request{Model: r.Model, Stream: r.Stream, StopSequences: stops(r.Stop)}
	system, turns := r.Hoisted()
	if len(turns) == 0 {
		system, turns = nil, []neutral.Turn{{Parts: system}}
	}
	if r.Output.Kind == neutral.OutputJSON {
		system = append(system, neutral.Part{Text: jsonOnly})
	}
	for i := range system {
		out.System = appendText(out.System, &system[i])
	}
	if err := writeTurns(&out, neutral.Merged(turns), can); err != nil {
		return nil, err
	}
	writeTools(&out, r, can)
	if r.Output.Kind == neutral.OutputSchema {
		switch {
		case can.schema:
			out.OutputConfig = &outputConfig{Format: &format{Type: "json_schema", Schema: r.Output.Schema}}
		case bySchemaTool(r, can):
			if err := writeSchemaTool(&out, r); err != nil {
				return nil, err
			}
		}
	}
	if r.User != "" {
		out.Metadata = &metadata{UserID: r.User}
	}
	if r.Operation == dialect.OpCount {
		out.Stream, out.StopSequences, out.Metadata = false, nil, nil
		writeThinking(&out, r, can)
		out.MaxTokens = nil
		return outgoing("/messages/count_tokens", &out, versionCurrent), nil
	}
	out.MaxTokens = (*neutral.Int)(r.MaxTokens)
	if out.MaxTokens == nil {
		out.MaxTokens = (*neutral.Int)(&can.output)
	}
	writeThinking(&out, r, can)
	version := versionCurrent
	if can.sampling && out.Thinking == nil {
		out.Temperature, out.TopP, out.TopK = clamp(r.Temperature), r.TopP, r.TopK
		if out.Temperature != "" {
			out.TopP = "" // models from 4.5 on take one of the two
		}
		if out.Temperature+out.TopP+out.TopK != "" {
			version = versionSampling
		}
	}
	return outgoing("/messages", &out, version), nil
}

func outgoing(path string, body *request, version string) *neutral.Outgoing {
	return &neutral.Outgoing{Path: path, Body: neutral.Encode(body), Header: [][2]string{{"Anthropic-Version", version}}}
}

// stops leaves out what Anthropic refuses: sequences of white space alone.
func stops(list []string) []string {
	var out []string
	for _, s := range list {
		if strings.TrimSpace(s) != "" {
			out = append(out, s)
		}
	}
	return out
}

func writeTurns(out *request, turns []neutral.Turn, can abilities) error {
	out.Messages = make([]turn, 0, len(turns)+1)
	if turns[0].Role == neutral.RoleAssistant {
		turns = append([]neutral.Turn{{Parts: neutral.Texts(filler)}}, turns...)
	}
	w := writer{ids: map[string]string{}, used: map[string]bool{}}
	for i := range turns {
		t := &turns[i]
		m := turn{Role: "user"}
		if t.Role == neutral.RoleAssistant {
			m.Role = "assistant"
		}
		last := i == len(turns)-1
		if last && t.Role == neutral.RoleAssistant && !can.prefill {
			return neutral.Unsupported("messages", "ends with a turn of the assistant, which the model %s does not continue", out.Model)
		}
		var err error
		if m.Content, err = w.blocks(t.Parts); err != nil {
			return err
		}
		if last && t.Role == neutral.RoleAssistant {
			trimEnd(&m.Content)
		}
		if len(m.Content) > 0 {
			out.Messages = append(out.Messages, m)
		}
	}
	if len(out.Messages) == 0 {
		return neutral.Unsupported("messages", "has no content")
	}
	return nil
}

// trimEnd takes white space from the end of the last text, where Anthropic refuses it.
func trimEnd(list *blocks) {
	n := len(*list)
	if n == 0 || (*list)[n-1].Type != "text" {
		return
	}
	text := strings.TrimRight((*list)[n-1].text(), " \t\r\n")
	if text == "" {
		*list = (*list)[:n-1]
		return
	}
	(*list)[n-1].Text = &text
}

func writeTools(out *request, r *neutral.Request, can abilities) {
	offered := r.Offered()
	for i := range offered {
		t := &offered[i]
		w := tool{Name: t.Name, Description: t.Told(), InputSchema: t.ObjectSchema(), CacheControl: t.Cache}
		if t.Strict != nil && *t.Strict && can.schema {
			w.Strict = t.Strict
		}
		out.Tools = append(out.Tools, w)
	}
	if len(out.Tools) == 0 {
		return
	}
	c := toolChoice{DisableParallelToolUse: r.Sequential}
	switch r.Choice.Mode {
	case neutral.ChoiceDefault:
		if !r.Sequential {
			return
		}
		c.Type = "auto"
	case neutral.ChoiceAuto:
		c.Type = "auto"
	case neutral.ChoiceNone:
		c = toolChoice{Type: "none"}
	case neutral.ChoiceAny:
		switch len(r.Choice.Names) {
		case 0:
			c.Type = "any"
		case 1:
			c.Type, c.Name = "tool", r.Choice.Names[0]
		default: // one of several: only these are offered
			c.Type = "any"
		}
	}
	out.ToolChoice = &c
}

// writeThinking puts the wish for thought in the way that the model takes it. Where Anthropic
// would refuse to think it does not: with a forced tool, and in the middle of a loop of calls
// whose thoughts another upstream has had.
func writeThinking(out *request, r *neutral.Request, can abilities) {
	w := &r.Reasoning
	effort := w.Word()
	if can.adaptive && effort != "" && effort != "none" {
		if out.OutputConfig == nil {
			out.OutputConfig = &outputConfig{}
		}
		out.OutputConfig.Effort = effortOf(effort, can)
	}
	forced := out.ToolChoice != nil && (out.ToolChoice.Type == "any" || out.ToolChoice.Type == "tool")
	switch {
	case w.Off() && can.adaptive:
		out.Thinking = &thinking{Type: "disabled"}
	case !w.Asked() || forced || thoughtless(out.Messages):
	case can.adaptive:
		out.Thinking = &thinking{Type: "adaptive"}
		if w.Show != nil && !*w.Show {
			out.Thinking.Display = "omitted"
		} else {
			out.Thinking.Display = "summarized"
		}
	case can.budget:
		budget := neutral.Int(max(w.Tokens(), 1024))
		out.Thinking = &thinking{Type: "enabled", BudgetTokens: budget}
		if out.MaxTokens != nil && *out.MaxTokens <= budget {
			enough := *out.MaxTokens + budget
			out.MaxTokens = &enough
		}
	}
}

// thoughtless reports whether the conversation is in the middle of a loop of calls and the
// turn of the assistant that it goes on from does not begin with a thought.
func thoughtless(turns []turn) bool {
	n := len(turns)
	if n < 2 || turns[n-1].Role != "user" || turns[n-1].Content[0].Type != "tool_result" {
		return false
	}
	first := turns[n-2].Content[0].Type
	return first != "thinking" && first != "redacted_thinking"
}

// effortOf returns the nearest effort that the model knows.
func effortOf(word string, can abilities) string {
	switch {
	case word == "minimal":
		return "low"
	case word == "xhigh" && can.budget: // the first models with efforts
		return "high"
	}
	return word
}

// clamp brings a temperature into Anthropic's range of 0 to 1.
func clamp(n json.Number) json.Number {
	if f, err := n.Float64(); err == nil && f > 1 {
		return "1"
	}
	return n
}
