package openai

import (
	"encoding/json"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// chatRequest is the body of a chat request, as far as it can be translated.
type chatRequest struct {
	Model               string           `json:"model"`
	Messages            []message        `json:"messages"`
	Stream              bool             `json:"stream,omitempty"`
	StreamOptions       *streamOptions   `json:"stream_options,omitempty"`
	MaxTokens           *neutral.Int     `json:"max_tokens,omitempty"`
	MaxCompletionTokens *neutral.Int     `json:"max_completion_tokens,omitempty"`
	Temperature         json.Number      `json:"temperature,omitempty"`
	TopP                json.Number      `json:"top_p,omitempty"`
	TopK                json.Number      `json:"top_k,omitempty"` // of services other than OpenAI
	Seed                json.Number      `json:"seed,omitempty"`
	FrequencyPenalty    json.Number      `json:"frequency_penalty,omitempty"`
	PresencePenalty     json.Number      `json:"presence_penalty,omitempty"`
	Stop                stop             `json:"stop,omitempty"`
	Tools               []tool           `json:"tools,omitempty"`
	ToolChoice          json.RawMessage  `json:"tool_choice,omitempty"`
	ParallelToolCalls   *bool            `json:"parallel_tool_calls,omitempty"`
	Functions           []function       `json:"functions,omitempty"`
	FunctionCall        json.RawMessage  `json:"function_call,omitempty"`
	ResponseFormat      *responseFormat  `json:"response_format,omitempty"`
	ReasoningEffort     string           `json:"reasoning_effort,omitempty"`
	Reasoning           *routedReasoning `json:"reasoning,omitempty"` // of OpenRouter
	Verbosity           string           `json:"verbosity,omitempty"`
	User                string           `json:"user,omitempty"`
	SafetyIdentifier    string           `json:"safety_identifier,omitempty"` // read only: the newer name of user
	PromptCacheKey      string           `json:"prompt_cache_key,omitempty"`

	// Read only: members that no other dialect has.
	N                json.RawMessage `json:"n,omitempty"`
	Logprobs         json.RawMessage `json:"logprobs,omitempty"`
	TopLogprobs      json.RawMessage `json:"top_logprobs,omitempty"`
	LogitBias        json.RawMessage `json:"logit_bias,omitempty"`
	Modalities       []string        `json:"modalities,omitempty"`
	Audio            json.RawMessage `json:"audio,omitempty"`
	WebSearchOptions json.RawMessage `json:"web_search_options,omitempty"`
}

type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

type routedReasoning struct {
	Effort    string       `json:"effort,omitempty"`
	MaxTokens *neutral.Int `json:"max_tokens,omitempty"`
	Exclude   bool         `json:"exclude,omitempty"`
}

// stop is a list, or in JSON a single string.
type stop []string

func (s *stop) UnmarshalJSON(raw []byte) error {
	if neutral.First(raw) == '"' {
		*s = stop{neutral.Word(raw)}
		return nil
	}
	var list []string
	if err := json.Unmarshal(raw, &list); err != nil {
		return err
	}
	*s = list
	return nil
}

type tool struct {
	Type         string          `json:"type"`
	Function     *function       `json:"function,omitempty"`
	Custom       *customTool     `json:"custom,omitempty"`
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

type function struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// customTool is a tool that takes a free text.
type customTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Format      *struct {
		Type    string  `json:"type"`
		Grammar grammar `json:"grammar"`
	} `json:"format,omitempty"`
}

type grammar struct {
	Syntax     string `json:"syntax"`
	Definition string `json:"definition"`
}

type responseFormat struct {
	Type       string      `json:"type"`
	JSONSchema *jsonSchema `json:"json_schema,omitempty"`
}

type jsonSchema struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Schema      json.RawMessage `json:"schema,omitempty"`
	Strict      *bool           `json:"strict,omitempty"`
}

// message is a turn of a conversation or the message of an answer.
type message struct {
	Role             string          `json:"role,omitempty"`
	Content          *content        `json:"content"`
	Refusal          string          `json:"refusal,omitempty"`
	ReasoningContent string          `json:"reasoning_content,omitempty"`
	Reasoning        text            `json:"reasoning,omitempty"`
	ReasoningDetails json.RawMessage `json:"reasoning_details,omitempty"` // read only, as the images: OpenRouter's
	Images           json.RawMessage `json:"images,omitempty"`
	ToolCalls        []wireCall      `json:"tool_calls,omitempty"`
	FunctionCall     *called         `json:"function_call,omitempty"`
	ToolCallID       string          `json:"tool_call_id,omitempty"`
	Name             string          `json:"name,omitempty"`
	Audio            json.RawMessage `json:"audio,omitempty"` // read only: a sound that was answered before
	CacheControl     json.RawMessage `json:"cache_control,omitempty"`
}

// text is a string; anything else in its place is left out.
type text string

func (t *text) UnmarshalJSON(raw []byte) error {
	if neutral.First(raw) == '"' {
		*t = text(neutral.Word(raw))
	}
	return nil
}

