package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// faultPrefix begins the names of the models that fail on request.
const faultPrefix = "fault/"

// FaultInfo describes a model that fails on request, whatever the script says.
type FaultInfo struct {
	// Name is the fault's name without "fault/".
	Name string
	// Description is a sentence.
	Description string
	// Default is the parameter that a bare name stands for: a duration or a number. Empty means
	// that the fault takes none. "fault/cut:8" is "fault/cut" with the parameter 8.
	Default string

	make func(param) Fault
}

// Model returns the model name to ask for.
func (f FaultInfo) Model() string { return faultPrefix + f.Name }

// param is a parameter, read as what the default is.
type param struct {
	d time.Duration
	n int
}

// Faults returns every fault that a model name can ask for, in the order of the documentation.
func Faults() []FaultInfo {
	none := func(f func() Fault) func(param) Fault { return func(param) Fault { return f() } }
	always := func(f Fault) func(param) Fault { return func(param) Fault { return f } }
	refused := func(form HintForm) func(param) Fault {
		return func(p param) Fault { return RateLimited(Hint{form, p.d}) }
	}
	overloaded := Error{Type: "overloaded_error", Code: "overloaded", Message: "The service is overloaded."}
	broken := Error{Type: "server_error", Code: "internal_error", Message: "Something broke on our side."}
	return []FaultInfo{
		{"429", "429 with Retry-After in seconds.", "5s", refused(HintSeconds)},
		{"429-no-hint", "429 without a word about when to come back.", "", always(RateLimited(Hint{}))},
		{"429-date", "429 with Retry-After as a date.", "5s", refused(HintDate)},
		{"429-ms", "429 with retry-after-ms.", "5s", refused(HintMillis)},
		{"429-resets", "429 with x-ratelimit-reset-requests.", "5s", refused(HintResets)},
		{"429-reset", "429 with x-ratelimit-reset as a Unix time.", "5s", refused(HintReset)},
		{"429-prose", "429 that says in its message when to try again.", "5s", refused(HintProse)},
		{"429-retryinfo", "429 with a RetryInfo detail.", "5s", refused(HintRetryInfo)},
		{"quota", "429 with insufficient_quota: the account's credit is gone.", "", none(QuotaExhausted)},
		{"401", "401: the key is refused.", "", none(Unauthorized)},
		{"key-revoked", "401 that says that the key was revoked.", "", none(KeyRevoked)},
		{"402", "402: the balance is too low.", "", none(PaymentRequired)},
		{"403", "403 that names the model: no access to it.", "", none(Forbidden)},
		{"challenge", "403 with a page that wants a browser.", "", none(Challenge)},
		{"404", "404: the model does not exist.", "", none(ModelNotFound)},
		{"context-length", "400: the prompt is too long for the model.", "", none(ContextLength)},
		{"content-filter", "400: the prompt was refused by a filter.", "", none(ContentPolicy)},
		{"400", "400: a parameter is out of range.", "", none(Invalid)},
		{"500", "500 with a JSON error.", "", none(ServerError)},
		{"502", "502 with a proxy's page.", "", none(BadGateway)},
		{"503", "503 with Retry-After in seconds.", "2s", func(p param) Fault { return Unavailable(RetryAfter(p.d)) }},
		{"503-no-hint", "503 without a hint.", "", always(Unavailable(Hint{}))},
		{"529", "529: overloaded.", "", none(Overloaded)},
		{"model-overloaded", "503 that blames the model alone.", "", always(ModelOverloaded(Hint{}))},
		{"hang", "Accepts the request and never answers.", "", none(Hang)},
		{"reset", "A TCP reset before any byte of the answer.", "", none(ResetBeforeHeaders)},
		{"close", "The connection closes before any byte of the answer.", "", none(CloseBeforeHeaders)},
		{"reset-reused", "A TCP reset on connections that carried a request before; well on new ones.", "", none(ResetReused)},
		{"close-reused", "As reset-reused, with a close in good order.", "", none(CloseReused)},
		{"slow-headers", "A good answer whose status line comes late.", "5s", func(p param) Fault { return SlowHeaders(p.d) }},
		{"slow-first-token", "Headers at once, the first content late.", "5s", func(p param) Fault { return SlowFirstContent(p.d, 0) }},
		{"slow-pings", "As slow-first-token, with comments every second until then.", "5s", func(p param) Fault { return SlowFirstContent(p.d, time.Second) }},
		{"slow-content", "This much time between two pieces of content.", "500ms", func(p param) Fault { return SlowContent(p.d) }},
		{"cut", "A TCP reset after so many pieces of content.", "3", func(p param) Fault { return Cut(p.n, CutReset) }},
		{"cut-fin", "The connection closes after so many pieces of content, inside the chunked coding.", "3", func(p param) Fault { return Cut(p.n, CutFIN) }},
		{"cut-quiet", "The answer ends after so many pieces of content, properly for HTTP.", "3", func(p param) Fault { return Cut(p.n, CutQuiet) }},
		{"cut-unframed", "As cut-quiet, in an answer that only the connection's end delimits.", "3", func(p param) Fault { return Cut(p.n, CutUnframed) }},
		{"stall", "Falls silent after so many pieces of content, with the connection open.", "3", func(p param) Fault { return Stall(p.n, 0) }},
		{"stall-pings", "As stall, with a comment every second.", "3", func(p param) Fault { return Stall(p.n, time.Second) }},
		{"error-event", "200, then an error as the first event.", "", always(ErrorEvent(0, overloaded))},
		{"error-late", "An error event after so many pieces of content.", "3", func(p param) Fault { return ErrorEvent(p.n, broken) }},
		{"malformed", "The n-th event does not parse; a plain answer is broken JSON.", "1", func(p param) Fault { return BadEvent(p.n) }},
		{"no-done", "A good stream without [DONE].", "", none(NoDone)},
		{"no-finish", "A stream that ends without a finish reason.", "", none(NoFinish)},
		{"empty", "200 with nothing in it.", "", none(Empty)},
		{"no-content", "200 with a role and an end, but no content.", "", none(NoContent)},
		{"no-choices", "200 with choices: [].", "", none(NoChoices)},
		{"html-200", "200 with a page.", "", none(HTML200)},
		{"gzip", "A good answer, compressed unasked.", "", none(Gzip)},
	}
}

