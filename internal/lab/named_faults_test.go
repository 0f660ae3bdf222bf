package lab_test

import (
	"compress/gzip"
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"
)

// expectation is what a client must see of a fault.
type expectation func(t *testing.T, r result)

func status(code int, errCode string) expectation {
	return func(t *testing.T, r result) {
		t.Helper()
		if r.Status != code || r.errorCode() != errCode {
			t.Errorf("got %d %q, want %d %q: %s %v", r.Status, r.errorCode(), code, errCode, r.Body, r.Err)
		}
	}
}

func statusWith(code int, errCode, header, value string) expectation {
	return func(t *testing.T, r result) {
		t.Helper()
		status(code, errCode)(t, r)
		if got := r.Header.Get(header); got != value {
			t.Errorf("%s: got %q, want %q", header, got, value)
		}
	}
}

func page(code int, contains string) expectation {
	return func(t *testing.T, r result) {
		t.Helper()
		if r.Status != code || !strings.HasPrefix(r.Header.Get("Content-Type"), "text/html") || !strings.Contains(r.Body, contains) {
			t.Errorf("got %d %s: %s", r.Status, r.Header.Get("Content-Type"), r.Body)
		}
	}
}

// whole says that a stream was good from start to end.
func whole(t *testing.T, r result) {
	t.Helper()
	if r.Status != 200 || r.Err != nil || r.Pieces < 5 || r.Finish != "stop" || !r.Done || r.Bad != 0 || r.Error != "" {
		t.Errorf("not a whole stream: %+v", r)
	}
}

// cut says that a stream ended after three pieces without its own end.
func cutWith(check func(error) bool) expectation {
	return func(t *testing.T, r result) {
		t.Helper()
		if r.Status != 200 || r.Pieces != 3 || r.Finish != "" || r.Done || !check(r.Err) {
			t.Errorf("not cut as it should be: %+v", r)
		}
	}
}

func isReset(err error) bool      { return errors.Is(err, syscall.ECONNRESET) }
func isUnexpected(err error) bool { return errors.Is(err, io.ErrUnexpectedEOF) }
func isNil(err error) bool        { return err == nil }
func isTimeout(err error) bool    { return errors.Is(err, context.DeadlineExceeded) }

func clock(in time.Duration, format func(time.Time) string) string {
	return format(time.Now().Add(in))
}

