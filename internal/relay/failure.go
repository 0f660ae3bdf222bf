package relay

import (
	"bytes"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/translate"
	"omniroute/resilience"
)

const (
	// unknownRetry is what a client is told where no recovery is known.
	unknownRetry = 60 * time.Second
	// Official clients hang or hammer on waits outside of these bounds.
	minRetryHeader, maxRetryHeader = time.Second, 60 * time.Second
)

// giveUp answers a request that no target has answered.
func (x *exchange) giveUp() {
	rep := x.handle.Report(time.Now())
	out := x.errorReport(rep)
	x.story.Skipped = slices.Concat(x.unfit, rep.Skipped)
	if x.stopped != nil { // and so no stream of which anything was sent
		x.w.Header()["X-Should-Retry"] = []string{"false"} // official clients repeat a 5xx by themselves
	}
	x.sayError(out, rep.Cause != failover.CauseRequest)
}

// errorReport puts a failure into the words of the client's API (law X1).
func (x *exchange) errorReport(rep failover.Report) *dialect.ErrorReport {
	out := &dialect.ErrorReport{RequestID: x.ID, RetryAfter: rep.RetryAfter, Code: dialect.CodeAllTargetsUnavailable}
	for i := range rep.Attempts {
		a := &rep.Attempts[i]
		out.Attempts = append(out.Attempts, dialect.Attempted{Key: a.Key, Status: a.Status, Kind: a.Verdict.Kind, Scope: a.Verdict.Scope, Duration: a.Duration})
	}
	x.skipUnfit(out)
	for _, s := range rep.Skipped {
		d := dialect.Skipped{Key: s.Key, Layer: s.Layer, Kind: s.Kind, Until: s.Until, RetryAfter: s.RetryAfter}
		if s.Unfit {
			d.Kind = rep.First.Verdict.Kind
		}
		out.Skipped = append(out.Skipped, d)
	}
	switch rep.Cause {
	case failover.CauseRequest:
		if x.stopped != nil {
			x.notRepeated(out, *x.stopped)
			return out
		}
		x.requestFault(out, rep.First)
		return out
	case failover.CauseNoConnection:
		out.Code = dialect.CodeNoConnection
		out.Message = fmt.Sprintf("No connection is configured for %s; add one to the gateway's configuration.", x.Route.Name)
	case failover.CauseDeadline:
		out.Code = dialect.CodeDeadlineExceeded
		out.Message = "No target has answered before the request's deadline."
	case failover.CauseQueueFull:
		out.Code = dialect.CodeQueueFull
		out.Message = "Too many requests wait for this target to recover already."
	case failover.CauseBusy:
		out.Code = dialect.CodeQueueFull
		out.Message = fmt.Sprintf("As many requests run for %s as its connections may have at once (max_concurrent), and no place was free in time.", x.Route.Name)
	case failover.CauseLocal:
		out.Code = dialect.CodeLocalNetwork
		out.Message = "The gateway's own network seems to be out: no upstream can be reached."
	default:
		x.unavailable(out, rep)
	}
	if out.RetryAfter == 0 {
		out.RetryAfter = unknownRetry
	}
	return out
}

// notRepeated says that the upstream may have done what was asked for, although it failed.
func (x *exchange) notRepeated(out *dialect.ErrorReport, v resilience.Verdict) {
	out.Code, out.RetryAfter, out.Status = dialect.CodeUpstreamError, 0, http.StatusBadGateway
	if v.Kind == resilience.KindTimeout {
		out.Status = http.StatusGatewayTimeout
	}
	out.Message = fmt.Sprintf("The upstream failed (%s) after the request was sent to it. It may have made what was asked for, so the request was not repeated; look before you send it again.", v.Kind)
}

