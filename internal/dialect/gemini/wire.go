package gemini

import (
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// request is the body of a request, as far as it can be translated.
type request struct {
	SystemInstruction *content          `json:"systemInstruction,omitempty"`
	Contents          []content         `json:"contents"`
	Tools             []tool            `json:"tools,omitempty"`
	ToolConfig        *toolConfig       `json:"toolConfig,omitempty"`
	GenerationConfig  *generationConfig `json:"generationConfig,omitempty"`

	// Read only: a cached prompt, which no other dialect has.
	CachedContent string `json:"cachedContent,omitempty"`
}

// countRequest is the body of countTokens: the contents alone, or a whole request.
type countRequest struct {
	request
	GenerateContentRequest *modelRequest `json:"generateContentRequest,omitempty"`
}

type modelRequest struct {
	Model string `json:"model"`
	request
}

type content struct {
	Role  string `json:"role,omitempty"`
	Parts []part `json:"parts"`
}

type part struct {
	Text             *string           `json:"text,omitempty"`
	Thought          bool              `json:"thought,omitempty"`
	ThoughtSignature string            `json:"thoughtSignature,omitempty"`
	InlineData       *blob             `json:"inlineData,omitempty"`
	FileData         *fileData         `json:"fileData,omitempty"`
	FunctionCall     *functionCall     `json:"functionCall,omitempty"`
	FunctionResponse *functionResponse `json:"functionResponse,omitempty"`

	ExecutableCode      json.RawMessage `json:"executableCode,omitempty"`
	CodeExecutionResult json.RawMessage `json:"codeExecutionResult,omitempty"`
}

type blob struct {
	MimeType    string `json:"mimeType"`
	Data        string `json:"data"`
	DisplayName string `json:"displayName,omitempty"`
}

type fileData struct {
	MimeType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

type functionCall struct {
	ID           string          `json:"id,omitempty"`
	Name         string          `json:"name"`
	Args         json.RawMessage `json:"args,omitempty"`
	PartialArgs  []partialArg    `json:"partialArgs,omitempty"`
	WillContinue bool            `json:"willContinue,omitempty"`
}

// partialArg is a piece of one argument, in streams that were asked for such.
type partialArg struct {
	JSONPath     string          `json:"jsonPath"`
	StringValue  *string         `json:"stringValue,omitempty"`
	NumberValue  json.RawMessage `json:"numberValue,omitempty"`
	BoolValue    *bool           `json:"boolValue,omitempty"`
	WillContinue bool            `json:"willContinue,omitempty"`
}

type functionResponse struct {
	ID       string          `json:"id,omitempty"`
	Name     string          `json:"name"`
	Response json.RawMessage `json:"response"`
	Parts    []part          `json:"parts,omitempty"`
}

type tool struct {
	FunctionDeclarations []functionDeclaration `json:"functionDeclarations,omitempty"`

	GoogleSearch          json.RawMessage `json:"googleSearch,omitempty"`
	GoogleSearchRetrieval json.RawMessage `json:"googleSearchRetrieval,omitempty"`
	CodeExecution         json.RawMessage `json:"codeExecution,omitempty"`
	URLContext            json.RawMessage `json:"urlContext,omitempty"`
	FileSearch            json.RawMessage `json:"fileSearch,omitempty"`
	GoogleMaps            json.RawMessage `json:"googleMaps,omitempty"`
	ComputerUse           json.RawMessage `json:"computerUse,omitempty"`
}

type functionDeclaration struct {
	Name                 string          `json:"name"`
	Description          string          `json:"description,omitempty"`
	Parameters           json.RawMessage `json:"parameters,omitempty"`
	ParametersJSONSchema json.RawMessage `json:"parametersJsonSchema,omitempty"`
}

type toolConfig struct {
	FunctionCallingConfig *functionCallingConfig `json:"functionCallingConfig,omitempty"`
}

type functionCallingConfig struct {
	Mode                 string   `json:"mode,omitempty"`
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

type generationConfig struct {
	MaxOutputTokens    *neutral.Int    `json:"maxOutputTokens,omitempty"`
	Temperature        json.Number     `json:"temperature,omitempty"`
	TopP               json.Number     `json:"topP,omitempty"`
	TopK               json.Number     `json:"topK,omitempty"`
	Seed               json.Number     `json:"seed,omitempty"`
	FrequencyPenalty   json.Number     `json:"frequencyPenalty,omitempty"`
	PresencePenalty    json.Number     `json:"presencePenalty,omitempty"`
	StopSequences      []string        `json:"stopSequences,omitempty"`
	ResponseMimeType   string          `json:"responseMimeType,omitempty"`
	ResponseSchema     json.RawMessage `json:"responseSchema,omitempty"`
	ResponseJSONSchema json.RawMessage `json:"responseJsonSchema,omitempty"`
	ThinkingConfig     *thinkingConfig `json:"thinkingConfig,omitempty"`

	// Read only.
	CandidateCount     json.Number     `json:"candidateCount,omitempty"`
	ResponseModalities []string        `json:"responseModalities,omitempty"`
	ResponseLogprobs   bool            `json:"responseLogprobs,omitempty"`
	SpeechConfig       json.RawMessage `json:"speechConfig,omitempty"`
}

type thinkingConfig struct {
	IncludeThoughts *bool        `json:"includeThoughts,omitempty"`
	ThinkingBudget  *neutral.Int `json:"thinkingBudget,omitempty"`
	ThinkingLevel   string       `json:"thinkingLevel,omitempty"`
}

// answer is a body, or the data of one event.
type answer struct {
	Candidates     []candidate     `json:"candidates,omitempty"`
	PromptFeedback *promptFeedback `json:"promptFeedback,omitempty"`
	UsageMetadata  *usage          `json:"usageMetadata,omitempty"`
	ModelVersion   string          `json:"modelVersion,omitempty"`
	ResponseID     string          `json:"responseId,omitempty"`
}

type candidate struct {
	Content      content `json:"content"`
	FinishReason string  `json:"finishReason,omitempty"`
	Index        int     `json:"index"`
}

type promptFeedback struct {
	BlockReason string `json:"blockReason,omitempty"`
}

type usage struct {
	PromptTokenCount        int64 `json:"promptTokenCount"`
	CachedContentTokenCount int64 `json:"cachedContentTokenCount,omitempty"`
	CandidatesTokenCount    int64 `json:"candidatesTokenCount"`
	ThoughtsTokenCount      int64 `json:"thoughtsTokenCount,omitempty"`
	TotalTokenCount         int64 `json:"totalTokenCount"`
}

func usageOf(u dialect.Usage) *usage {
	if !u.Known {
		return nil
	}
	return &usage{PromptTokenCount: u.Input, CachedContentTokenCount: u.CacheRead, CandidatesTokenCount: max(u.Output-u.Reasoning, 0),
		ThoughtsTokenCount: u.Reasoning, TotalTokenCount: u.Input + u.Output}
}
