package anthropic

import (
	"bytes"
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// request is the body of a Messages request, as far as it can be translated.
type request struct {
	Model         string        `json:"model"`
	MaxTokens     *neutral.Int  `json:"max_tokens,omitempty"`
	System        blocks        `json:"system,omitempty"`
	Messages      []turn        `json:"messages"`
	Tools         []tool        `json:"tools,omitempty"`
	ToolChoice    *toolChoice   `json:"tool_choice,omitempty"`
	StopSequences []string      `json:"stop_sequences,omitempty"`
	Temperature   json.Number   `json:"temperature,omitempty"`
	TopP          json.Number   `json:"top_p,omitempty"`
	TopK          json.Number   `json:"top_k,omitempty"`
	Thinking      *thinking     `json:"thinking,omitempty"`
	OutputConfig  *outputConfig `json:"output_config,omitempty"`
	OutputFormat  *format       `json:"output_format,omitempty"` // the older place of output_config.format
	Metadata      *metadata     `json:"metadata,omitempty"`
	Stream        bool          `json:"stream,omitempty"`

	// Read only: members that no other dialect has.
	Container  json.RawMessage `json:"container,omitempty"`
	MCPServers json.RawMessage `json:"mcp_servers,omitempty"`
}

type turn struct {
	Role    string `json:"role"`
	Content blocks `json:"content"`
}

type tool struct {
	Type         string          `json:"type,omitempty"`
	Name         string          `json:"name"`
	Description  string          `json:"description,omitempty"`
	InputSchema  json.RawMessage `json:"input_schema,omitempty"`
	Strict       *bool           `json:"strict,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

type toolChoice struct {
	Type                   string `json:"type"`
	Name                   string `json:"name,omitempty"`
	DisableParallelToolUse bool   `json:"disable_parallel_tool_use,omitempty"`
}

type thinking struct {
	Type         string      `json:"type"`
	BudgetTokens neutral.Int `json:"budget_tokens,omitempty"`
	Display      string      `json:"display,omitempty"`
}

type outputConfig struct {
	Effort string  `json:"effort,omitempty"`
	Format *format `json:"format,omitempty"`
}

type format struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema,omitempty"`
}

type metadata struct {
	UserID string `json:"user_id,omitempty"`
}

// blocks is content: in JSON a list, or a string that stands for one text block.
type blocks []block

func (b *blocks) UnmarshalJSON(raw []byte) error {
	switch neutral.First(raw) {
	case '"':
		text := neutral.Word(raw)
		*b = blocks{{Type: "text", Text: &text}}
	case '[':
		list, err := neutral.List(raw, fastBlock)
		if err != nil {
			return err
		}
		*b = list
	case 'n':
	default:
		return &dialect.RequestError{Param: "content", Offset: -1, Message: "The field content must be a string or a list of blocks."}
	}
	return nil
}

func fastBlock(raw []byte, b *block) bool {
	var input, cache, content []byte
	ok := neutral.Members(raw, func(key []byte) neutral.Member {
		switch string(key) {
		case "type":
			return neutral.Member{Text: &b.Type}
		case "text":
			return neutral.Member{Some: &b.Text}
		case "thinking":
			return neutral.Member{Some: &b.Thinking}
		case "signature":
			return neutral.Member{Text: &b.Signature}
		case "id":
			return neutral.Member{Text: &b.ID}
		case "name":
			return neutral.Member{Text: &b.Name}
		case "tool_use_id":
			return neutral.Member{Text: &b.ToolUseID}
		case "input":
			return neutral.Member{Raw: &input}
		case "cache_control":
			return neutral.Member{Raw: &cache}
		case "content":
			return neutral.Member{Raw: &content}
		}
		return neutral.Member{}
	})
	b.Input, b.CacheControl = bytes.Clone(input), bytes.Clone(cache)
	return ok && (content == nil || b.Content.UnmarshalJSON(content) == nil)
}

// block is any content block.
type block struct {
	Type         string          `json:"type"`
	Text         *string         `json:"text,omitempty"`
	Thinking     *string         `json:"thinking,omitempty"`
	Signature    string          `json:"signature,omitempty"`
	Data         string          `json:"data,omitempty"`
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name,omitempty"`
	Input        json.RawMessage `json:"input,omitempty"`
	ToolUseID    string          `json:"tool_use_id,omitempty"`
	Content      blocks          `json:"content,omitempty"`
	IsError      bool            `json:"is_error,omitempty"`
	Source       *source         `json:"source,omitempty"`
	Title        string          `json:"title,omitempty"`
	Context      string          `json:"context,omitempty"`
	Citations    json.RawMessage `json:"citations,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

type source struct {
	Type      string          `json:"type"`
	MediaType string          `json:"media_type,omitempty"`
	Data      string          `json:"data,omitempty"`
	URL       string          `json:"url,omitempty"`
	FileID    string          `json:"file_id,omitempty"`
	Content   json.RawMessage `json:"content,omitempty"`
	// Name is the whole source of a search result, which is a string.
	Name string `json:"-"`
}

func (s *source) UnmarshalJSON(raw []byte) error {
	if neutral.First(raw) == '"' {
		return json.Unmarshal(raw, &s.Name)
	}
	type plain source
	return json.Unmarshal(raw, (*plain)(s))
}

// usage is Anthropic's count. Members are pointers since a stream's later events leave out
// what they do not correct.
type usage struct {
	Input       *int64 `json:"input_tokens"`
	CacheWrite  *int64 `json:"cache_creation_input_tokens,omitempty"`
	CacheRead   *int64 `json:"cache_read_input_tokens,omitempty"`
	Output      *int64 `json:"output_tokens"`
	OutputParts *struct {
		Thinking *int64 `json:"thinking_tokens,omitempty"`
	} `json:"output_tokens_details,omitempty"`
}

// merge takes over what a later event reports.
func (u *usage) merge(v *usage) {
	if v == nil {
		return
	}
	for _, p := range [...]struct{ to, from **int64 }{
		{&u.Input, &v.Input}, {&u.CacheWrite, &v.CacheWrite}, {&u.CacheRead, &v.CacheRead}, {&u.Output, &v.Output},
	} {
		if *p.from != nil {
			*p.to = *p.from
		}
	}
	if v.OutputParts != nil {
		u.OutputParts = v.OutputParts
	}
}

// neutral returns the count in our way: Anthropic leaves cached tokens out of the input.
func (u *usage) neutral() dialect.Usage {
	out := dialect.Usage{CacheRead: value(u.CacheRead), CacheWrite: value(u.CacheWrite), Output: value(u.Output),
		Known: u.Input != nil || u.Output != nil}
	out.Input = value(u.Input) + out.CacheRead + out.CacheWrite
	if u.OutputParts != nil {
		out.Reasoning = value(u.OutputParts.Thinking)
	}
	return out
}

func value(n *int64) int64 {
	if n == nil || *n < 0 {
		return 0
	}
	return *n
}

// wireUsage puts a count into Anthropic's members.
func wireUsage(u dialect.Usage) *usage {
	fresh := max(u.Input-u.CacheRead-u.CacheWrite, 0)
	out := &usage{Input: &fresh, Output: &u.Output, CacheRead: &u.CacheRead, CacheWrite: &u.CacheWrite}
	if u.Reasoning > 0 {
		out.OutputParts = &struct {
			Thinking *int64 `json:"thinking_tokens,omitempty"`
		}{&u.Reasoning}
	}
	return out
}

// answer is the body of a complete answer.
type answer struct {
	ID           string  `json:"id"`
	Type         string  `json:"type"`
	Role         string  `json:"role"`
	Model        string  `json:"model"`
	Content      blocks  `json:"content"`
	StopReason   *string `json:"stop_reason"`
	StopSequence *string `json:"stop_sequence"`
	Usage        *usage  `json:"usage"`
}
