package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// ReadNeutral reads a chat request. Legacy completions are no conversation and cannot be
// translated.
func (Dialect) ReadNeutral(asked *dialect.Request) (*neutral.Request, error) {
	out := &neutral.Request{Operation: asked.Operation}
	var in chatRequest
	if err := neutral.DecodeRequest(asked.Body, &in); err != nil {
		return nil, err
	}
	if !strings.HasSuffix(strings.TrimRight(asked.Path, "/"), "/chat/completions") && in.Messages == nil {
		native(out, "prompt", "is not a conversation; send messages to /v1/chat/completions")
		return out, nil
	}
	*out = neutral.Request{Operation: asked.Operation, Model: in.Model, Stream: in.Stream, IncludeUsage: asked.IncludeUsage,
		MaxTokens: (*int64)(in.MaxCompletionTokens), Temperature: in.Temperature, TopP: in.TopP, TopK: in.TopK, Seed: in.Seed,
		Frequency: in.FrequencyPenalty, Presence: in.PresencePenalty, Stop: in.Stop,
		User: cmp.Or(in.User, in.SafetyIdentifier), Key: in.PromptCacheKey, Verbosity: in.Verbosity}
	if out.MaxTokens == nil {
		out.MaxTokens = (*int64)(in.MaxTokens)
	}
	if err := readMessages(out, in.Messages); err != nil {
		return nil, err
	}
	readTools(out, &in)
	readFormat(out, in.ResponseFormat)
	out.Reasoning.Effort = in.ReasoningEffort
	if r := in.Reasoning; r != nil && in.ReasoningEffort == "" {
		out.Reasoning.Effort, out.Reasoning.Budget = r.Effort, (*int64)(r.MaxTokens)
		if r.Exclude {
			out.Reasoning.Show = neutral.True(false)
		}
	}
	readNative(out, &in)
	return out, nil
}

func native(r *neutral.Request, field, reason string) {
	r.Native = append(r.Native, neutral.UnsupportedError{Field: field, Reason: reason})
}

// readNative notes what only this dialect can do.
func readNative(out *neutral.Request, in *chatRequest) {
	if n, err := neutral.Number(in.N).Float64(); err == nil && n != 1 {
		native(out, "n", "asks for several answers at once, which only OpenAI's chat API gives")
	}
	for _, f := range []struct {
		name string
		raw  json.RawMessage
	}{{"logprobs", in.Logprobs}, {"top_logprobs", in.TopLogprobs}, {"logit_bias", in.LogitBias}, {"audio", in.Audio}} {
		if neutral.Given(f.raw) {
			native(out, f.name, "can be met by OpenAI's chat API only")
		}
	}
	if neutral.First(in.WebSearchOptions) == '{' { // without a member it asks for a search too
		native(out, "web_search_options", "can be met by OpenAI's chat API only")
	}
	for _, m := range in.Modalities {
		if m != "text" {
			native(out, "modalities", fmt.Sprintf("asks for %s, which only OpenAI's chat API gives", m))
		}
	}
}

func readMessages(out *neutral.Request, list []message) error {
	named := map[string]string{} // names of tools by the ids of their calls
	out.Turns = make([]neutral.Turn, 0, len(list))
	for i := range list {
		m := &list[i]
		at := fmt.Sprintf("messages[%d]", i)
		t := neutral.Turn{}
		switch m.Role {
		case "system", "developer":
			t.Role = neutral.RoleSystem
			t.Parts = readContent(out, at, m)
			if len(out.Turns) == 0 {
				out.System = append(out.System, t.Parts...)
				continue
			}
		case "user":
			t.Parts = readContent(out, at, m)
		case "assistant":
			t.Role = neutral.RoleAssistant
			readAssistant(out, at, m, &t, named)
		case "tool", "function":
			id := m.ToolCallID
			if m.Role == "function" {
				id = cmp.Or(named[older+m.Name], m.Name)
			}
			t.Parts = []neutral.Part{{Kind: neutral.PartResult, Cache: neutral.Some(m.CacheControl),
				Result: neutral.Result{ID: id, Name: named[id], Parts: readContent(out, at, m)}}}
		default:
			return &dialect.RequestError{Param: at + ".role", Offset: -1, Message: "The field " + at + ".role must be system, developer, user, assistant or tool."}
		}
		out.Turns = append(out.Turns, t)
	}
	return nil
}

