package openai

import (
	"encoding/json"
	"slices"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// ToolNames returns what names of tools may look like.
func (Dialect) ToolNames() neutral.NameRule { return neutral.NameRule{Max: 64} }

// Reasons reports whether a model is one of OpenAI's that think: they know another name for
// the limit of tokens and refuse sampling parameters.
func Reasons(model string) bool {
	if i := strings.LastIndexByte(model, '/'); i >= 0 {
		model = model[i+1:]
	}
	switch {
	case strings.HasPrefix(model, "codex"):
		return true
	case len(model) > 1 && model[0] == 'o' && model[1] >= '1' && model[1] <= '9':
		return true
	case strings.HasPrefix(model, "gpt-"):
		c := model[len("gpt-"):]
		return c != "" && (c[0] >= '5' && c[0] <= '9' || len(c) > 1 && c[0] == '1' && c[1] >= '0' && c[1] <= '9') && !strings.Contains(c, "chat")
	}
	return false
}

// FreeForm reports whether OpenAI's own API takes custom tools for a model: from GPT-5 on.
func FreeForm(model string) bool {
	base := model[strings.LastIndexByte(model, '/')+1:]
	return Reasons(base) && base[0] != 'o'
}

// WriteRequest makes a chat request.
func (Dialect) WriteRequest(r *neutral.Request) (*neutral.Outgoing, error) {
	if r.Operation == dialect.OpCount {
		return nil, neutral.Unsupported("model", "is served by a chat API, which counts no tokens")
	}
	out := chatRequest{Model: r.Model, Stream: r.Stream, Stop: r.Stop, Seed: r.Seed,
		FrequencyPenalty: r.Frequency, PresencePenalty: r.Presence, User: r.User, PromptCacheKey: r.Key, Verbosity: r.Verbosity}
	if r.Stream {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if Reasons(r.Model) {
		if len(r.Stop) > 0 {
			return nil, neutral.Unsupported("stop", "names stop sequences, which the model %s does not take", r.Model)
		}
		out.MaxCompletionTokens = (*neutral.Int)(r.MaxTokens)
	} else {
		out.MaxTokens = (*neutral.Int)(r.MaxTokens)
		out.Temperature, out.TopP = r.Temperature, r.TopP
	}
	if Thinks(r.Model) {
		out.ReasoningEffort = Effort(r.Model, r.Reasoning.Word())
	}
	if len(r.System) > 0 {
		out.Messages = append(out.Messages, message{Role: "system", Content: plain(neutral.Text(r.System, "\n\n"))})
	}
	if err := writeTurns(&out, r.Turns); err != nil {
		return nil, err
	}
	writeTools(&out, r)
	switch r.Output.Kind {
	case neutral.OutputJSON:
		out.ResponseFormat = &responseFormat{Type: "json_object"}
	case neutral.OutputSchema:
		s := &jsonSchema{Name: r.Output.Name, Description: r.Output.Description, Schema: r.Output.Schema, Strict: r.Output.Strict}
		if s.Name == "" {
			s.Name = "answer"
		}
		out.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: s}
	}
	return &neutral.Outgoing{Path: "/chat/completions", Body: neutral.Encode(out)}, nil
}

func writeTurns(out *chatRequest, turns []neutral.Turn) error {
	out.Messages = slices.Grow(out.Messages, len(turns))
	for i := range turns {
		t := &turns[i]
		switch t.Role {
		case neutral.RoleSystem:
			out.Messages = append(out.Messages, message{Role: "system", Content: plain(neutral.Text(t.Parts, "\n\n"))})
		case neutral.RoleAssistant:
			if m := writeAssistant(t.Parts); m != nil {
				out.Messages = append(out.Messages, *m)
			}
		default:
			if err := writeUser(out, t.Parts); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeAssistant returns a message, nil when nothing is left of the turn: thoughts are not given back.
func writeAssistant(parts []neutral.Part) *message {
	m := message{Role: "assistant"}
	var texts []neutral.Part
	var seal neutral.Seal
	for i := range parts {
		p := &parts[i]
		switch p.Kind {
		case neutral.PartText:
			texts = append(texts, *p)
		case neutral.PartRefusal:
			m.Refusal += p.Text
		case neutral.PartReasoning:
			seal = p.Seal
		case neutral.PartCall:
			call := p.Call
			call.Custom = false // most services with this API know only functions
			m.ToolCalls = append(m.ToolCalls, writeCall(&call, seal))
			seal = neutral.Seal{}
		}
	}
	if text := neutral.Text(texts, ""); text != "" {
		m.Content = plain(text)
	}
	if m.Content == nil && m.ToolCalls == nil && m.Refusal == "" {
		return nil
	}
	return &m
}

// extra is the place of a seal of Gemini's in Google's own chat API. Other seals have none.
func extra(s neutral.Seal) *extraContent {
	if s.Origin != "gemini" || s.Value == "" {
		return nil
	}
	var x extraContent
	x.Google.ThoughtSignature = s.Value
	return &x
}

// writeUser makes a message of each result, then one of what the user says. Images among
// results go to the user's message, since a result is text here.
func writeUser(out *chatRequest, parts []neutral.Part) error {
	var rest []neutral.Part
	var shown []neutral.Part
	for i := range parts {
		p := &parts[i]
		if p.Kind != neutral.PartResult {
			rest = append(rest, *p)
			continue
		}
		for _, q := range p.Result.Parts {
			if q.Kind == neutral.PartImage || q.Kind == neutral.PartFile && q.Media.Text == "" {
				shown = append(shown, q)
			}
		}
		out.Messages = append(out.Messages, message{Role: "tool", ToolCallID: p.Result.ID, Content: plain(p.Result.ResultText())})
	}
	rest = append(shown, rest...)
	if len(rest) == 0 {
		return nil
	}
	m := message{Role: "user"}
	var list content
	for i := range rest {
		c, err := writePart(&rest[i])
		if err != nil {
			return err
		}
		if c.Type != "text" || c.Text != "" {
			list.parts = append(list.parts, c)
		}
	}
	if len(list.parts) == 0 {
		m.Content = plain("")
	} else {
		list.plain = len(list.parts) == 1 && list.parts[0].Type == "text"
		m.Content = &list
	}
	out.Messages = append(out.Messages, m)
	return nil
}

func writePart(p *neutral.Part) (contentPart, error) {
	m := &p.Media
	switch p.Kind {
	case neutral.PartImage:
		url := m.URL
		if url == "" {
			url = m.DataURL()
		}
		return contentPart{Type: "image_url", ImageURL: &imageURL{URL: url, Detail: m.Detail}}, nil
	case neutral.PartFile:
		switch {
		case m.Text != "":
			return contentPart{Type: "text", Text: titled(m)}, nil
		case m.URL != "":
			return contentPart{}, neutral.Unsupported("messages", "has a document by its address, which a chat API cannot open")
		}
		f := &file{Filename: m.Name, FileData: m.DataURL()}
		if f.Filename == "" {
			f.Filename = "document"
		}
		return contentPart{Type: "file", File: f}, nil
	case neutral.PartAudio:
		if m.Data == "" {
			return contentPart{}, neutral.Unsupported("messages", "has a sound by its address, which a chat API cannot open")
		}
		return contentPart{Type: "input_audio", InputAudio: &inputAudio{Data: m.Data, Format: audioFormat(m.Type)}}, nil
	}
	return contentPart{Type: "text", Text: p.Text}, nil
}

func audioFormat(mime string) string {
	format := strings.TrimPrefix(mime, "audio/")
	switch format {
	case "mpeg":
		return "mp3"
	case "x-wav", "wave":
		return "wav"
	}
	return format
}

// titled puts a text document's title above it.
func titled(m *neutral.Media) string {
	if m.Name == "" {
		return m.Text
	}
	return m.Name + "\n\n" + m.Text
}

func writeTools(out *chatRequest, r *neutral.Request) {
	tools, choice := r.Tools, r.Choice
	if !Reasons(r.Model) { // services other than OpenAI's do not know a list of allowed tools
		tools = r.Offered()
		if len(choice.Names) > 1 || choice.Mode != neutral.ChoiceAny {
			choice.Names = nil
		}
	}
	for i := range tools {
		t := &tools[i]
		out.Tools = append(out.Tools, tool{Type: "function", Function: &function{Name: t.Name, Description: t.Told(), Parameters: t.ObjectSchema(), Strict: t.Strict}})
	}
	if len(out.Tools) == 0 {
		return
	}
	if r.Sequential {
		out.ParallelToolCalls = neutral.True(false)
	}
	out.ToolChoice = writeChoice(choice)
}

func writeChoice(c neutral.Choice) json.RawMessage {
	type name struct {
		Name string `json:"name"`
	}
	type ref struct {
		Type     string `json:"type"`
		Function name   `json:"function"`
	}
	mode := c.Word()
	if mode == "" {
		return nil
	}
	switch {
	case len(c.Names) == 1 && c.Mode == neutral.ChoiceAny:
		return neutral.Encode(ref{"function", name{c.Names[0]}})
	case len(c.Names) > 0:
		var list []ref
		for _, n := range c.Names {
			list = append(list, ref{"function", name{n}})
		}
		return neutral.Encode(map[string]any{"type": "allowed_tools", "allowed_tools": map[string]any{"mode": mode, "tools": list}})
	}
	return neutral.Encode(mode)
}

// Thinks reports whether a model may be told how much to think. Of names that are not OpenAI's
// nothing is known, and most services leave out what they do not know.
func Thinks(model string) bool {
	base := model
	if i := strings.LastIndexByte(base, '/'); i >= 0 {
		base = base[i+1:]
	}
	if strings.HasPrefix(base, "gpt-") || strings.HasPrefix(base, "chatgpt") {
		return Reasons(model) || strings.HasPrefix(base, "gpt-oss")
	}
	return true
}