// ParseFault reads a fault's name as model names have it after "fault/": "429", "429:30s", "cut:8".
// Durations are at most an hour, numbers at most 10000. Its error says what would have been right.
func ParseFault(s string) (Fault, error) {
	name, value, given := strings.Cut(s, ":")
	for _, f := range Faults() {
		if f.Name != name {
			continue
		}
		switch {
		case f.Default == "" && given:
			return Fault{}, fmt.Errorf("the fault %q takes no parameter; leave out %q", name, ":"+value)
		case !given:
			value = f.Default
		}
		var p param
		if _, err := strconv.Atoi(f.Default); err == nil {
			n, err := strconv.Atoi(value)
			if err != nil || n < 0 || n > 10000 {
				return Fault{}, fmt.Errorf("the fault %q takes a number from 0 to 10000, as in %s:%s; %q is none", name, name, f.Default, value)
			}
			p.n = n
		} else if f.Default != "" {
			d, err := time.ParseDuration(value)
			if err != nil || d < 0 || d > time.Hour {
				return Fault{}, fmt.Errorf("the fault %q takes a duration up to 1h, as in %s:%s; %q is none", name, name, f.Default, value)
			}
			p.d = d
		}
		return f.make(p), nil
	}
	names := make([]string, 0, 64)
	for _, f := range Faults() {
		names = append(names, f.Name)
	}
	return Fault{}, fmt.Errorf("there is no fault %q; the faults are %s", name, strings.Join(names, ", "))
}
