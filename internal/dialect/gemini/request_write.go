package gemini

import (
	"net/url"
	"slices"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// dummy is the documented stand-in for the signature of a call that another model has made.
const dummy = "skip_thought_signature_validator"

// maxStops is how many stop sequences the API takes.
const maxStops = 5

// WriteRequest makes a request, or one for its count.
func (Dialect) WriteRequest(r *neutral.Request) (*neutral.Outgoing, error) {
	model := strings.TrimPrefix(r.Model, "models/")
	system, turns := r.Hoisted()
	if len(turns) == 0 {
		system, turns = nil, []neutral.Turn{{Parts: system}}
	}
	if strings.HasPrefix(model, "gemini-") && strings.Contains(model, "-image") {
		return nil, neutral.Unsupported("model", "is served by %s, which answers with pictures, and only Google's own API has a place for those", model)
	}
	if len(r.Stop) > maxStops {
		return nil, neutral.Unsupported("stop", "names %d stop sequences, of which Google's API takes %d", len(r.Stop), maxStops)
	}
	var out request
	for i := range system {
		if system[i].Text != "" {
			if out.SystemInstruction == nil {
				out.SystemInstruction = &content{}
			}
			out.SystemInstruction.Parts = append(out.SystemInstruction.Parts, part{Text: &system[i].Text})
		}
	}
	w := writer{sealed: !strings.HasPrefix(model, "gemini-1") && !strings.HasPrefix(model, "gemini-2"), named: map[string]string{}}
	for _, t := range neutral.Merged(turns) {
		c, err := w.turn(&t)
		if err != nil {
			return nil, err
		}
		if len(c.Parts) > 0 {
			out.Contents = append(out.Contents, c)
		}
	}
	if len(out.Contents) == 0 {
		return nil, neutral.Unsupported("messages", "has no content")
	}
	writeTools(&out, r)
	writeConfig(&out, r, model)
	path := models + model
	switch {
	case r.Operation == dialect.OpCount:
		out.GenerationConfig = nil
		return &neutral.Outgoing{Path: path + ":countTokens",
			Body: neutral.Encode(map[string]any{"generateContentRequest": modelRequest{"models/" + model, out}})}, nil
	case r.Stream:
		return &neutral.Outgoing{Path: path + ":streamGenerateContent?alt=sse", Body: neutral.Encode(out)}, nil
	}
	return &neutral.Outgoing{Path: path + ":generateContent", Body: neutral.Encode(out)}, nil
}

// writer keeps what later turns need to know of earlier ones.
type writer struct {
	sealed bool              // calls need a signature
	named  map[string]string // names of tools by the ids of their calls
}

func (w *writer) turn(t *neutral.Turn) (content, error) {
	c := content{Role: "user"}
	if t.Role == neutral.RoleAssistant {
		c.Role = "model"
	}
	var results, rest []part
	var seal neutral.Seal
	first := true // the first call of a turn is the one that needs a signature
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case neutral.PartReasoning:
			seal = p.Seal
		case neutral.PartCall:
			w.named[p.Call.ID] = p.Call.Name
			out := part{FunctionCall: &functionCall{ID: p.Call.ID, Name: p.Call.Name, Args: p.Call.Object()}}
			switch {
			case seal.Origin == name && seal.Value != "":
				out.ThoughtSignature = seal.Value
			case first && w.sealed:
				out.ThoughtSignature = dummy
			}
			seal, first = neutral.Seal{}, false
			rest = append(rest, out)
		case neutral.PartResult:
			list, err := w.result(&p.Result)
			if err != nil {
				return c, err
			}
			results = append(results, list[0])
			rest = append(rest, list[1:]...)
		default:
			out, ok, err := writePart(p)
			if err != nil {
				return c, err
			}
			if ok {
				rest = append(rest, out)
			}
		}
	}
	c.Parts = slices.Concat(results, rest)
	return c, nil
}

// result returns the part with a result, and parts with what it has of images.
func (w *writer) result(r *neutral.Result) ([]part, error) {
	name := r.Name
	if name == "" {
		name = w.named[r.ID]
	}
	if name == "" {
		return nil, neutral.Unsupported("messages", "has a result of a tool whose call %s is not among them", r.ID)
	}
	text := neutral.Text(r.Parts, "\n")
	f := &functionResponse{ID: r.ID, Name: name}
	switch {
	case r.Error:
		f.Response = neutral.Encode(map[string]string{"error": text})
	case strings.Trim(text, " \t\r\n") == "":
		f.Response = neutral.Encode(map[string]string{"result": text})
	default:
		f.Response = neutral.Object(text, "result")
	}
	out := []part{{FunctionResponse: f}}
	for i := range r.Parts {
		p := &r.Parts[i]
		if p.Kind == neutral.PartText || p.Kind == neutral.PartFile && p.Media.Text != "" {
			continue
		}
		shown, ok, err := writePart(p)
		if err != nil {
			return nil, err
		}
		if ok {
			out = append(out, shown)
		}
	}
	return out, nil
}