// older stands before the name of a function in the names: calls of the older kind have no ids, and the
// result of one is the result of the function's last call.
const older = "function "

func readAssistant(out *neutral.Request, at string, m *message, t *neutral.Turn, named map[string]string) {
	t.Parts = readContent(out, at, m)
	if neutral.Given(m.Audio) {
		native(out, at+".audio", "names a sound of an earlier answer, which only its own provider has")
	}
	if m.Refusal != "" {
		t.Parts = append(t.Parts, neutral.Part{Kind: neutral.PartRefusal, Text: m.Refusal})
	}
	if c := m.FunctionCall; c != nil {
		id := fmt.Sprintf("%s_%d", c.Name, len(out.Turns))
		named[older+c.Name], named[id] = id, c.Name
		t.Parts = append(t.Parts, neutral.Part{Kind: neutral.PartCall, Call: neutral.Call{ID: id, Name: c.Name, Arguments: string(c.Arguments)}})
	}
	for i, c := range m.ToolCalls {
		if own := c.Custom; own != nil {
			named[c.ID] = own.Name
			t.Parts = append(t.Parts, neutral.Part{Kind: neutral.PartCall,
				Call: neutral.Call{ID: c.ID, Name: own.Name, Arguments: neutral.FreeArguments(own.Input), Custom: true}})
			continue
		}
		if c.Function == nil {
			native(out, fmt.Sprintf("%s.tool_calls[%d]", at, i), "is no call of a function, which only OpenAI's own API knows")
			continue
		}
		if x := c.ExtraContent; x != nil && x.Google.ThoughtSignature != "" {
			t.Parts = append(t.Parts, neutral.Part{Kind: neutral.PartReasoning, Seal: neutral.Unwrap("gemini", x.Google.ThoughtSignature)})
		}
		named[c.ID] = c.Function.Name
		t.Parts = append(t.Parts, neutral.Part{Kind: neutral.PartCall, Call: neutral.Call{ID: c.ID, Name: c.Function.Name, Arguments: string(c.Function.Arguments)}})
	}
}

func readContent(out *neutral.Request, at string, m *message) []neutral.Part {
	if m.Content == nil {
		return nil
	}
	parts := make([]neutral.Part, 0, len(m.Content.parts)+len(m.ToolCalls))
	for i := range m.Content.parts {
		c := &m.Content.parts[i]
		p := neutral.Part{Cache: neutral.Some(c.CacheControl)}
		field := fmt.Sprintf("%s.content[%d]", at, i)
		switch c.Type {
		case "text", "input_text", "output_text", "":
			p.Text = c.Text
		case "refusal":
			p.Kind, p.Text = neutral.PartRefusal, c.Refusal
		case "image_url":
			if c.ImageURL == nil {
				continue
			}
			p.Kind = neutral.PartImage
			p.Media.Detail = c.ImageURL.Detail
			p.Media.ReadURL(c.ImageURL.URL)
		case "file":
			if c.File == nil {
				continue
			}
			if c.File.FileID != "" {
				native(out, field+".file.file_id", "names a file that only its own provider can open")
			}
			p.Kind = neutral.PartFile
			p.Media.Name = c.File.Filename
			p.Media.ReadURL(c.File.FileData)
			if p.Media.URL != "" { // base64 without the prefix
				p.Media.Data, p.Media.URL = p.Media.URL, ""
			}
			p.Media.Unpack()
		case "input_audio":
			if c.InputAudio == nil {
				continue
			}
			p.Kind = neutral.PartAudio
			p.Media.Type, p.Media.Data = "audio/"+c.InputAudio.Format, c.InputAudio.Data
		case "thinking", "reasoning":
			continue
		default:
			native(out, field, fmt.Sprintf("is a part of type %q, which only its own dialect knows", c.Type))
			continue
		}
		parts = append(parts, p)
	}
	if cache := neutral.Some(m.CacheControl); cache != nil && len(parts) > 0 {
		parts[len(parts)-1].Cache = cache
	}
	return parts
}