// content is a list of parts. When it is plain, it is a string in JSON.
type content struct {
	parts []contentPart
	plain bool
}

func plain(s string) *content {
	return &content{parts: []contentPart{{Type: "text", Text: s}}, plain: true}
}

func (c *content) UnmarshalJSON(raw []byte) error {
	switch neutral.First(raw) {
	case '"':
		c.parts, c.plain = []contentPart{{Type: "text", Text: neutral.Word(raw)}}, true
	case '[':
		var err error
		c.parts, err = neutral.List(raw, fastPart)
		return err
	case 'n':
	default:
		return &dialect.RequestError{Param: "messages", Offset: -1, Message: "The content of a message must be a string or a list of parts."}
	}
	return nil
}

func (c *content) MarshalJSON() ([]byte, error) {
	if c.plain {
		return dialect.AppendString(nil, c.parts[0].Text), nil
	}
	return neutral.Encode(c.parts), nil
}

func fastPart(raw []byte, p *contentPart) bool {
	return neutral.Members(raw, func(key []byte) neutral.Member {
		switch string(key) {
		case "type":
			return neutral.Member{Text: &p.Type}
		case "text":
			return neutral.Member{Text: &p.Text}
		}
		return neutral.Member{}
	})
}

type contentPart struct {
	Type         string          `json:"type"`
	Text         string          `json:"text,omitempty"`
	Refusal      string          `json:"refusal,omitempty"`
	ImageURL     *imageURL       `json:"image_url,omitempty"`
	File         *file           `json:"file,omitempty"`
	InputAudio   *inputAudio     `json:"input_audio,omitempty"`
	Thinking     json.RawMessage `json:"thinking,omitempty"` // Mistral's thoughts
	CacheControl json.RawMessage `json:"cache_control,omitempty"`
}

type imageURL struct {
	URL    string `json:"url"`
	Detail string `json:"detail,omitempty"`
}

// UnmarshalJSON also takes the address alone, as some services' clients send it.
func (u *imageURL) UnmarshalJSON(raw []byte) error {
	if neutral.First(raw) == '"' {
		u.URL = neutral.Word(raw)
		return nil
	}
	type plain imageURL
	return json.Unmarshal(raw, (*plain)(u))
}

type file struct {
	Filename string `json:"filename,omitempty"`
	FileData string `json:"file_data,omitempty"`
	FileID   string `json:"file_id,omitempty"`
}

type inputAudio struct {
	Data   string `json:"data"`
	Format string `json:"format"`
}

type wireCall struct {
	Index        *int          `json:"index,omitempty"`
	ID           string        `json:"id,omitempty"`
	Type         string        `json:"type,omitempty"`
	Function     *called       `json:"function,omitempty"`
	Custom       *customCall   `json:"custom,omitempty"`
	ExtraContent *extraContent `json:"extra_content,omitempty"`
}

type called struct {
	Name      string    `json:"name,omitempty"`
	Arguments arguments `json:"arguments"`
}

type customCall struct {
	Name  string `json:"name"`
	Input string `json:"input"`
}

// arguments is JSON in a string. Some services send the object itself.
type arguments string

func (a *arguments) UnmarshalJSON(raw []byte) error {
	switch neutral.First(raw) {
	case '"':
		*a = arguments(neutral.Word(raw))
		switch strings.TrimSpace(string(*a)) {
		case "", "null": // some models' word for none
			*a = ""
		}
	case 'n':
	default:
		*a = arguments(raw)
	}
	return nil
}

// extraContent is where Google's own chat API keeps what belongs to a call.
type extraContent struct {
	Google struct {
		ThoughtSignature string `json:"thought_signature,omitempty"`
	} `json:"google"`
}

// completion is the body of a complete answer.
type completion struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []fullChoice `json:"choices"`
	Usage   *wireCount   `json:"usage,omitempty"`
}

type fullChoice struct {
	Index        int             `json:"index"`
	Message      message         `json:"message"`
	FinishReason *string         `json:"finish_reason"`
	Logprobs     json.RawMessage `json:"logprobs"`
}

// wireCount is OpenAI's count of tokens.
type wireCount struct {
	PromptTokens        int64 `json:"prompt_tokens"`
	CompletionTokens    int64 `json:"completion_tokens"`
	TotalTokens         int64 `json:"total_tokens"`
	PromptTokensDetails struct {
		CachedTokens     int64 `json:"cached_tokens"`
		CacheWriteTokens int64 `json:"cache_write_tokens,omitempty"`
	} `json:"prompt_tokens_details"`
	CompletionTokensDetails struct {
		ReasoningTokens int64 `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

func countOf(u dialect.Usage) *wireCount {
	if !u.Known {
		return nil
	}
	c := &wireCount{PromptTokens: u.Input, CompletionTokens: u.Output, TotalTokens: u.Input + u.Output}
	c.PromptTokensDetails.CachedTokens = u.CacheRead
	c.PromptTokensDetails.CacheWriteTokens = u.CacheWrite
	c.CompletionTokensDetails.ReasoningTokens = u.Reasoning
	return c
}
