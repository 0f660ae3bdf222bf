package relay

import (
	"net/http"
	"strings"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/fit"
	"omniroute/resilience"
)

// lastingPaths are the calls that make something which stays at the upstream.
var lastingPaths = []string{"/batches", "/files", "/uploads", "/fine_tuning/", "/fine-tunes", "/videos", "/vector_stores",
	"/assistants", "/threads", "/containers", "/evals", "/conversations"}

// lasting reports whether the request makes something that stays, so that a second one would
// make it twice (law R10).
func lasting(q *dialect.Request) bool {
	for _, p := range lastingPaths {
		if i := strings.Index(q.Path, p); i >= 0 {
			if rest := q.Path[i+len(p):]; rest == "" || rest[0] == '/' || p[len(p)-1] == '/' {
				return true
			}
		}
	}
	return strings.HasSuffix(q.Path, "/responses") && inBackground(q.Body)
}

// inBackground reports whether the object has "background": true at its top.
func inBackground(body []byte) bool {
	s := jsonscan.New(body)
	for ok := s.Object(); ok; ok = s.More('}') {
		if string(s.Key()) == "background" {
			return s.Peek() == 't'
		}
		s.Skip()
	}
	return false
}

// failed is the event of a failure. A lasting request is not repeated unless the upstream
// provably did not get it or refused it. The loop is then told that the client's request is at
// fault, which is what stops it; what the upstream did wrong is put down apart from it.
func (x *exchange) failed(c *call, v resilience.Verdict) failover.Event {
	ev := failover.Event{Type: failover.Failed, Attempt: c.attempt.ID, Status: c.status, Verdict: v}
	if v.Kind == resilience.KindContextLength {
		ev.Window = fit.Said(c.lastWords())
	}
	if !x.lasting || c.repeatable(v) || v.Scope == resilience.ScopeClient {
		return ev
	}
	x.rl.o.Runner.Engine().RecordFailure(c.attempt.Target.Key(), v)
	x.mu.Lock()
	x.stopped = &v
	x.mu.Unlock()
	ev.Verdict = resilience.Verdict{Scope: resilience.ScopeClient, Kind: v.Kind, Rule: "relay.not_repeated", Evidence: v.String()}
	return ev
}

// repeatable reports whether a lasting request that failed has made nothing.
func (c *call) repeatable(v resilience.Verdict) bool {
	switch {
	case v.Scope == resilience.ScopeLocal:
		return c.status == 0 && c.phaseNow() == classify.PhaseDial
	case v.Dial, v.Rule == "transport.closing", c.status == 0 && c.phaseNow() == classify.PhaseDial:
		return true
	case c.status == http.StatusServiceUnavailable:
		return c.header.Get("Retry-After") != "" || c.header.Get("Retry-After-Ms") != ""
	}
	return c.status >= 400 && c.status < 500
}
