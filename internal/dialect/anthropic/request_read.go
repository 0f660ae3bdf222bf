package anthropic

import (
	"encoding/json"
	"fmt"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// billing begins a system block that Claude Code puts first. It says nothing to a model and
// changes with each conversation, which would spoil the caches of others.
const billing = "x-anthropic-billing-header:"

// ReadNeutral reads a Messages request or the request for its count.
func (Dialect) ReadNeutral(asked *dialect.Request) (*neutral.Request, error) {
	var in request
	if err := neutral.DecodeRequest(asked.Body, &in); err != nil {
		return nil, err
	}
	out := &neutral.Request{Operation: asked.Operation, Model: in.Model, Stream: in.Stream,
		MaxTokens: (*int64)(in.MaxTokens), Temperature: in.Temperature, TopP: in.TopP, TopK: in.TopK, Stop: in.StopSequences}
	if out.MaxTokens != nil && *out.MaxTokens == 0 {
		native(out, "max_tokens", "is 0, which asks for warming a cache")
	}
	for i := range in.System {
		if t := in.System[i].text(); !strings.HasPrefix(t, billing) {
			out.System = append(out.System, part(neutral.PartText, t, &in.System[i]))
		}
	}
	out.Turns = make([]neutral.Turn, 0, len(in.Messages))
	for i := range in.Messages {
		t, err := readTurn(out, i, &in.Messages[i])
		if err != nil {
			return nil, err
		}
		out.Turns = append(out.Turns, t)
	}
	readTools(out, &in)
	readThinking(out, &in)
	if in.Metadata != nil {
		out.User = in.Metadata.UserID
	}
	if neutral.Given(in.Container) {
		native(out, "container", "names a container that only Anthropic's own API has")
	}
	if neutral.Given(in.MCPServers) {
		native(out, "mcp_servers", "names servers that only Anthropic's own API calls")
	}
	return out, nil
}

func native(r *neutral.Request, field, reason string) {
	r.Native = append(r.Native, neutral.UnsupportedError{Field: field, Reason: reason})
}

func (b *block) text() string {
	if b.Text == nil {
		return ""
	}
	return *b.Text
}

func part(kind neutral.PartKind, text string, b *block) neutral.Part {
	return neutral.Part{Kind: kind, Text: text, Cache: neutral.Some(b.CacheControl)}
}

func readTurn(out *neutral.Request, index int, m *turn) (neutral.Turn, error) {
	t := neutral.Turn{}
	switch m.Role {
	case "user":
	case "assistant":
		t.Role = neutral.RoleAssistant
	case "system":
		t.Role = neutral.RoleSystem
	default:
		return t, &dialect.RequestError{Param: fmt.Sprintf("messages.%d.role", index), Offset: -1,
			Message: "The field messages." + fmt.Sprint(index) + ".role must be user, assistant or system."}
	}
	t.Parts = readBlocks(out, fmt.Sprintf("messages.%d.content", index), m.Content)
	return t, nil
}

func readBlocks(out *neutral.Request, field string, list blocks) []neutral.Part {
	parts := make([]neutral.Part, 0, len(list))
	for i := range list {
		b := &list[i]
		at := fmt.Sprintf("%s.%d", field, i)
		switch b.Type {
		case "text":
			parts = append(parts, part(neutral.PartText, b.text(), b))
		case "thinking":
			p := part(neutral.PartReasoning, "", b)
			if b.Thinking != nil {
				p.Text = *b.Thinking
			}
			p.Seal = neutral.Unwrap(name, b.Signature)
			parts = append(parts, p)
		case "redacted_thinking":
			p := part(neutral.PartReasoning, "", b)
			if p.Seal = neutral.Unwrap(name, b.Data); p.Seal.Origin == name {
				p.Seal.Redacted = true
			}
			parts = append(parts, p)
		case "image", "document":
			if cites(b.Citations) {
				native(out, at+".citations", "asks for citations, which only Anthropic's own API gives")
			}
			parts = append(parts, neutral.Texts(b.Context)...) // what the client says of the document
			parts = append(parts, readMedia(out, at, b)...)
		case "tool_use":
			p := part(neutral.PartCall, "", b)
			p.Call = neutral.Call{ID: b.ID, Name: b.Name, Arguments: string(neutral.Some(b.Input))}
			parts = append(parts, p)
		case "tool_result":
			p := part(neutral.PartResult, "", b)
			p.Result = neutral.Result{ID: b.ToolUseID, Error: b.IsError, Parts: readBlocks(out, at+".content", b.Content)}
			parts = append(parts, p)
		case "search_result":
			if cites(b.Citations) {
				native(out, at+".citations", "asks for citations, which only Anthropic's own API gives")
			}
			head := b.Title
			if b.Source != nil {
				head += "\n" + b.Source.Name
			}
			parts = append(parts, neutral.Texts(strings.TrimSpace(head+"\n"+neutral.Text(readBlocks(out, at, b.Content), "\n")))...)
		case "fallback":
		default:
			native(out, at, fmt.Sprintf("is a block of type %q, which only Anthropic's own API knows", b.Type))
		}
	}
	return parts
}

// cites reports whether the model is to cite a document.
func cites(raw json.RawMessage) bool {
	var c struct{ Enabled bool }
	return neutral.Decode(raw, &c) == nil && c.Enabled
}

func readMedia(out *neutral.Request, field string, b *block) []neutral.Part {
	p := part(neutral.PartImage, "", b)
	if b.Type == "document" {
		p.Kind = neutral.PartFile
	}
	p.Media.Name = b.Title
	s := b.Source
	if s == nil {
		s = &source{}
	}
	switch s.Type {
	case "base64":
		p.Media.Type, p.Media.Data = s.MediaType, s.Data
	case "url":
		p.Media.URL = s.URL
	case "text":
		p.Media.Type, p.Media.Text = "text/plain", s.Data
	case "content":
		var inner blocks
		if json.Unmarshal(s.Content, &inner) == nil {
			return readBlocks(out, field+".source.content", inner)
		}
	default:
		native(out, field+".source", fmt.Sprintf("is of type %q, which only Anthropic's own API can open", s.Type))
	}
	return []neutral.Part{p}
}

func readTools(out *neutral.Request, in *request) {
	for i, t := range in.Tools {
		if t.Type != "" && t.Type != "custom" {
			native(out, fmt.Sprintf("tools.%d", i), fmt.Sprintf("is the tool %q, which only Anthropic's own API has", t.Type))
			continue
		}
		out.Tools = append(out.Tools, neutral.Tool{Name: t.Name, Description: t.Description, Schema: neutral.Some(t.InputSchema), Strict: t.Strict, Cache: neutral.Some(t.CacheControl)})
	}
	c := in.ToolChoice
	if c == nil {
		return
	}
	out.Sequential = c.DisableParallelToolUse
	switch c.Type {
	case "auto":
		out.Choice.Mode = neutral.ChoiceAuto
	case "none":
		out.Choice.Mode = neutral.ChoiceNone
	case "any":
		out.Choice.Mode = neutral.ChoiceAny
	case "tool":
		out.Choice = neutral.Choice{Mode: neutral.ChoiceAny, Names: []string{c.Name}}
	}
}

func readThinking(out *neutral.Request, in *request) {
	r := &out.Reasoning
	format := in.OutputFormat
	if c := in.OutputConfig; c != nil {
		r.Effort = c.Effort
		if c.Format != nil {
			format = c.Format
		}
	}
	switch {
	case format == nil || format.Type == "" || format.Type == "text":
	case format.Type == "json_schema":
		out.Output = neutral.Output{Kind: neutral.OutputSchema, Schema: format.Schema}
	default:
		native(out, "output_config.format", fmt.Sprintf("asks for the form %q, which only Anthropic's own API knows", format.Type))
	}
	t := in.Thinking
	if t == nil {
		return
	}
	switch t.Type {
	case "enabled":
		r.Budget, r.Show = neutral.Integer(int64(t.BudgetTokens)), neutral.True(true)
	case "adaptive", "between_tools":
		r.Adaptive = true
	case "disabled":
		r.Effort = "none"
	}
	switch t.Display {
	case "omitted":
		r.Show = neutral.True(false)
	case "summarized", "full":
		r.Show = neutral.True(true)
	}
}
