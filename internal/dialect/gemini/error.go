package gemini

import (
	"fmt"
	"strings"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/sse"
)

type errorBody struct {
	Error errorObject `json:"error"`
}

type errorObject struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Status  string          `json:"status"`
	Details []any           `json:"details,omitempty"`
	Detail  *dialect.Detail `json:"omniroute,omitempty"`
}

type retryInfo struct {
	Type  string `json:"@type"`
	Delay string `json:"retryDelay"`
}

type errorInfo struct {
	Type   string `json:"@type"`
	Reason string `json:"reason"`
	Domain string `json:"domain"`
}

// ErrorBody returns the error as a complete body. The code is in the details, as the reason.
func (d Dialect) ErrorBody(r *dialect.ErrorReport) []byte {
	e := errorObject{Code: r.StatusCode(), Message: r.BoundedMessage(), Status: r.Type, Detail: r.Detail()}
	if e.Status == "" || strings.ToUpper(e.Status) != e.Status {
		e.Status = statusWord(e.Code)
	}
	if r.Code != "" {
		e.Details = append(e.Details, errorInfo{"type.googleapis.com/google.rpc.ErrorInfo", strings.ToUpper(r.Code), "omniroute"})
	}
	if r.RetryAfter > 0 {
		seconds := (r.RetryAfter + time.Second - 1) / time.Second
		e.Details = append(e.Details, retryInfo{"type.googleapis.com/google.rpc.RetryInfo", fmt.Sprintf("%ds", seconds)})
	}
	return neutral.Encode(errorBody{e})
}

// ErrorEvent returns the error as the event that ends a stream.
func (d Dialect) ErrorEvent(r *dialect.ErrorReport) []byte {
	return sse.Append(nil, "", d.ErrorBody(r))
}

// ErrorStatus returns the report's own status.
func (Dialect) ErrorStatus(r *dialect.ErrorReport) int { return r.StatusCode() }

// statusWord returns Google's word for a status.
func statusWord(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 409:
		return "ABORTED"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 499:
		return "CANCELLED"
	case 501:
		return "UNIMPLEMENTED"
	case 503:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// ReadError finds the error in a body or envelope, also within a list. Its type is Google's
// word for the status.
func (Dialect) ReadError(body []byte) (dialect.UpstreamError, bool) {
	e, ok := openai.Dialect{}.ReadError(body)
	if !ok {
		return e, false
	}
	s := jsonscan.New(body)
	if s.Peek() == '[' {
		s.Array()
	}
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) != "error" {
			s.Skip()
			continue
		}
		for ok := s.Object(); ok; ok = s.More('}') {
			if key := s.Key(); string(key) == "status" {
				e.Type = string(s.Text())
			} else {
				s.Skip()
			}
		}
	}
	return e, true
}
