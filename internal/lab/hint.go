package lab

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// HintForm is how a service says when to come back. They all do it differently.
type HintForm uint8

// The forms of a hint.
const (
	HintNone      HintForm = iota
	HintSeconds            // Retry-After: 7 (rounded up)
	HintDate               // Retry-After: an HTTP date (rounded up to a second)
	HintMillis             // retry-after-ms: 7000
	HintResets             // x-ratelimit-remaining-requests: 0 and x-ratelimit-reset-requests: 7s
	HintReset              // x-ratelimit-reset: seconds of the Unix clock (rounded up)
	HintProse              // "Please try again in 7s." in the message
	HintRetryInfo          // google.rpc.RetryInfo among the error's details
)

// Hint is the wait that a refusal states.
type Hint struct {
	Form  HintForm
	After time.Duration
}

// RetryAfter is the usual hint: a Retry-After header in seconds.
func RetryAfter(d time.Duration) Hint { return Hint{HintSeconds, d} }

func (h Hint) seconds() int64 { return int64((h.After + time.Second - 1) / time.Second) }

func (h Hint) set(header http.Header, now time.Time) {
	at := now.Add(h.After + time.Second - 1)
	switch h.Form {
	case HintSeconds:
		header.Set("Retry-After", strconv.FormatInt(h.seconds(), 10))
	case HintDate:
		header.Set("Retry-After", at.UTC().Format(http.TimeFormat))
	case HintMillis:
		header.Set("Retry-After-Ms", strconv.FormatInt(h.After.Milliseconds(), 10))
	case HintResets:
		header.Set("X-Ratelimit-Remaining-Requests", "0")
		header.Set("X-Ratelimit-Reset-Requests", h.After.Round(time.Millisecond).String())
	case HintReset:
		header.Set("X-Ratelimit-Reset", strconv.FormatInt(at.Unix(), 10))
	}
}

func (h Hint) prose() string {
	if h.Form != HintProse {
		return ""
	}
	return fmt.Sprintf(" Please try again in %s.", h.After.Round(time.Millisecond))
}

func (h Hint) details() []any {
	if h.Form != HintRetryInfo {
		return nil
	}
	return []any{map[string]string{
		"@type":      "type.googleapis.com/google.rpc.RetryInfo",
		"retryDelay": strconv.FormatFloat(h.After.Seconds(), 'f', -1, 64) + "s",
	}}
}