// unavailable chooses one status for all causes.
func (x *exchange) unavailable(out *dialect.ErrorReport, rep failover.Report) {
	name := x.Route.Name
	switch {
	case unknownModel(rep):
		out.Code, out.Status = dialect.CodeModelNotFound, http.StatusNotFound
		out.Message = fmt.Sprintf("No upstream knows the model behind %s.", name)
	case rep.Class == failover.ClassLimited:
		out.Status = http.StatusTooManyRequests
		out.Message = fmt.Sprintf("Every target of %s is rate limited or out of quota.", name)
	case rep.Class == failover.ClassTimeout:
		out.Code, out.Status = dialect.CodeUpstreamError, http.StatusGatewayTimeout
		out.Message = fmt.Sprintf("No target of %s has answered in time.", name)
	case rep.Class == failover.ClassBad:
		out.Code, out.Status = dialect.CodeUpstreamError, http.StatusBadGateway
		out.Message = fmt.Sprintf("No target of %s has given a usable answer.", name)
		if n := len(rep.Attempts); n > 0 && rep.Attempts[n-1].Verdict.Kind == resilience.KindEmptyResponse {
			out.Message = fmt.Sprintf("The answers of %s were empty (empty_response).", name)
		}
	default:
		out.Status = http.StatusServiceUnavailable
		out.Message = fmt.Sprintf("No target of %s is available: %s failed, %s out.", name, count(len(rep.Attempts), "attempt", "attempts"), count(len(rep.Skipped), "target is", "targets are"))
	}
	if said := x.lastWords(); said != "" {
		out.Message += " The last one said: " + said
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + many
}

// lastWords returns what the upstream of the last attempt said, as far as it said anything.
func (x *exchange) lastWords() string {
	for i := len(x.calls) - 1; i >= 0; i-- {
		if m := x.calls[i].lastWords(); m != "" {
			return m
		}
	}
	return ""
}

// unknownModel reports whether every target said, or has said, that there is no such model.
func unknownModel(rep failover.Report) bool {
	for _, a := range rep.Attempts {
		if a.Verdict.Kind != resilience.KindModelNotFound {
			return false
		}
	}
	for _, s := range rep.Skipped {
		if s.Kind != resilience.KindModelNotFound {
			return false
		}
	}
	return len(rep.Attempts)+len(rep.Skipped) > 0
}

// plainWords returns what an error says that is a short text and nothing more, "" for any other.
func plainWords(h http.Header, text []byte) string {
	const longest = 1000
	text = bytes.TrimSpace(text)
	odd := func(r rune) bool { return r == utf8.RuneError || unicode.IsControl(r) && !unicode.IsSpace(r) }
	if len(text) > longest || bytes.ContainsFunc(text, odd) || dialect.Sniff(h.Get("Content-Type"), text) != dialect.FormatUnknown {
		return ""
	}
	return string(text)
}

// requestFault passes on what the upstream said of the request. An upstream account's trouble is
// never the client's, so that some statuses are not passed on.
func (x *exchange) requestFault(out *dialect.ErrorReport, first *failover.Record) {
	var fault dialect.UpstreamError
	for _, c := range x.calls {
		if c.attempt.Target.Key() == first.Key && c.lastWords() != "" {
			if fault = *c.fault; c.translation != nil {
				fault = translate.Fault(fault, first.Verdict.Kind)
			}
			break
		}
	}
	out.RetryAfter = 0
	out.Code, out.Type, out.Param, out.Message = fault.Code, fault.Type, fault.Param, fault.Message
	if out.Message == "" && first.Verdict.Rule == ruleNoSuchCall {
		out.Message = "The upstream has no such call."
	}
	if out.Message == "" {
		out.Message = "The upstream refused the request (" + first.Verdict.Kind.String() + ")."
	}
	if out.Code == "" {
		out.Code = first.Verdict.Kind.String()
	}
	switch s := first.Status; {
	case first.Verdict.Rule == ruleNoSuchCall: // clients that hear this of a count do it by themselves
		out.Status = http.StatusNotFound
	case s >= 400 && s < 500 && s != 401 && s != 403 && s != 407 && s != 408 && s != 429:
		out.Status = s
	case first.Verdict.Kind == resilience.KindTooLarge:
		out.Status = http.StatusRequestEntityTooLarge
	default:
		out.Status = http.StatusBadRequest
	}
}

// storyCode is what the story and the log say of an error's code: the code, unless an upstream has put
// prose in its place, which may repeat the prompt.
func storyCode(code string) string {
	const longest = 64
	prose := func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.' || r == ':')
	}
	if len(code) > longest || strings.ContainsFunc(code, prose) {
		return dialect.CodeUpstreamError
	}
	return code
}

// WriteError writes an error answer. With retry it carries the headers that tell clients when to
// come back (law X2).
func WriteError(w http.ResponseWriter, d dialect.Dialect, rep *dialect.ErrorReport, retry bool) {
	h := w.Header()
	h["Content-Type"] = []string{dialect.ErrorContentType}
	if retry {
		after := rep.RetryAfter
		if after == 0 {
			after = unknownRetry
		}
		if after > maxRetryHeader {
			h["X-Should-Retry"] = []string{"false"}
		}
		after = min(max(after, minRetryHeader), maxRetryHeader)
		h["Retry-After"] = []string{strconv.FormatInt(int64((after+time.Second-1)/time.Second), 10)}
		h["Retry-After-Ms"] = []string{strconv.FormatInt(int64((after+time.Millisecond-1)/time.Millisecond), 10)}
	}
	body := d.ErrorBody(rep)
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	w.WriteHeader(d.ErrorStatus(rep))
	w.Write(body)
}
