package responses

import (
	"cmp"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
)

// minOutput is the least limit of tokens that the API takes.
const minOutput = 16

// WriteRequest makes a request, or one for the count of its input. Nothing is stored upstream:
// the client has the whole conversation.
func (Dialect) WriteRequest(r *neutral.Request) (*neutral.Outgoing, error) {
	if len(r.Stop) > 0 && r.Operation != dialect.OpCount {
		return nil, neutral.Unsupported("stop", "names stop sequences, which the Responses API does not have")
	}
	out := request{Model: r.Model, Stream: r.Stream, Store: neutral.True(false), MaxOutputTokens: (*neutral.Int)(r.MaxTokens), User: r.User, PromptCacheKey: r.Key}
	if out.MaxOutputTokens != nil && *out.MaxOutputTokens < minOutput {
		least := neutral.Int(minOutput)
		out.MaxOutputTokens = &least
	}
	if !openai.Reasons(r.Model) {
		out.Temperature, out.TopP = r.Temperature, r.TopP
	}
	if text := neutral.Text(r.System, "\n\n"); text != "" {
		out.Instructions = neutral.Encode(text)
	}
	out.Input = make(items, 0, len(r.Turns))
	w := writer{out: &out, free: openai.FreeForm(r.Model)}
	for i := range r.Turns {
		if err := w.turn(&r.Turns[i]); err != nil {
			return nil, err
		}
	}
	if len(out.Input) == 0 && out.Instructions != nil { // which the API does not take without an input
		text := neutral.Text(r.System, "\n\n")
		out.Input = items{{Type: "message", Role: "system", Content: contents{{Type: "input_text", Text: &text}}}}
		out.Instructions = nil
	}
	if len(out.Input) == 0 {
		return nil, neutral.Unsupported("messages", "has no content")
	}
	w.tools(r)
	writeText(&out, r)
	if openai.Thinks(r.Model) {
		if effort := openai.Effort(r.Model, r.Reasoning.Word()); effort != "" {
			out.Reasoning = &reasoning{Effort: effort}
		}
		if r.Reasoning.Asked() {
			out.Include = []string{"reasoning.encrypted_content"}
			if s := r.Reasoning.Show; s != nil && *s {
				if out.Reasoning == nil {
					out.Reasoning = &reasoning{}
				}
				out.Reasoning.Summary = "auto"
			}
		}
	}
	path := "/responses"
	if r.Operation == dialect.OpCount {
		path += "/input_tokens"
		out = request{Model: out.Model, Input: out.Input, Instructions: out.Instructions, Tools: out.Tools, ToolChoice: out.ToolChoice,
			ParallelToolCalls: out.ParallelToolCalls, Text: out.Text, Reasoning: out.Reasoning}
	}
	return &neutral.Outgoing{Path: path, Body: neutral.Encode(out)}, nil
}

// writer makes the items of a request.
type writer struct {
	out    *request
	free   bool            // the model takes custom tools
	custom map[string]bool // the ids of their calls
}

func (w *writer) turn(t *neutral.Turn) error {
	out := w.out
	message := item{Type: "message", Role: "user"}
	switch t.Role {
	case neutral.RoleAssistant:
		message.Role = "assistant"
	case neutral.RoleSystem:
		message.Role = "system"
	}
	flush := func() {
		if len(message.Content) > 0 {
			out.Input = append(out.Input, message)
			message.Content = nil
		}
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case neutral.PartCall:
			flush()
			out.Input = append(out.Input, w.call(&p.Call))
		case neutral.PartResult:
			flush()
			it, err := writeResult(&p.Result)
			if err != nil {
				return err
			}
			if w.custom[p.Result.ID] {
				it.Type = "custom_tool_call_output"
			}
			out.Input = append(out.Input, it)
		case neutral.PartReasoning:
			if it, ok := writeThought(p); ok {
				flush()
				out.Input = append(out.Input, it)
			}
		default:
			c, err := writePiece(p, t.Role)
			if err != nil {
				return err
			}
			if p.Kind != neutral.PartText || p.Text != "" {
				message.Content = append(message.Content, c)
			}
		}
	}
	flush()
	return nil
}