func readTools(out *neutral.Request, in *chatRequest) {
	for i, t := range in.Tools {
		if c := t.Custom; c != nil {
			own := neutral.Tool{Name: c.Name, Description: c.Description, Cache: neutral.Some(t.CacheControl), Custom: &neutral.Custom{}}
			if c.Format != nil {
				own.Custom.Syntax, own.Custom.Definition = c.Format.Grammar.Syntax, c.Format.Grammar.Definition
			}
			out.Tools = append(out.Tools, own)
			continue
		}
		if t.Function == nil {
			native(out, fmt.Sprintf("tools[%d]", i), fmt.Sprintf("is a tool of type %q, which only OpenAI's own API knows", t.Type))
			continue
		}
		out.Tools = append(out.Tools, readFunction(t.Function, t.CacheControl))
	}
	for i := range in.Functions {
		out.Tools = append(out.Tools, readFunction(&in.Functions[i], nil))
	}
	out.Functions = len(in.Functions) > 0 && len(in.Tools) == 0
	out.Sequential = out.Functions || in.ParallelToolCalls != nil && !*in.ParallelToolCalls
	raw := neutral.Some(in.ToolChoice)
	if raw == nil {
		raw = in.FunctionCall
	}
	out.Choice = readChoice(raw)
}

func readFunction(f *function, cache json.RawMessage) neutral.Tool {
	return neutral.Tool{Name: f.Name, Description: f.Description, Schema: neutral.Some(f.Parameters), Strict: f.Strict, Cache: neutral.Some(cache)}
}

// chosen names a tool, in one of three places.
type chosen struct {
	Name             string
	Function, Custom struct{ Name string }
}

func (c *chosen) name() string { return cmp.Or(c.Function.Name, c.Custom.Name, c.Name) }

// readChoice reads tool_choice: a word, a function, or a list of allowed ones.
func readChoice(raw json.RawMessage) neutral.Choice {
	var c struct {
		Type string
		chosen
		AllowedTools struct {
			Mode  string
			Tools []chosen
		} `json:"allowed_tools"`
	}
	switch neutral.First(raw) {
	case '"':
		var out neutral.Choice
		out.ReadWord(neutral.Word(raw))
		return out
	case '{':
		if neutral.Decode(raw, &c) != nil {
			break
		}
		out := neutral.Choice{Mode: neutral.ChoiceAny}
		if c.Type == "allowed_tools" {
			if c.AllowedTools.Mode == "auto" {
				out.Mode = neutral.ChoiceAuto
			}
			for _, t := range c.AllowedTools.Tools {
				out.Names = append(out.Names, t.name())
			}
			return out
		}
		if name := c.name(); name != "" {
			out.Names = []string{name}
		}
		return out
	}
	return neutral.Choice{}
}

func readFormat(out *neutral.Request, f *responseFormat) {
	if f == nil {
		return
	}
	switch f.Type {
	case "", "text":
	case "json_object":
		out.Output.Kind = neutral.OutputJSON
	case "json_schema":
		out.Output.Kind = neutral.OutputSchema
		if s := f.JSONSchema; s != nil {
			out.Output.Name, out.Output.Description, out.Output.Schema, out.Output.Strict = s.Name, s.Description, s.Schema, s.Strict
		}
	default:
		native(out, "response_format", fmt.Sprintf("asks for the form %q, which only its own dialect knows", f.Type))
	}
}
