package dialect

import (
	"time"

	"omniroute/resilience"
)

// The codes of our own errors. Errors that are the request's fault carry the upstream's
// own code instead.
const (
	CodeAllTargetsUnavailable = "all_targets_unavailable"
	CodeNoConnection          = "no_connection"
	CodeModelNotFound         = "model_not_found"
	CodeLocalNetwork          = "local_network"
	CodeDeadlineExceeded      = "deadline_exceeded"
	CodeQueueFull             = "queue_full"
	CodeShuttingDown          = "shutting_down"
	CodeInvalidAPIKey         = "invalid_api_key"
	CodeClientRateLimited     = "client_rate_limited"
	CodeRequestTooLarge       = "request_too_large"
	CodeUpstreamError         = "upstream_error"
)

// StatusOf returns the HTTP status that goes with a code of ours, and 500 for any other.
// CodeAllTargetsUnavailable has several, by cause; 503 is the one for mixed causes.
func StatusOf(code string) int {
	switch code {
	case CodeAllTargetsUnavailable, CodeNoConnection, CodeLocalNetwork, CodeQueueFull, CodeShuttingDown:
		return 503
	case CodeModelNotFound:
		return 404
	case CodeDeadlineExceeded:
		return 504
	case CodeInvalidAPIKey:
		return 401
	case CodeClientRateLimited:
		return 429
	case CodeRequestTooLarge:
		return 413
	case CodeUpstreamError:
		return 502
	}
	return 500
}

// MaxMessage bounds the message of a report, in bytes; longer ones are cut, since an
// upstream's text may be an echo of the whole prompt.
const MaxMessage = 2 << 10

// ErrorReport is one error to a client, before a dialect gives it its shape.
type ErrorReport struct {
	Status  int    // HTTP status; 0 means StatusOf(Code)
	Code    string // one of ours, or the upstream's own; empty means none
	Type    string // the upstream's own; empty means the dialect's word for Status
	Param   string // the field of the request at fault, empty when there is none
	Message string // cut to MaxMessage

	// RequestID is the gateway's own. Without it the report of attempts is left out.
	RequestID string
	// RetryAfter is the soonest recovery, rounded up to milliseconds; 0 means that
	// waiting does not help, and is left out.
	RetryAfter time.Duration
	Attempts   []Attempted
	Skipped    []Skipped
}

// StatusCode returns the report's HTTP status.
func (r *ErrorReport) StatusCode() int {
	if r.Status == 0 {
		return StatusOf(r.Code)
	}
	return r.Status
}

// Attempted is one dispatched attempt in a report.
type Attempted struct {
	Key      resilience.Key
	Status   int // 0 when no answer came
	Kind     resilience.Kind
	Scope    resilience.Scope
	Duration time.Duration
}

// Skipped is a target in a report that was not tried.
type Skipped struct {
	Key        resilience.Key
	Layer      resilience.Layer
	Kind       resilience.Kind
	Until      time.Time // zero when no end is known
	RetryAfter time.Duration
}

// UpstreamError is what an upstream's error envelope says.
type UpstreamError struct {
	Message string
	Type    string
	Code    string // numbers as their digits
	Param   string
}
