// Package telemetry holds what the gateway tells about its requests, and counts it.
//
// A Story is what became of one request; who makes stories and who keeps them need not know each
// other. Metrics turn stories and the engine's status and events into numbers for Prometheus.
// Neither ever holds a prompt, an answer or a secret.
package telemetry

import (
	"net/http"
	"time"

	"omniroute/failover"
	"omniroute/internal/dialect"
)

// Story is what became of one request of a client. It holds no prompt, no answer and no secret.
// Whoever gets one may keep it: nobody changes it any more.
type Story struct {
	// ID is the request id that the client was given.
	ID string
	// At is when the request came.
	At time.Time
	// Dialect, Method and Path are how the client asked, Model what it asked for.
	Dialect, Method, Path, Model string
	// Route is the name of the plan that Model stands for, empty when it stands for nothing.
	Route string
	// Stranger says that whoever asked is none of the clients: there was no key of theirs. Such requests are counted,
	// but where few are kept they must not push out those of clients.
	Stranger bool
	// TraceParent is the client's traceparent header, where it may be one.
	TraceParent string
	// Stream says that the client asked for a stream.
	Stream bool
	// Status is the HTTP status that the client got, 499 when it left before the end.
	Status int
	// Code is the error code that the client got, empty for an answer. Broke is why an answer
	// ended in the middle, or why none began after its status was sent.
	Code, Broke string
	// Session says what the target that answered is to the request's session: its home, its new home,
	// or a detour; empty where no session was named or nothing was to choose.
	Session string
	// Usage is what the upstream said of tokens; of a recovered answer the sum of what was said.
	Usage dialect.Usage
	// Recovery is what became of an answer that broke off, where the combo has such finished by
	// another attempt; nil where none broke off.
	Recovery *Recovery
	// Duration is the time to the end of the answer. FirstContent is the time to the first content
	// that the client got, 0 when it got none.
	Duration, FirstContent time.Duration
	// Attempts are all upstream calls in the order of their dispatch. Skipped are the targets that
	// were not tried: of a request that failed all of them, of one that was answered those that could
	// not take it.
	Attempts []failover.Record
	// Gaps are how long the client's stream waited for its pieces, by the place of the attempt that they
	// came from; nil for attempts that gave it none. It may be shorter than Attempts.
	Gaps    []*Gaps
	Skipped []failover.Skip
}

// Answered returns the attempt whose content the client got, where an answer was finished by
// another one the last of them, and where it got none the last attempt; nil when there is none.
func (s *Story) Answered() *failover.Record {
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		if s.Attempts[i].FirstContent > 0 {
			return &s.Attempts[i]
		}
	}
	if n := len(s.Attempts); n > 0 {
		return &s.Attempts[n-1]
	}
	return nil
}

// Hedged tells what became of the last attempt that was started beside a slow one: won, lost,
// failed or canceled; empty when there is none.
func (s *Story) Hedged() (result string) {
	for i := range s.Attempts {
		if a := &s.Attempts[i]; a.Hedge {
			result = hedgeResult(a)
		}
	}
	return result
}

func hedgeResult(a *failover.Record) string {
	switch {
	case a.FirstContent > 0:
		return "won"
	case a.Outcome == failover.OutcomeHedgeLost:
		return "lost"
	case a.Outcome == failover.OutcomeFailed:
		return "failed"
	}
	return "canceled"
}

// ParentOf returns a traceparent header of the one form that there is, and nothing for anything else: who traces looks
// at its parts.
func ParentOf(h http.Header) string {
	if v := h["Traceparent"]; len(v) == 1 && len(v[0]) == parentLength {
		return v[0]
	}
	return ""
}

const parentLength = len("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
