package dialect

import (
	"strings"
	"time"
	"unicode/utf8"

	"omniroute/resilience"
)

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string. Unlike encoding/json it leaves <, > and & as
// they are; bytes that are not UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, '\\', 'n')
		case c == '\r':
			dst = append(dst, '\\', 'r')
		case c == '\t':
			dst = append(dst, '\\', 't')
		case c < 0x20 || c == 0x7f:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		case c < utf8.RuneSelf:
			dst = append(dst, c)
		default:
			r, n := utf8.DecodeRuneInString(s[i:])
			switch {
			case r == '\u2028' || r == '\u2029': // line ends to JavaScript
				dst = append(dst, '\\', 'u', '2', '0', '2', hexDigits[r&15])
			case r == utf8.RuneError && n == 1:
				dst = append(dst, "\ufffd"...)
			default:
				dst = append(dst, s[i:i+n]...)
			}
			i += n
			continue
		}
		i++
	}
	return append(dst, '"')
}

// BoundedMessage returns the report's message, cut to MaxMessage at a whole character.
func (r *ErrorReport) BoundedMessage() string {
	s := r.Message
	if len(s) <= MaxMessage {
		return s
	}
	cut := MaxMessage
	for cut > MaxMessage-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return strings.ToValidUTF8(s[:cut], "\ufffd") + "…"
}

// Detail is the report of attempts as the "omniroute" member of an error body, the same in
// every dialect.
type Detail struct {
	RequestID    string            `json:"request_id"`
	RetryAfterMS int64             `json:"retry_after_ms,omitempty"`
	Attempts     []detailAttempted `json:"attempts"`
	Skipped      []detailSkipped   `json:"skipped"`
}

type detailAttempted struct {
	resilience.Key
	Status     *int             `json:"status"` // null when no answer came
	Kind       resilience.Kind  `json:"kind"`
	Scope      resilience.Scope `json:"scope"`
	DurationMS int64            `json:"duration_ms"`
}

type detailSkipped struct {
	resilience.Key
	Layer        resilience.Layer `json:"layer"`
	Kind         *resilience.Kind `json:"kind"`  // null when an operator took the target out
	Until        *string          `json:"until"` // null when no end is known
	RetryAfterMS int64            `json:"retry_after_ms"`
}

// Detail returns the report of attempts, nil without a RequestID.
func (r *ErrorReport) Detail() *Detail {
	if r.RequestID == "" {
		return nil
	}
	d := &Detail{
		RequestID:    r.RequestID,
		RetryAfterMS: ceilMS(r.RetryAfter),
		Attempts:     make([]detailAttempted, 0, len(r.Attempts)),
		Skipped:      make([]detailSkipped, 0, len(r.Skipped)),
	}
	for _, a := range r.Attempts {
		out := detailAttempted{Key: a.Key, Kind: a.Kind, Scope: a.Scope, DurationMS: a.Duration.Milliseconds()}
		if a.Status != 0 {
			out.Status = &a.Status
		}
		d.Attempts = append(d.Attempts, out)
	}
	for _, s := range r.Skipped {
		out := detailSkipped{Key: s.Key, Layer: s.Layer, RetryAfterMS: ceilMS(s.RetryAfter)}
		if s.Layer != resilience.LayerOperator && s.Layer != resilience.LayerConcurrency || s.Kind != resilience.KindUnknown {
			out.Kind = &s.Kind
		}
		if !s.Until.IsZero() {
			until := s.Until.UTC().Format("2006-01-02T15:04:05.000Z")
			out.Until = &until
		}
		d.Skipped = append(d.Skipped, out)
	}
	return d
}

func ceilMS(d time.Duration) int64 {
	if d <= 0 {
		return 0
	}
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}
