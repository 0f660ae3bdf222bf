// Package gemini is the dialect of Google's Gemini API: generateContent, streamGenerateContent
// as server-sent events, countTokens and the embeddings.
package gemini

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
)

// Dialect implements neutral.Codec. The zero value is ready.
type Dialect struct{}

var _ neutral.Codec = Dialect{}

const name = "gemini"

// Name returns "gemini".
func (Dialect) Name() string { return name }

const models = "/models/"

// SplitPath finds model and method in a path like /v1beta/models/gemini-3-pro:generateContent. The
// model may hold slashes. It reports false for other paths.
func SplitPath(path string) (model dialect.Span, method string, ok bool) {
	start := strings.Index(path, models)
	end := strings.LastIndexByte(path, ':')
	if start < 0 || end <= start+len(models) {
		return dialect.Span{}, "", false
	}
	return dialect.Span{Start: start + len(models), End: end}, path[end+1:], true
}

// ReadRequest reads a request, whose model is in its path.
func (Dialect) ReadRequest(path string, body []byte) (*dialect.Request, error) {
	span, method, ok := SplitPath(path)
	if !ok {
		return nil, &dialect.RequestError{Param: "model", Offset: -1,
			Message: "The path must name a model and a method, like /v1beta/models/gemini-3-pro:generateContent."}
	}
	s := jsonscan.New(body)
	if s.Peek() != '{' {
		return nil, &dialect.RequestError{Offset: 0, Message: "The request's body must be a JSON object."}
	}
	s.Skip()
	if err := s.End(); err != nil {
		return nil, &dialect.RequestError{Offset: -1, Message: "The request's body is not valid JSON: " + err.Error() + "."}
	}
	r := &dialect.Request{Path: path, Body: body, Model: path[span.Start:span.End], PathModel: span}
	switch method {
	case "generateContent":
	case "streamGenerateContent":
		r.Stream = true
	case "countTokens":
		r.Operation = dialect.OpCount
	case "embedContent", "batchEmbedContents":
		r.Operation = dialect.OpEmbed
	default:
		r.Operation = dialect.OpOther
	}
	return r, nil
}

// ToolNames returns what names of tools may look like.
func (Dialect) ToolNames() neutral.NameRule {
	return neutral.NameRule{Max: 64, Extra: ".:", Letter: true}
}