func (w *writer) call(c *neutral.Call) item {
	if c.Custom && w.free {
		if w.custom == nil {
			w.custom = map[string]bool{}
		}
		w.custom[c.ID] = true
		text := c.Free()
		return item{Type: "custom_tool_call", CallID: c.ID, Name: c.Name, Input: &text}
	}
	args := cmp.Or(c.Arguments, "{}")
	return item{Type: "function_call", CallID: c.ID, Name: c.Name, Arguments: &args}
}

// writeThought gives the API its own thoughts back, and only those.
func writeThought(p *neutral.Part) (item, bool) {
	id, sealed, ok := strings.Cut(p.Seal.Value, "|")
	if p.Seal.Origin != name || !ok {
		return item{}, false
	}
	summary := []piece{}
	if p.Text != "" {
		summary = append(summary, piece{Type: "summary_text", Text: &p.Text})
	}
	return item{Type: "reasoning", ID: id, Summary: &summary, EncryptedContent: sealed}, true
}

func writeResult(r *neutral.Result) (item, error) {
	it := item{Type: "function_call_output", CallID: r.ID, Output: contents{}}
	shown := false
	for i := range r.Parts {
		shown = shown || r.Parts[i].Kind == neutral.PartImage || r.Parts[i].Kind == neutral.PartFile && r.Parts[i].Media.Text == ""
	}
	if !shown {
		text := r.ResultText()
		it.Output = contents{{Type: plainOutput, Text: &text}}
		return it, nil
	}
	if text := neutral.Text(r.Parts, "\n"); r.ResultText() != text { // it failed, and its words do not say so
		failed := "Error:"
		it.Output = append(it.Output, piece{Type: "input_text", Text: &failed})
	}
	for i := range r.Parts {
		c, err := writePiece(&r.Parts[i], neutral.RoleUser)
		if err != nil {
			return it, err
		}
		it.Output = append(it.Output, c)
	}
	return it, nil
}

// plainOutput is the type of the one piece of an output that is written as a string.
const plainOutput = "plain"

// MarshalJSON writes a list, but for a plain output.
func (c contents) MarshalJSON() ([]byte, error) {
	if len(c) == 1 && c[0].Type == plainOutput {
		return dialect.AppendString(nil, c[0].text()), nil
	}
	return neutral.Encode([]piece(c)), nil
}

func writePiece(p *neutral.Part, role neutral.Role) (piece, error) {
	m := &p.Media
	switch p.Kind {
	case neutral.PartImage:
		c := piece{Type: "input_image", ImageURL: m.URL, Detail: m.Detail}
		if c.ImageURL == "" {
			c.ImageURL = m.DataURL()
		}
		if c.Detail == "" {
			c.Detail = "auto"
		}
		return c, nil
	case neutral.PartFile:
		switch {
		case m.Text != "":
			text := m.Text
			if m.Name != "" {
				text = m.Name + "\n\n" + text
			}
			return piece{Type: "input_text", Text: &text}, nil
		case m.URL != "":
			return piece{Type: "input_file", FileURL: m.URL}, nil
		}
		c := piece{Type: "input_file", Filename: m.Name, FileData: m.DataURL()}
		if c.Filename == "" {
			c.Filename = "document"
		}
		return c, nil
	case neutral.PartAudio:
		return piece{}, neutral.Unsupported("messages", "has sound, which the Responses API does not take")
	case neutral.PartRefusal:
		if role == neutral.RoleAssistant {
			return piece{Type: "refusal", Refusal: &p.Text}, nil
		}
	}
	if role == neutral.RoleAssistant {
		return piece{Type: "output_text", Text: &p.Text}, nil
	}
	return piece{Type: "input_text", Text: &p.Text}, nil
}

func writeText(out *request, r *neutral.Request) {
	t := textConfig{Verbosity: r.Verbosity}
	switch r.Output.Kind {
	case neutral.OutputJSON:
		t.Format = &format{Type: "json_object"}
	case neutral.OutputSchema:
		f := &format{Type: "json_schema", Name: r.Output.Name, Description: r.Output.Description, Schema: r.Output.Schema, Strict: r.Output.Strict}
		if f.Name == "" {
			f.Name = "answer"
		}
		t.Format = f
	}
	if t != (textConfig{}) {
		out.Text = &t
	}
}