// namedFaults says what a client with a deadline of a minute sees, on virtual time, when it asks
// for a stream. Every fault must be here.
var namedFaults = map[string]expectation{
	"429":         statusWith(429, "rate_limit_exceeded", "Retry-After", "5"),
	"429:90s":     statusWith(429, "rate_limit_exceeded", "Retry-After", "90"),
	"429-no-hint": statusWith(429, "rate_limit_exceeded", "Retry-After", ""),
	"429-date": func(t *testing.T, r result) {
		statusWith(429, "rate_limit_exceeded", "Retry-After", clock(5*time.Second, func(at time.Time) string {
			return at.UTC().Format("Mon, 02 Jan 2006 15:04:05 GMT")
		}))(t, r)
	},
	"429-ms":     statusWith(429, "rate_limit_exceeded", "Retry-After-Ms", "5000"),
	"429-resets": statusWith(429, "rate_limit_exceeded", "X-Ratelimit-Reset-Requests", "5s"),
	"429-reset": func(t *testing.T, r result) {
		statusWith(429, "rate_limit_exceeded", "X-Ratelimit-Reset", clock(5*time.Second, func(at time.Time) string {
			return strconv.FormatInt(at.Unix(), 10)
		}))(t, r)
	},
	"429-prose": func(t *testing.T, r result) {
		status(429, "rate_limit_exceeded")(t, r)
		if !strings.Contains(r.Body, "try again in 5s") {
			t.Errorf("no hint in %s", r.Body)
		}
	},
	"429-retryinfo": func(t *testing.T, r result) {
		status(429, "rate_limit_exceeded")(t, r)
		if !strings.Contains(r.Body, `"retryDelay":"5s"`) {
			t.Errorf("no hint in %s", r.Body)
		}
	},
	"quota":            status(429, "insufficient_quota"),
	"401":              status(401, "invalid_api_key"),
	"key-revoked":      status(401, "api_key_revoked"),
	"402":              status(402, "insufficient_balance"),
	"403":              status(403, "model_access_denied"),
	"challenge":        page(403, "Just a moment"),
	"404":              status(404, "model_not_found"),
	"context-length":   status(400, "context_length_exceeded"),
	"content-filter":   status(400, "content_policy_violation"),
	"400":              status(400, ""),
	"500":              status(500, "internal_error"),
	"502":              page(502, "Bad Gateway"),
	"503":              statusWith(503, "service_unavailable", "Retry-After", "2"),
	"503-no-hint":      statusWith(503, "service_unavailable", "Retry-After", ""),
	"529":              status(529, "overloaded"),
	"model-overloaded": status(503, "model_overloaded"),
	"hang": func(t *testing.T, r result) {
		if r.Status != 0 || !isTimeout(r.Err) || r.End != time.Minute {
			t.Errorf("it did not hang: %+v", r)
		}
	},
	"reset": func(t *testing.T, r result) {
		if r.Status != 0 || !isReset(r.Err) {
			t.Errorf("no reset: %+v", r)
		}
	},
	"close": func(t *testing.T, r result) {
		if r.Status != 0 || !errors.Is(r.Err, io.EOF) {
			t.Errorf("no close: %+v", r)
		}
	},
	"reset-reused": whole, // the first request on its connection
	"close-reused": whole,
	"slow-headers": func(t *testing.T, r result) {
		whole(t, r)
		if r.Headers != 5*time.Second {
			t.Errorf("headers after %v", r.Headers)
		}
	},
	"slow-first-token": func(t *testing.T, r result) {
		whole(t, r)
		if r.Headers != 0 || r.First != 5*time.Second || r.Comments != 0 {
			t.Errorf("headers %v, first %v, %d comments", r.Headers, r.First, r.Comments)
		}
	},
	"slow-pings": func(t *testing.T, r result) {
		whole(t, r)
		if r.First != 5*time.Second || r.Comments != 4 {
			t.Errorf("first %v, %d comments", r.First, r.Comments)
		}
	},
	"slow-content": func(t *testing.T, r result) {
		whole(t, r)
		if want := time.Duration(r.Pieces-1) * 500 * time.Millisecond; r.End != want {
			t.Errorf("%d pieces in %v, want %v", r.Pieces, r.End, want)
		}
	},
	"cut":          cutWith(isReset),
	"cut-fin":      cutWith(isUnexpected),
	"cut-quiet":    cutWith(isNil),
	"cut-unframed": cutWith(isNil),
	"stall":        cutWith(isTimeout),
	"stall-pings": func(t *testing.T, r result) {
		cutWith(isTimeout)(t, r)
		if r.Comments < 58 {
			t.Errorf("%d comments in a minute", r.Comments)
		}
	},
	"error-event": func(t *testing.T, r result) {
		if r.Status != 200 || r.Pieces != 0 || r.Error == "" || r.Done || !strings.HasPrefix(r.Body, `data: {"error"`) {
			t.Errorf("got %+v", r)
		}
	},
	"error-late": func(t *testing.T, r result) {
		if r.Status != 200 || r.Pieces != 3 || r.Error == "" || r.Done || r.Finish != "" {
			t.Errorf("got %+v", r)
		}
	},
	"malformed": func(t *testing.T, r result) {
		if r.Bad != 1 || !r.Done || r.Finish != "stop" || !strings.HasPrefix(r.Body, "data: {") {
			t.Errorf("got %+v", r)
		}
	},
	"malformed:10": func(t *testing.T, r result) {
		if r.Bad != 1 || !r.Done || r.Finish != "stop" || r.Pieces < 9 {
			t.Errorf("got %+v", r)
		}
	},
	"no-done": func(t *testing.T, r result) {
		if r.Err != nil || r.Finish != "stop" || r.Done || r.Pieces < 5 {
			t.Errorf("got %+v", r)
		}
	},
	"no-finish": func(t *testing.T, r result) {
		if r.Err != nil || r.Finish != "" || r.Done || r.Pieces < 5 {
			t.Errorf("got %+v", r)
		}
	},
	"empty": func(t *testing.T, r result) {
		if r.Status != 200 || r.Err != nil || r.Body != "" {
			t.Errorf("got %+v", r)
		}
	},
	"no-content": func(t *testing.T, r result) {
		if r.Status != 200 || r.Pieces != 0 || r.Finish != "stop" || !r.Done || r.Usage {
			t.Errorf("got %+v", r)
		}
	},
	"no-choices": func(t *testing.T, r result) {
		if r.Status != 200 || r.Pieces != 0 || !strings.Contains(r.Body, `"choices":[]`) || r.Usage {
			t.Errorf("got %+v", r)
		}
	},
	"html-200": page(200, "Sign in"),
	"gzip": func(t *testing.T, r result) {
		z, err := gzip.NewReader(strings.NewReader(r.Body))
		if err != nil {
			t.Fatal(err)
		}
		var inner result
		inner.Status = r.Status
		inner.read(z, time.Now())
		whole(t, inner)
	},
}

// sentence is long enough for the tenth event to be content.
func sentence(lab.Prompt) string { return "one two three four five six seven eight nine ten eleven" }

func TestNamedFaultsOnVirtualTime(t *testing.T) {
	t.Parallel()
	for _, f := range lab.Faults() {
		if namedFaults[f.Name] == nil {
			t.Errorf("the fault %q is in no test", f.Name)
		}
	}
	for name, expect := range namedFaults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := inMemory(t, lab.Options{Text: sentence})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				r := h.ask(ctx, "fault/"+name, true)
				expect(t, r)
				cancel()
				if err := h.p.Await(t.Context(), 1, 0); err != nil {
					t.Fatal(err)
				}
				calls := h.p.Calls()
				base, _, _ := strings.Cut(name, ":")
				if strings.HasSuffix(base, "-reused") {
					base = "ok"
				}
				if len(calls) != 1 || h.p.CountOutcome(calls[0].Outcome) != 1 || calls[0].Model != "fault/"+name {
					t.Errorf("recorded %+v", calls)
				}
				if c := calls[0]; c.Outcome == "" || c.End.IsZero() || (c.Outcome == "ok") != (base == "ok") {
					t.Errorf("recorded %+v", c)
				}
			})
		})
	}
}
