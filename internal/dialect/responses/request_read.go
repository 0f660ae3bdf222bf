package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
)

// ReadNeutral reads a request or the request for its count.
func (Dialect) ReadNeutral(asked *dialect.Request) (*neutral.Request, error) {
	var in request
	if err := neutral.DecodeRequest(asked.Body, &in); err != nil {
		return nil, err
	}
	if in.Input == nil && asked.HasMessages {
		return nil, &dialect.RequestError{Param: "messages", Offset: -1, Message: "The field messages is none of a Responses request: send it as input, or send the request to /v1/chat/completions."}
	}
	out := &neutral.Request{Operation: asked.Operation, Model: in.Model, Stream: in.Stream, MaxTokens: (*int64)(in.MaxOutputTokens),
		Temperature: in.Temperature, TopP: in.TopP, User: in.User, Key: in.PromptCacheKey}
	if out.User == "" {
		out.User = in.SafetyIdentifier
	}
	out.Echo = echoed(asked.Body)
	r := reader{out: out, named: map[string]string{}}
	if err := r.instructions(in.Instructions); err != nil {
		return nil, err
	}
	for i := range in.Input {
		if err := r.item(i, &in.Input[i]); err != nil {
			return nil, err
		}
	}
	readTools(out, &in)
	readText(out, in.Text)
	if in.Reasoning != nil {
		out.Reasoning.Effort = in.Reasoning.Effort
		if s := in.Reasoning.Summary; s != "" {
			out.Reasoning.Show = neutral.True(s != "none")
		}
	}
	if slices.Contains(in.Include, "message.output_text.logprobs") {
		native(out, "include", "asks for log probabilities, which can be met by OpenAI's own API only")
	}
	if in.PreviousResponseID != "" {
		native(out, "previous_response_id", "names a stored response, which only the upstream that made it has")
	}
	for _, f := range []struct {
		name   string
		raw    json.RawMessage
		reason string
	}{
		{"conversation", in.Conversation, "names a stored conversation, which only OpenAI's own API has"},
		{"prompt", in.Prompt, "names a stored prompt, which only OpenAI's own API has"},
		{"background", in.Background, "asks for an answer in the background, which only OpenAI's own API gives"},
		{"top_logprobs", in.TopLogprobs, "can be met by OpenAI's own API only"},
	} {
		if neutral.Given(f.raw) {
			native(out, f.name, f.reason)
		}
	}
	return out, nil
}

// echoed copies what a response repeats of its request.
func echoed(body []byte) map[string]json.RawMessage {
	out := map[string]json.RawMessage{}
	s := jsonscan.New(body)
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := string(s.Key()); key {
		case "instructions", "max_output_tokens", "max_tool_calls", "parallel_tool_calls", "prompt_cache_key", "reasoning",
			"safety_identifier", "temperature", "text", "tool_choice", "tools", "top_p", "user", "metadata":
			s.Peek()
			out[key] = bytes.Clone(s.Skip())
		default:
			s.Skip()
		}
	}
	return out
}

func native(r *neutral.Request, field, reason string) {
	r.Native = append(r.Native, neutral.UnsupportedError{Field: field, Reason: reason})
}

// reader builds turns from items. What the model has said and done until a result or a word of
// somebody else comes is one turn.
type reader struct {
	out   *neutral.Request
	named map[string]string // names of tools by the ids of their calls
	run   bool              // the last turn is of items that may be joined
}

func (r *reader) instructions(raw json.RawMessage) error {
	if !neutral.Given(raw) {
		return nil
	}
	var list items
	if err := json.Unmarshal(raw, &list); err != nil {
		return &dialect.RequestError{Param: "instructions", Offset: -1, Message: "The field instructions must be a string."}
	}
	for i := range list {
		r.out.System = append(r.out.System, r.pieces("instructions", list[i].Content)...)
	}
	return nil
}

// add appends parts to the last turn when that is of the same role and both may be joined.
func (r *reader) add(role neutral.Role, join bool, parts ...neutral.Part) {
	turns := r.out.Turns
	if n := len(turns); join && r.run && n > 0 && turns[n-1].Role == role {
		turns[n-1].Parts = append(turns[n-1].Parts, parts...)
		return
	}
	r.run = join
	r.out.Turns = append(r.out.Turns, neutral.Turn{Role: role, Parts: parts})
}

