package responses

import (
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// request is the body of a request, as far as it can be translated.
type request struct {
	Model             string          `json:"model"`
	Input             items           `json:"input"`
	Instructions      json.RawMessage `json:"instructions,omitempty"`
	Stream            bool            `json:"stream,omitempty"`
	Store             *bool           `json:"store,omitempty"`
	Include           []string        `json:"include,omitempty"`
	MaxOutputTokens   *neutral.Int    `json:"max_output_tokens,omitempty"`
	Temperature       json.Number     `json:"temperature,omitempty"`
	TopP              json.Number     `json:"top_p,omitempty"`
	Tools             []tool          `json:"tools,omitempty"`
	ToolChoice        json.RawMessage `json:"tool_choice,omitempty"`
	ParallelToolCalls *bool           `json:"parallel_tool_calls,omitempty"`
	Text              *textConfig     `json:"text,omitempty"`
	Reasoning         *reasoning      `json:"reasoning,omitempty"`
	User              string          `json:"user,omitempty"`
	SafetyIdentifier  string          `json:"safety_identifier,omitempty"`
	PromptCacheKey    string          `json:"prompt_cache_key,omitempty"`

	// Read only: members that no other dialect has.
	PreviousResponseID string          `json:"previous_response_id,omitempty"`
	Conversation       json.RawMessage `json:"conversation,omitempty"`
	Prompt             json.RawMessage `json:"prompt,omitempty"`
	Background         json.RawMessage `json:"background,omitempty"`
	TopLogprobs        json.RawMessage `json:"top_logprobs,omitempty"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
	Format      *inputFormat    `json:"format,omitempty"` // of a custom tool
}

// inputFormat is what the text of a custom tool's call looks like.
type inputFormat struct {
	Type       string `json:"type"`
	Syntax     string `json:"syntax,omitempty"`
	Definition string `json:"definition,omitempty"`
}

type textConfig struct {
	Format    *format `json:"format,omitempty"`
	Verbosity string  `json:"verbosity,omitempty"`
}

type format struct {
	Type        string          `json:"type"`
	Name        string          `json:"name,omitempty"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

type reasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

// items is input: in JSON a list, or a string that stands for one message of the user.
type items []item

func (l *items) UnmarshalJSON(raw []byte) error {
	switch neutral.First(raw) {
	case '"':
		text := neutral.Word(raw)
		*l = items{{Type: "message", Role: "user", Content: contents{{Type: "input_text", Text: &text}}}}
	case '[':
		list, err := neutral.List(raw, fastItem)
		if err != nil {
			return err
		}
		*l = list
	case 'n':
	default:
		return &dialect.RequestError{Param: "input", Offset: -1, Message: "The field input must be a string or a list of items."}
	}
	return nil
}

// item is an item of the input or the output.
type item struct {
	Type             string   `json:"type"`
	ID               string   `json:"id,omitempty"`
	Status           string   `json:"status,omitempty"`
	Role             string   `json:"role,omitempty"`
	Content          contents `json:"content,omitempty"`
	CallID           string   `json:"call_id,omitempty"`
	Name             string   `json:"name,omitempty"`
	Arguments        *string  `json:"arguments,omitempty"`
	Input            *string  `json:"input,omitempty"`
	Output           contents `json:"output,omitempty"`
	Summary          *[]piece `json:"summary,omitempty"`
	EncryptedContent string   `json:"encrypted_content,omitempty"`
	// Read only: a picture that the upstream has made.
	Result       string `json:"result,omitempty"`
	OutputFormat string `json:"output_format,omitempty"`
}

func fastItem(raw []byte, it *item) bool {
	var content, output []byte
	return neutral.Members(raw, func(key []byte) neutral.Member {
		switch string(key) {
		case "type":
			return neutral.Member{Text: &it.Type}
		case "id":
			return neutral.Member{Text: &it.ID}
		case "status":
			return neutral.Member{Text: &it.Status}
		case "role":
			return neutral.Member{Text: &it.Role}
		case "call_id":
			return neutral.Member{Text: &it.CallID}
		case "name":
			return neutral.Member{Text: &it.Name}
		case "arguments":
			return neutral.Member{Some: &it.Arguments}
		case "input":
			return neutral.Member{Some: &it.Input}
		case "content":
			return neutral.Member{Raw: &content}
		case "output":
			return neutral.Member{Raw: &output}
		}
		return neutral.Member{}
	}) && (content == nil || it.Content.UnmarshalJSON(content) == nil) && (output == nil || it.Output.UnmarshalJSON(output) == nil)
}

// contents is a list of pieces, in JSON also a string that stands for one text.
type contents []piece

func (c *contents) UnmarshalJSON(raw []byte) error {
	switch neutral.First(raw) {
	case '"':
		text := neutral.Word(raw)
		*c = contents{{Type: "input_text", Text: &text}}
	case '[':
		list, err := neutral.List(raw, fastPiece)
		if err != nil {
			return err
		}
		*c = list
	case 'n':
	default: // an object, as some tools give it
		text := string(raw)
		*c = contents{{Type: "input_text", Text: &text}}
	}
	return nil
}

func fastPiece(raw []byte, p *piece) bool {
	return neutral.Members(raw, func(key []byte) neutral.Member {
		switch string(key) {
		case "type":
			return neutral.Member{Text: &p.Type}
		case "text":
			return neutral.Member{Some: &p.Text}
		}
		return neutral.Member{}
	})
}

// piece is a part of a message, of a summary or of a tool's output.
type piece struct {
	Type        string          `json:"type"`
	Text        *string         `json:"text,omitempty"`
	Annotations json.RawMessage `json:"annotations,omitempty"`
	Logprobs    json.RawMessage `json:"logprobs,omitempty"`
	Refusal     *string         `json:"refusal,omitempty"`
	ImageURL    string          `json:"image_url,omitempty"`
	Detail      string          `json:"detail,omitempty"`
	FileID      string          `json:"file_id,omitempty"`
	FileData    string          `json:"file_data,omitempty"`
	FileURL     string          `json:"file_url,omitempty"`
	Filename    string          `json:"filename,omitempty"`
	InputAudio  *wireAudio      `json:"input_audio,omitempty"`
}

type wireAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

func (p *piece) text() string {
	if p.Text == nil {
		return ""
	}
	return *p.Text
}

// usage is the count of tokens.
type usage struct {
	InputTokens        int64 `json:"input_tokens"`
	InputTokensDetails struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	} `json:"input_tokens_details"`
	OutputTokens        int64 `json:"output_tokens"`
	OutputTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
	TotalTokens int64 `json:"total_tokens"`
}

func usageOf(u dialect.Usage) *usage {
	out := &usage{InputTokens: u.Input, OutputTokens: u.Output, TotalTokens: u.Input + u.Output}
	out.InputTokensDetails.CachedTokens = u.CacheRead
	out.InputTokensDetails.CacheWriteTokens = u.CacheWrite
	out.OutputTokensDetails.ReasoningTokens = u.Reasoning
	return out
}
