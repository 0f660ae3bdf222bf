package lab

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"mime/multipart"
	"strings"
)

type endpoint uint8

const (
	chat endpoint = iota + 1
	completions
	embeddings
	other // any further POST: relayed by gateways, answered with an object
)

var endpoints = map[string]endpoint{
	"/chat/completions": chat,
	"/completions":      completions,
	"/embeddings":       embeddings,
}

func endpointOf(path string) endpoint {
	if e := endpoints[path]; e != 0 {
		return e
	}
	return other
}

// request is what the provider reads of a request; the rest is accepted unread.
type request struct {
	Model         string `json:"model"`
	Stream        bool   `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Messages            []message       `json:"messages"`
	Prompt              json.RawMessage `json:"prompt"`
	Input               json.RawMessage `json:"input"`
	Dimensions          int             `json:"dimensions"`
	MaxTokens           int             `json:"max_tokens"`
	MaxCompletionTokens int             `json:"max_completion_tokens"`
	Tools               []tool          `json:"tools"`
	ToolChoice          json.RawMessage `json:"tool_choice"`
}

type message struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
}

type tool struct {
	Function struct {
		Name       string          `json:"name"`
		Parameters json.RawMessage `json:"parameters"`
	} `json:"function"`
}

// parse reads the body; it returns the refusal for one that no service would accept.
func (x *exchange) parse(body []byte) *Error {
	refuse := func(param, message string) *Error {
		e := errInvalid(param, message)
		return &e
	}
	if kind, params, err := mime.ParseMediaType(x.r.Header.Get("Content-Type")); err == nil && kind == "multipart/form-data" {
		x.req.Model = formField(body, params["boundary"], "model")
		if x.req.Model == "" {
			return refuse("model", "You must provide a model.")
		}
		return nil
	}
	if err := json.Unmarshal(body, &x.req); err != nil {
		return refuse("", "The request body is not the JSON that this path takes: "+err.Error()+".")
	}
	switch {
	case x.req.Model == "":
		return refuse("model", "You must provide a model.")
	case x.endpoint == chat && len(x.req.Messages) == 0:
		return refuse("messages", "You must provide at least one message.")
	case x.endpoint == completions && len(x.req.Prompt) == 0:
		return refuse("prompt", "You must provide a prompt.")
	case x.endpoint == embeddings && len(x.req.Input) == 0:
		return refuse("input", "You must provide an input.")
	}
	return nil
}

// formField returns the value of a short field of a multipart form, empty if there is none.
func formField(body []byte, boundary, name string) string {
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for {
		part, err := parts.NextPart()
		if err != nil {
			return ""
		}
		if part.FormName() == name {
			value, err := io.ReadAll(io.LimitReader(part, 1024))
			if err != nil {
				return ""
			}
			return string(value)
		}
	}
}

// limit is the most pieces that the answer may have, 0 for no limit.
func (r *request) limit() int {
	if r.MaxCompletionTokens > 0 {
		return r.MaxCompletionTokens
	}
	return r.MaxTokens
}

// lastUser returns the text of the last user message, or the prompt.
func (r *request) lastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if r.Messages[i].Role == "user" {
			return text(r.Messages[i].Content)
		}
	}
	return text(r.Prompt)
}

// begun returns the beginning of the answer that the client wants continued.
func (r *request) begun() string {
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == "assistant" {
		return text(r.Messages[n-1].Content)
	}
	return ""
}

// wantedTool returns the tool that the answer has to call, nil for a text. Any tool on offer is
// called, once: after a tool's result the answer is a text.
func (r *request) wantedTool() *tool {
	if len(r.Tools) == 0 || string(r.ToolChoice) == `"none"` {
		return nil
	}
	if n := len(r.Messages); n > 0 && r.Messages[n-1].Role == "tool" {
		return nil
	}
	var choice struct {
		Function struct{ Name string }
	}
	// A choice that is a word ("auto", "required") leaves the name empty.
	if json.Unmarshal(r.ToolChoice, &choice) == nil && choice.Function.Name != "" {
		for i := range r.Tools {
			if r.Tools[i].Function.Name == choice.Function.Name {
				return &r.Tools[i]
			}
		}
	}
	return &r.Tools[0]
}

// size is a rough number of tokens in what was asked.
func (r *request) size() int {
	n := len(r.Prompt) + len(r.Input)
	for _, m := range r.Messages {
		n += len(m.Content) + 8
	}
	return n/4 + 1
}

// text reads content that is a string or a list of parts.
func text(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var parts []json.RawMessage
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var b strings.Builder
	for _, p := range parts {
		var part struct{ Text string }
		var word string
		if json.Unmarshal(p, &word) == nil {
			b.WriteString(word)
		} else if json.Unmarshal(p, &part) == nil {
			b.WriteString(part.Text)
		}
	}
	return b.String()
}
