package gemini

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// ReadNeutral reads a request or the request for its count.
func (Dialect) ReadNeutral(asked *dialect.Request) (*neutral.Request, error) {
	var in countRequest
	if err := neutral.DecodeRequest(Camel(asked.Body), &in); err != nil {
		return nil, err
	}
	if asked.Operation == dialect.OpCount && in.GenerateContentRequest != nil {
		in.request = in.GenerateContentRequest.request
	}
	out := &neutral.Request{Operation: asked.Operation, Model: asked.Model, Stream: asked.Stream}
	r := reader{out: out, open: map[string][]string{}}
	if in.SystemInstruction != nil {
		out.System = r.parts("systemInstruction", in.SystemInstruction.Parts)
	}
	out.Turns = make([]neutral.Turn, 0, len(in.Contents))
	for i := range in.Contents {
		c := &in.Contents[i]
		t := neutral.Turn{Parts: r.parts(fmt.Sprintf("contents[%d]", i), c.Parts)}
		switch c.Role {
		case "model":
			t.Role = neutral.RoleAssistant
		case "system":
			t.Role = neutral.RoleSystem
		case "", "user", "function":
		default:
			return nil, &dialect.RequestError{Param: fmt.Sprintf("contents[%d].role", i), Offset: -1,
				Message: fmt.Sprintf("The field contents[%d].role must be user or model.", i)}
		}
		out.Turns = append(out.Turns, t)
	}
	readTools(out, &in.request)
	if in.GenerationConfig != nil {
		readConfig(out, in.GenerationConfig)
	}
	if in.CachedContent != "" {
		native(out, "cachedContent", "names a stored prompt, which only Google's own API has")
	}
	return out, nil
}

func native(r *neutral.Request, field, reason string) {
	r.Native = append(r.Native, neutral.UnsupportedError{Field: field, Reason: reason})
}

// reader gives calls without an id one that their results can be found by.
type reader struct {
	out  *neutral.Request
	made int
	open map[string][]string // ids of calls without a result, by the tool's name
}

func (r *reader) parts(at string, list []part) []neutral.Part {
	if len(list) == 0 {
		return nil
	}
	out := make([]neutral.Part, 0, len(list))
	for i := range list {
		p := &list[i]
		field := fmt.Sprintf("%s.parts[%d]", at, i)
		switch {
		case p.FunctionCall != nil:
			if p.ThoughtSignature != "" && p.ThoughtSignature != dummy {
				out = append(out, neutral.Part{Kind: neutral.PartReasoning, Seal: neutral.Unwrap(name, p.ThoughtSignature)})
			}
			f := p.FunctionCall
			if f.ID == "" {
				r.made++
				f.ID = "call_" + strconv.Itoa(r.made)
			}
			r.open[f.Name] = append(r.open[f.Name], f.ID)
			out = append(out, neutral.Part{Kind: neutral.PartCall, Call: neutral.Call{ID: f.ID, Name: f.Name, Arguments: string(neutral.Some(f.Args))}})
		case p.FunctionResponse != nil:
			out = append(out, r.result(field, p.FunctionResponse))
		case p.InlineData != nil:
			b := p.InlineData
			r.video(field+".inlineData", b.MimeType)
			m := neutral.Media{Type: b.MimeType, Data: standard(b.Data), Name: b.DisplayName}
			m.Unpack()
			out = append(out, neutral.Part{Kind: mediaKind(b.MimeType), Media: m})
		case p.FileData != nil:
			f := p.FileData
			r.video(field+".fileData", f.MimeType)
			if !strings.HasPrefix(f.FileURI, "http") || strings.Contains(f.FileURI, "generativelanguage.googleapis.com") {
				native(r.out, field+".fileData", "names a file that only Google's own API can open")
			}
			out = append(out, neutral.Part{Kind: mediaKind(f.MimeType), Media: neutral.Media{Type: f.MimeType, URL: f.FileURI}})
		case p.Text != nil && p.Thought:
			out = thought(out, *p.Text, p.ThoughtSignature)
		case p.Text != nil:
			out = append(out, neutral.Texts(*p.Text)...)
		case neutral.Some(p.ExecutableCode) != nil || neutral.Some(p.CodeExecutionResult) != nil:
			native(r.out, field, "is code that Google's own API has run")
		}
	}
	return out
}

// thought appends to the thought before, up to the part that has its signature.
func thought(out []neutral.Part, text, signature string) []neutral.Part {
	seal := neutral.Unwrap(name, signature)
	if n := len(out); n > 0 && out[n-1].Kind == neutral.PartReasoning && out[n-1].Seal.Value == "" {
		out[n-1].Text += text
		out[n-1].Seal = seal
		return out
	}
	return append(out, neutral.Part{Kind: neutral.PartReasoning, Text: text, Seal: seal})
}

// video notes a moving picture, which no other dialect has a place for.
func (r *reader) video(field, mime string) {
	if strings.HasPrefix(mime, "video/") {
		native(r.out, field, "is a video, which only Google's own API takes")
	}
}

// standard returns base64 in the alphabet of the other dialects, with padding. Google's takes the one for
// addresses too, and its Python client sends that.
func standard(data string) string {
	if strings.ContainsAny(data, "-_") {
		data = strings.NewReplacer("-", "+", "_", "/").Replace(data)
	}
	if n := len(data) % 4; n > 1 {
		data += "=="[n-2:]
	}
	return data
}

