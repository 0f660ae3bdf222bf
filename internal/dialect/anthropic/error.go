package anthropic

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/sse"
)

// StatusOverloaded is Anthropic's status for an outage. Its clients give up sooner on it than on 503.
const StatusOverloaded = 529

type errorBody struct {
	Type      string      `json:"type"`
	Error     errorObject `json:"error"`
	RequestID string      `json:"request_id,omitempty"`
}

type errorObject struct {
	Type    string          `json:"type"`
	Message string          `json:"message"`
	Code    string          `json:"code,omitempty"`
	Param   string          `json:"param,omitempty"`
	Detail  *dialect.Detail `json:"omniroute,omitempty"`
}

// ErrorBody returns the error as a complete body. The code and the field at fault are beside
// Anthropic's own members.
func (d Dialect) ErrorBody(r *dialect.ErrorReport) []byte {
	body := errorBody{Type: "error", RequestID: r.RequestID, Error: errorObject{
		Type: r.Type, Message: message(r), Code: r.Code, Param: r.Param, Detail: r.Detail()}}
	if body.Error.Type == "" {
		body.Error.Type = errorType(d.ErrorStatus(r))
	}
	return neutral.Encode(body)
}

// message puts a prompt that is too long in the words that clients look for.
func message(r *dialect.ErrorReport) string {
	m := r.BoundedMessage()
	if (r.Code == "context_length_exceeded" || r.Code == "context_length") && !strings.Contains(strings.ToLower(m), "prompt is too long") {
		return "prompt is too long: " + m
	}
	return m
}

// ErrorEvent returns the error as the event that ends a stream. Nothing belongs after it.
func (d Dialect) ErrorEvent(r *dialect.ErrorReport) []byte {
	return sse.Append(nil, "error", d.ErrorBody(r))
}

// ErrorStatus returns the report's status, and 529 for an outage.
func (Dialect) ErrorStatus(r *dialect.ErrorReport) int {
	s := r.StatusCode()
	if s == 503 && (r.Code == dialect.CodeAllTargetsUnavailable || r.Code == dialect.CodeLocalNetwork || r.Code == dialect.CodeQueueFull) {
		return StatusOverloaded
	}
	return s
}

func errorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 409:
		return "conflict_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, StatusOverloaded:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// ReadError finds the error in a body or envelope. Services that speak like Anthropic use
// OpenAI's shapes too, and those are known there.
func (Dialect) ReadError(body []byte) (dialect.UpstreamError, bool) {
	e, ok := openai.Dialect{}.ReadError(body)
	if ok && e.Type == "error" { // the envelope's own type
		e.Type = ""
	}
	return e, ok
}