func (r *reader) item(index int, it *item) error {
	at := fmt.Sprintf("input[%d]", index)
	switch it.Type {
	case "", "message":
		return r.message(at, it)
	case "function_call", "custom_tool_call":
		r.named[it.CallID] = it.Name
		r.add(neutral.RoleAssistant, true, neutral.Part{Kind: neutral.PartCall, Call: readCall(it)})
	case "function_call_output", "custom_tool_call_output":
		r.add(neutral.RoleUser, true, neutral.Part{Kind: neutral.PartResult,
			Result: neutral.Result{ID: it.CallID, Name: r.named[it.CallID], Parts: r.pieces(at+".output", it.Output)}})
	case "reasoning":
		p := neutral.Part{Kind: neutral.PartReasoning, Seal: unwrap(it)}
		if it.Summary != nil {
			p.Text = summaryText(*it.Summary)
		}
		r.add(neutral.RoleAssistant, true, p)
	case "web_search_call": // what it found is in the message that follows
	default:
		native(r.out, at, fmt.Sprintf("is an item of type %q, which only OpenAI's own API knows", it.Type))
	}
	return nil
}

// readCall reads the call of a function or of a custom tool.
func readCall(it *item) neutral.Call {
	out := neutral.Call{ID: it.CallID, Name: it.Name, Custom: it.Type == "custom_tool_call"}
	switch {
	case out.Custom && it.Input != nil:
		out.Arguments = neutral.FreeArguments(*it.Input)
	case out.Custom:
		out.Arguments = neutral.FreeArguments("")
	case it.Arguments != nil:
		out.Arguments = *it.Arguments
	}
	return out
}

// unwrap reads a thought's seal. OpenAI's own belongs to the item's id.
func unwrap(it *item) neutral.Seal {
	s := neutral.Unwrap(name, it.EncryptedContent)
	if s.Origin == name {
		s.Value = it.ID + "|" + s.Value
	}
	return s
}

func summaryText(list []piece) string {
	var texts []string
	for i := range list {
		texts = append(texts, list[i].text())
	}
	return strings.Join(texts, "\n\n")
}

func (r *reader) message(at string, it *item) error {
	parts := r.pieces(at+".content", it.Content)
	switch it.Role {
	case "system", "developer":
		if len(r.out.Turns) == 0 {
			r.out.System = append(r.out.System, parts...)
			return nil
		}
		r.add(neutral.RoleSystem, false, parts...)
	case "user":
		r.add(neutral.RoleUser, false, parts...)
	case "assistant":
		r.add(neutral.RoleAssistant, true, parts...)
	default:
		return &dialect.RequestError{Param: at + ".role", Offset: -1, Message: "The field " + at + ".role must be user, assistant, system or developer."}
	}
	return nil
}

func (r *reader) pieces(at string, list contents) []neutral.Part {
	parts := make([]neutral.Part, 0, len(list))
	for i := range list {
		c := &list[i]
		p := neutral.Part{}
		field := fmt.Sprintf("%s[%d]", at, i)
		switch c.Type {
		case "input_text", "output_text", "text", "summary_text":
			p.Text = c.text()
		case "refusal":
			p.Kind = neutral.PartRefusal
			if c.Refusal != nil {
				p.Text = *c.Refusal
			}
		case "input_image":
			p.Kind = neutral.PartImage
			p.Media.Detail = c.Detail
			p.Media.ReadURL(c.ImageURL)
		case "input_file":
			p.Kind = neutral.PartFile
			p.Media.Name = c.Filename
			if p.Media.ReadURL(c.FileData); p.Media.URL != "" { // base64 without the prefix
				p.Media.Data = p.Media.URL
			}
			p.Media.URL = c.FileURL
			p.Media.Unpack()
		case "input_audio":
			if c.InputAudio == nil {
				continue
			}
			p.Kind = neutral.PartAudio
			p.Media.Type, p.Media.Data = "audio/"+c.InputAudio.Format, c.InputAudio.Data
		default:
			native(r.out, field, fmt.Sprintf("is a part of type %q, which only OpenAI's own API knows", c.Type))
			continue
		}
		if c.FileID != "" {
			native(r.out, field+".file_id", "names a file that only its own provider can open")
		}
		parts = append(parts, p)
	}
	return parts
}

func readText(out *neutral.Request, t *textConfig) {
	if t == nil {
		return
	}
	out.Verbosity = t.Verbosity
	if t.Format == nil {
		return
	}
	switch f := t.Format; f.Type {
	case "", "text":
	case "json_object":
		out.Output.Kind = neutral.OutputJSON
	case "json_schema":
		out.Output = neutral.Output{Kind: neutral.OutputSchema, Name: f.Name, Description: f.Description, Schema: f.Schema, Strict: f.Strict}
	default:
		native(out, "text.format", fmt.Sprintf("asks for the form %q, which only OpenAI's own API knows", f.Type))
	}
}