func mediaKind(mime string) neutral.PartKind {
	switch {
	case strings.HasPrefix(mime, "image/"):
		return neutral.PartImage
	case strings.HasPrefix(mime, "audio/"):
		return neutral.PartAudio
	}
	return neutral.PartFile
}

func (r *reader) result(field string, f *functionResponse) neutral.Part {
	id := f.ID
	list := r.open[f.Name]
	for i, open := range list {
		if id == "" || id == open {
			id = open
			r.open[f.Name] = append(list[:i:i], list[i+1:]...)
			break
		}
	}
	p := neutral.Part{Kind: neutral.PartResult, Result: neutral.Result{ID: id, Name: f.Name}}
	text, failed := responseText(f.Response)
	p.Result.Error = failed
	p.Result.Parts = append(neutral.Texts(text), r.parts(field+".functionResponse", f.Parts)...)
	return p
}

// responseText reads what a function gave back: a lone text as it is, any other object as JSON.
func responseText(raw json.RawMessage) (text string, failed bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil && len(members) == 1 {
		for _, key := range []string{"result", "output", "error"} {
			if s, ok := word(members[key]); ok {
				return s, key == "error"
			}
		}
	}
	return strings.TrimSpace(string(neutral.Some(raw))), false
}

func readTools(out *neutral.Request, in *request) {
	for i := range in.Tools {
		t := &in.Tools[i]
		for _, f := range t.FunctionDeclarations {
			schema := neutral.Some(f.ParametersJSONSchema)
			if own := neutral.Some(f.Parameters); schema == nil && own != nil {
				schema = jsonSchema(own)
			}
			out.Tools = append(out.Tools, neutral.Tool{Name: f.Name, Description: f.Description, Schema: schema})
		}
		for _, own := range []struct {
			name string
			raw  json.RawMessage
		}{{"googleSearch", t.GoogleSearch}, {"googleSearchRetrieval", t.GoogleSearchRetrieval}, {"codeExecution", t.CodeExecution},
			{"urlContext", t.URLContext}, {"fileSearch", t.FileSearch}, {"googleMaps", t.GoogleMaps}, {"computerUse", t.ComputerUse}} {
			if neutral.Some(own.raw) != nil {
				native(out, fmt.Sprintf("tools[%d].%s", i, own.name), "is a tool that only Google's own API has")
			}
		}
	}
	if in.ToolConfig == nil || in.ToolConfig.FunctionCallingConfig == nil {
		return
	}
	c := in.ToolConfig.FunctionCallingConfig
	switch strings.ToUpper(c.Mode) {
	case "AUTO":
		out.Choice.Mode = neutral.ChoiceAuto
	case "VALIDATED":
		out.Choice = neutral.Choice{Mode: neutral.ChoiceAuto, Names: c.AllowedFunctionNames}
	case "NONE":
		out.Choice.Mode = neutral.ChoiceNone
	case "ANY":
		out.Choice = neutral.Choice{Mode: neutral.ChoiceAny, Names: c.AllowedFunctionNames}
	}
}

func readConfig(out *neutral.Request, c *generationConfig) {
	out.MaxTokens, out.Temperature, out.TopP, out.TopK = (*int64)(c.MaxOutputTokens), c.Temperature, c.TopP, c.TopK
	out.Seed, out.Frequency, out.Presence, out.Stop = c.Seed, c.FrequencyPenalty, c.PresencePenalty, c.StopSequences
	schema := neutral.Some(c.ResponseJSONSchema)
	if own := neutral.Some(c.ResponseSchema); schema == nil && own != nil {
		schema = jsonSchema(own)
	}
	switch {
	case c.ResponseMimeType != "" && c.ResponseMimeType != "text/plain" && c.ResponseMimeType != "application/json":
		native(out, "generationConfig.responseMimeType", fmt.Sprintf("asks for the form %s, which only Google's own API gives", c.ResponseMimeType))
	case schema != nil:
		out.Output = neutral.Output{Kind: neutral.OutputSchema, Schema: schema}
	case c.ResponseMimeType == "application/json":
		out.Output.Kind = neutral.OutputJSON
	}
	if t := c.ThinkingConfig; t != nil {
		r := &out.Reasoning
		r.Show, r.Effort = t.IncludeThoughts, strings.ToLower(t.ThinkingLevel)
		switch {
		case r.Effort == "thinking_level_unspecified":
			r.Effort = ""
		case t.ThinkingBudget == nil:
		case *t.ThinkingBudget < 0:
			r.Adaptive = true
		default:
			r.Budget = (*int64)(t.ThinkingBudget)
		}
	}
	if n, err := c.CandidateCount.Float64(); err == nil && n != 1 {
		native(out, "generationConfig.candidateCount", "asks for several answers at once")
	}
	for _, m := range c.ResponseModalities {
		if strings.ToUpper(m) != "TEXT" {
			native(out, "generationConfig.responseModalities", fmt.Sprintf("asks for %s, which only Google's own API gives", m))
		}
	}
	if c.ResponseLogprobs {
		native(out, "generationConfig.responseLogprobs", "can be met by Google's own API only")
	}
	if neutral.Some(c.SpeechConfig) != nil {
		native(out, "generationConfig.speechConfig", "can be met by Google's own API only")
	}
}
