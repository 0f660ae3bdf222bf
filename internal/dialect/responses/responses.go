// Package responses is the dialect of OpenAI's Responses API, of the count of its input
// tokens, and of the services that speak like it.
package responses

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
)

// Dialect implements neutral.Codec. The zero value is ready.
type Dialect struct{}

var _ neutral.Codec = Dialect{}

const name = "responses"

// Name returns "responses".
func (Dialect) Name() string { return name }

// ReadRequest reads a JSON request to any path; only the last part of the path tells what it
// asks for.
func (Dialect) ReadRequest(path string, body []byte) (*dialect.Request, error) {
	return dialect.ReadJSON(operation(path), path, body)
}

func operation(path string) dialect.Operation {
	path = strings.TrimRight(path, "/")
	switch {
	case strings.HasSuffix(path, "/responses"):
		return dialect.OpGenerate
	case strings.HasSuffix(path, "/input_tokens"):
		return dialect.OpCount
	}
	return dialect.OpOther
}

// PreviousID returns the id of the stored response that a request goes on from, empty without
// one. Only the connection that made it has it. The error is a *dialect.RequestError about a request that names
// two: which of them an upstream takes cannot be known.
func PreviousID(body []byte) (id string, err error) {
	s := jsonscan.New(body)
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) != "previous_response_id" {
			s.Skip()
			continue
		}
		before := id
		if id = string(s.Text()); before != "" && before != id {
			return "", &dialect.RequestError{Param: "previous_response_id", Offset: -1, Message: "The request names two responses to go on from; name one."}
		}
	}
	return id, nil
}

// ToolNames returns what names of tools may look like.
func (Dialect) ToolNames() neutral.NameRule { return neutral.NameRule{Max: 64} }

// ReadError finds the error in a body, an event or a failed response.
func (Dialect) ReadError(body []byte) (dialect.UpstreamError, bool) {
	e, ok := openai.Dialect{}.ReadError(errorIn(body))
	if ok && (e.Type == "error" || e.Type == "response.failed") { // the event's own type
		e.Type = ""
	}
	return e, ok
}

// errorIn returns the response in an event, which then holds the error, or the body as it is.
func errorIn(body []byte) []byte {
	s := jsonscan.New(body)
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) == "response" && s.Peek() == '{' {
			if inner := s.Skip(); s.Err() == nil {
				return inner
			}
		} else {
			s.Skip()
		}
	}
	return body
}

// ErrorBody returns the error as a complete body, in the shape of all of OpenAI's APIs.
func (Dialect) ErrorBody(r *dialect.ErrorReport) []byte { return openai.Dialect{}.ErrorBody(r) }

// ErrorStatus returns the report's own status.
func (Dialect) ErrorStatus(r *dialect.ErrorReport) int { return r.StatusCode() }

// ErrorEvent returns the events that end a stream of which nothing is known.
func (Dialect) ErrorEvent(r *dialect.ErrorReport) []byte {
	return appendFailure(nil, r, 0, "", "", nil)
}

// KeepAlive is a comment: an event would need a number among those that the upstream gives.
func (Dialect) KeepAlive() []byte { return []byte(": keep-alive\n\n") }