// writePart reports false when nothing is left of a part.
func writePart(p *neutral.Part) (part, bool, error) {
	m := &p.Media
	switch p.Kind {
	case neutral.PartText, neutral.PartRefusal:
		return part{Text: &p.Text}, p.Text != "", nil
	case neutral.PartFile:
		if m.Text != "" {
			text := m.Text
			if m.Name != "" {
				text = m.Name + "\n\n" + text
			}
			return part{Text: &text}, true, nil
		}
	}
	if m.URL == "" {
		return part{InlineData: &blob{MimeType: mimeOf(p), Data: m.Data}}, true, nil
	}
	if strings.HasPrefix(m.URL, "http") && !opens(m.URL) {
		return part{}, false, neutral.Unsupported("messages", "names %s by its address, which Google's API does not open; send it as base64", [...]string{
			neutral.PartImage: "an image", neutral.PartFile: "a document", neutral.PartAudio: "a sound"}[p.Kind])
	}
	return part{FileData: &fileData{MimeType: m.Type, FileURI: m.URL}}, true, nil
}

// opens reports whether Google's API opens what is at an address.
func opens(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := strings.TrimPrefix(u.Hostname(), "www.")
	return host == "generativelanguage.googleapis.com" || host == "youtube.com" || host == "youtu.be" || host == "storage.googleapis.com"
}

func mimeOf(p *neutral.Part) string {
	if p.Media.Type != "" {
		return p.Media.Type
	}
	if p.Kind == neutral.PartImage {
		return "image/png"
	}
	return "application/pdf"
}

func writeTools(out *request, r *neutral.Request) {
	var t tool
	offered := r.Tools
	if r.Choice.Mode == neutral.ChoiceAuto { // names of allowed ones go with ANY only
		offered = r.Offered()
	}
	for i := range offered {
		f := functionDeclaration{Name: offered[i].Name, Description: offered[i].Told()}
		if len(offered[i].Schema) > 0 || offered[i].Custom != nil {
			f.ParametersJSONSchema = offered[i].Parameters()
		}
		t.FunctionDeclarations = append(t.FunctionDeclarations, f)
	}
	if len(t.FunctionDeclarations) == 0 {
		return
	}
	out.Tools = []tool{t}
	var mode string
	switch r.Choice.Mode {
	case neutral.ChoiceAuto:
		mode = "AUTO"
	case neutral.ChoiceNone:
		mode = "NONE"
	case neutral.ChoiceAny:
		mode = "ANY"
	default:
		return
	}
	c := &functionCallingConfig{Mode: mode}
	if mode == "ANY" {
		c.AllowedFunctionNames = r.Choice.Names
	}
	out.ToolConfig = &toolConfig{FunctionCallingConfig: c}
}

func writeConfig(out *request, r *neutral.Request, model string) {
	c := generationConfig{MaxOutputTokens: (*neutral.Int)(r.MaxTokens), Temperature: r.Temperature, TopP: r.TopP, TopK: r.TopK, Seed: r.Seed,
		FrequencyPenalty: r.Frequency, PresencePenalty: r.Presence, StopSequences: r.Stop, ThinkingConfig: thinkingFor(&r.Reasoning, model)}
	switch r.Output.Kind {
	case neutral.OutputJSON:
		c.ResponseMimeType = "application/json"
	case neutral.OutputSchema:
		c.ResponseMimeType, c.ResponseJSONSchema = "application/json", r.Output.Schema
	}
	out.GenerationConfig = &c
}

func budget(tokens int64) *neutral.Int { return (*neutral.Int)(&tokens) }

// thinkingFor puts the wish for thought in the way of the model's generation: a number of
// tokens up to 2.5, a level from 3 on.
func thinkingFor(w *neutral.Reasoning, model string) *thinkingConfig {
	if strings.HasPrefix(model, "gemini-1") || strings.HasPrefix(model, "gemini-2.0") || !w.Asked() && !w.Off() {
		return nil
	}
	c := &thinkingConfig{}
	if w.Asked() {
		c.IncludeThoughts = neutral.True(w.Show == nil || *w.Show)
	}
	flash := strings.Contains(model, "flash")
	if strings.HasPrefix(model, "gemini-2") {
		switch {
		case w.Off() && flash:
			c.ThinkingBudget = budget(0)
		case w.Off():
			c.ThinkingBudget = budget(128) // the least of a model that always thinks
		case w.Adaptive && w.Effort == "" && w.Budget == nil:
			c.ThinkingBudget = budget(-1)
		default:
			c.ThinkingBudget = budget(min(w.Tokens(), 24576))
		}
		return c
	}
	switch word := w.Word(); word {
	case "none", "minimal":
		c.ThinkingLevel = "low"
		if flash {
			c.ThinkingLevel = "minimal"
		}
	case "low", "medium", "high":
		c.ThinkingLevel = word
	case "xhigh", "max":
		c.ThinkingLevel = "high"
	}
	return c
}
