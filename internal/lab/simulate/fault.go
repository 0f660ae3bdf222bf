package simulate

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"omniroute/classify"
	"omniroute/internal/lab"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// effect is what a fault does to an attempt.
type effect struct {
	hangs   bool
	delay   time.Duration // added to the first content
	gap     time.Duration // between two pieces of content
	failure *resilience.Verdict
	status  int
	// late says that the failure comes after the first content, after so many pieces of it and then
	// wait.
	late   bool
	pieces int
	wait   time.Duration
}

// faults turns the names of faults into what they do. Verdicts are the classifier's, on the very
// bytes that the demo's providers answer.
type faults struct {
	rules *classify.Classifier
	known map[faultKey]*effect
}

type faultKey struct {
	name, provider, dialect, model string
	scope                          resilience.Scope
	stream                         bool
}

// of returns what a fault does to an attempt on a target.
func (f *faults) of(name string, up *route.Upstream, stream bool) *effect {
	return f.once(name, up, stream, func() *effect { return f.make(name, up, stream) })
}

func (f *faults) once(name string, up *route.Upstream, stream bool, make func() *effect) *effect {
	key := faultKey{name, up.Provider.ID, string(up.Dialect), up.Model, up.RateLimitScope, stream}
	e := f.known[key]
	if e == nil {
		e = make()
		f.known[key] = e
	}
	return e
}

func (f *faults) make(name string, up *route.Upstream, stream bool) *effect {
	kind, value, _ := strings.Cut(name, ":")
	if value == "" {
		for _, info := range lab.Faults() {
			if info.Name == kind {
				value = info.Default
			}
		}
	}
	d, _ := time.ParseDuration(value) // a number where it is none; the name was checked
	n, _ := strconv.Atoi(value)
	in := inputOf(up)
	switch kind {
	case "hang":
		return &effect{hangs: true}
	case "slow-headers", "slow-first-token", "slow-pings":
		return &effect{delay: d}
	case "slow-content":
		return &effect{gap: d}
	case "no-done", "gzip", "reset-reused", "close-reused": // these are good answers
		return &effect{}
	case "reset", "close":
		in.Phase, in.Err = classify.PhaseHeaders, io.EOF
		if kind == "reset" {
			in.Err = syscall.ECONNRESET
		}
		return f.failing(in, false, 0, 0)
	case "cut", "cut-fin", "cut-quiet", "cut-unframed", "no-finish":
		in.Phase, in.Status, in.Err = classify.PhaseMidStream, http.StatusOK, &classify.CutError{Content: stream}
		if !stream || n == 0 && kind != "no-finish" {
			in.Phase = classify.PhaseBody
			return f.failing(in, false, 0, 0)
		}
		if kind == "no-finish" {
			n = math.MaxInt32
		}
		return f.failing(in, true, n, 0)
	case "stall", "stall-pings":
		if !stream || n == 0 {
			return &effect{hangs: true}
		}
		const idle = 60 * time.Second // relay.idle_timeout's default
		in.Phase, in.Status, in.Err = classify.PhaseMidStream, http.StatusOK, &classify.TimeoutError{Phase: classify.PhaseMidStream, Timer: "idle_timeout", After: idle}
		return f.failing(in, true, n, idle)
	}
	fault, err := lab.ParseFault(name)
	if err != nil {
		panic(err) // it was checked
	}
	ans := record(fault, up.Model, stream)
	in.Status, in.Header, in.Body = ans.status, ans.header, ans.body.Bytes()
	if late := kind == "error-late" || kind == "malformed"; late && stream && n > 0 && ans.status == http.StatusOK {
		if kind == "malformed" {
			return &effect{} // it is dropped, and the answer goes on
		}
		in.Phase, in.Body = classify.PhaseMidStream, lastEvent(in.Body)
		return f.failing(in, true, n, 0)
	}
	if stream && ans.status == http.StatusOK {
		in.Phase = classify.PhaseFirstEvent
	}
	return f.failing(in, false, 0, 0)
}

func (f *faults) failing(in classify.Input, late bool, pieces int, wait time.Duration) *effect {
	v := f.rules.Classify(in)
	if !v.Until.IsZero() { // it is met at other times too
		v.RetryAfter, v.Until = max(v.RetryAfter, v.Until.Sub(in.Now)), time.Time{}
	}
	if v.Scope == resilience.ScopeNone { // as the relay does with an answer that it cannot use
		v = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindMalformedResponse, RetryElsewhere: true, Rule: "relay.unusable"}
	}
	return &effect{failure: &v, status: in.Status, late: late, pieces: pieces, wait: wait}
}

// limited is the refusal of a rate limit that states how long to wait, in whole seconds.
func (f *faults) limited(after time.Duration, up *route.Upstream, stream bool) *effect {
	wait := seconds(max(math.Ceil(after.Seconds()), 1))
	return f.once("limited for "+wait.String(), up, stream, func() *effect {
		in, ans := inputOf(up), record(lab.RateLimited(lab.RetryAfter(wait)), up.Model, stream)
		in.Status, in.Header, in.Body = ans.status, ans.header, ans.body.Bytes()
		return f.failing(in, false, 0, 0)
	})
}

func inputOf(up *route.Upstream) classify.Input {
	return classify.Input{Provider: up.Provider.ID, Dialect: string(up.Dialect), Model: up.Model, RateLimitScope: up.RateLimitScope, Now: epoch}
}

// answer is what a provider has written.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Flush() {}

// record lets a simulated provider answer one request with a fault.
func record(f lab.Fault, model string, stream bool) *answer {
	p := lab.New(lab.Options{Script: []lab.Phase{lab.Always(f)}, Now: func() time.Time { return epoch }})
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, model, stream)
	r, err := http.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(body)) //nolint:noctx // nothing is sent
	if err != nil {
		panic(err) // a constant path
	}
	a := &answer{header: http.Header{}}
	p.ServeHTTP(a, r)
	a.WriteHeader(http.StatusOK)
	return a
}

func lastEvent(stream []byte) []byte {
	stream = bytes.TrimSpace(stream)
	if i := bytes.LastIndex(stream, []byte("\n\n")); i >= 0 {
		stream = stream[i+2:]
	}
	return append(stream, "\n\n"...)
}
