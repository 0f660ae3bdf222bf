package openai

import (
	"bytes"
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

type errorBody struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    *string         `json:"code"`
	Param   *string         `json:"param"`
	Detail  *dialect.Detail `json:"omniroute,omitempty"`
}

// ErrorBody returns the error as a complete body.
func (Dialect) ErrorBody(r *dialect.ErrorReport) []byte {
	body := errorBody{errorObject{
		Message: r.BoundedMessage(),
		Type:    r.Type,
		Code:    orNull(r.Code),
		Param:   orNull(r.Param),
		Detail:  r.Detail(),
	}}
	if body.Error.Type == "" {
		body.Error.Type = errorType(r.StatusCode(), r.Code)
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	// Strings, numbers and named values only: encoding them cannot fail.
	_ = enc.Encode(body)
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// ErrorEvent returns the error as the event that ends a stream. No terminator belongs
// after it.
func (d Dialect) ErrorEvent(r *dialect.ErrorReport) []byte {
	return sse.Append(nil, "", d.ErrorBody(r))
}

// ErrorStatus returns the report's own status.
func (Dialect) ErrorStatus(r *dialect.ErrorReport) int { return r.StatusCode() }

// KeepAlive is a comment.
func (Dialect) KeepAlive() []byte { return []byte(": keep-alive\n\n") }

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// errorType returns OpenAI's word for a status.
func errorType(status int, code string) string {
	switch {
	case code == "insufficient_quota":
		return "insufficient_quota"
	case status == 429:
		return "rate_limit_error"
	case status == 403:
		return "permission_error"
	case status >= 500:
		return "server_error"
	}
	return "invalid_request_error"
}

// ReadError finds the error in a body or envelope: OpenAI's own shape, the error as a
// string or at the top level, a list with the envelope in it, a list of errors, and "detail".
func (Dialect) ReadError(body []byte) (dialect.UpstreamError, bool) {
	s := jsonscan.New(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if s.Peek() == '[' && !s.Array() || s.Peek() != '{' {
		return dialect.UpstreamError{}, false
	}
	var inner, outer dialect.UpstreamError
	var word string // "error" where it is a string
	for ok := s.Object(); ok; ok = s.More('}') {
		key := string(s.Key())
		switch {
		case key == "error" && s.Peek() == '{':
			inner = readErrorObject(s.Skip())
		case key == "error" && s.Peek() == '"':
			word = string(s.String())
		case (key == "errors" || key == "error") && s.Peek() == '[':
			inner = readErrorList(s.Skip())
		case key == "base_resp":
			for ok := s.Object(); ok; ok = s.More('}') {
				readErrorMember(&s, string(s.Key()), &outer)
			}
		default:
			readErrorMember(&s, key, &outer)
		}
	}
	switch {
	case s.Err() != nil:
		return dialect.UpstreamError{}, false
	case inner != dialect.UpstreamError{}:
		return inner, true
	case word != "" && outer.Message == "":
		outer.Message = word
	case word != "" && outer.Code == "":
		outer.Code = word
	}
	return outer, outer.Message != ""
}

// readErrorList reads a list of errors, as Cloudflare sends it: the first counts.
func readErrorList(raw []byte) dialect.UpstreamError {
	s := jsonscan.New(raw)
	switch {
	case !s.Array():
	case s.Peek() == '{':
		return readErrorObject(s.Skip())
	case s.Peek() == '"':
		return dialect.UpstreamError{Message: string(s.String())}
	}
	return dialect.UpstreamError{}
}

// readErrorObject reads the value of "error". One without a known member is shown as it is.
func readErrorObject(raw []byte) dialect.UpstreamError {
	var e dialect.UpstreamError
	s := jsonscan.New(raw)
	for ok := s.Object(); ok; ok = s.More('}') {
		readErrorMember(&s, string(s.Key()), &e)
	}
	if e == (dialect.UpstreamError{}) && says(raw) {
		e.Message = string(raw)
	}
	return e
}

// readErrorMember reads a member of an error. "message" wins over its other names.
func readErrorMember(s *jsonscan.Scanner, key string, e *dialect.UpstreamError) {
	var to *string
	switch key {
	case "message", "msg", "detail", "status_msg":
		to = &e.Message
	case "type":
		to = &e.Type
	case "code", "status_code":
		to = &e.Code
	case "param":
		to = &e.Param
	default:
		s.Skip()
		return
	}
	var value string
	switch c := s.Peek(); {
	case c == '"':
		value = string(s.String())
	case to == &e.Message:
		// FastAPI's list of faults, and the like: shown as it is.
		if raw := s.Skip(); jsonscan.Truthy(raw) {
			value = string(raw)
		}
	case c == '-' || '0' <= c && c <= '9':
		value = string(s.Skip())
	default:
		s.Skip()
	}
	if value != "" && (*to == "" || key == "message") {
		*to = value
	}
}

// Terminator returns what ends a stream, for upstreams that leave it out after a finish reason.
func (Dialect) Terminator() []byte { return []byte("data: [DONE]\n\n") }
