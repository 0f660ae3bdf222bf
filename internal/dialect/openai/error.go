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
// string or at the top level, a list with the envelope in it, and "detail".
func (Dialect) ReadError(body []byte) (dialect.UpstreamError, bool) {
	s := jsonscan.New(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	if s.Peek() == '[' && !s.Array() {
		return dialect.UpstreamError{}, false
	}
	if s.Peek() != '{' {
		return dialect.UpstreamError{}, false
	}
	var inner, outer dialect.UpstreamError
	found := false
	for ok := s.Object(); ok; ok = s.More('}') {
		key := string(s.Key())
		switch {
		case key == "error" && s.Peek() == '{':
			inner, found = dialect.UpstreamError{}, false
			for ok := s.Object(); ok; ok = s.More('}') {
				found = readErrorMember(&s, string(s.Key()), &inner) || found
			}
		case key == "error" && s.Peek() == '"':
			inner.Message = string(s.String())
			found = inner.Message != ""
		case key == "base_resp":
			for ok := s.Object(); ok; ok = s.More('}') {
				readErrorMember(&s, string(s.Key()), &outer)
			}
		default:
			readErrorMember(&s, key, &outer)
		}
	}
	if s.Err() != nil {
		return dialect.UpstreamError{}, false
	}
	if found {
		return inner, true
	}
	return outer, outer.Message != ""
}

// readErrorMember reads a member of an error and reports whether it said something.
func readErrorMember(s *jsonscan.Scanner, key string, e *dialect.UpstreamError) bool {
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
		return false
	}
	var value string
	switch c := s.Peek(); {
	case c == '"':
		value = string(s.String())
	case key == "detail" || key == "message":
		// FastAPI's list of faults, and the like: shown as it is.
		if raw := s.Skip(); jsonscan.Truthy(raw) {
			value = string(raw)
		}
	case c == '-' || '0' <= c && c <= '9':
		value = string(s.Skip())
	default:
		s.Skip()
	}
	if value == "" || *to != "" && key != "message" {
		return false
	}
	*to = value
	return true
}
