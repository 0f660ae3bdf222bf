package failover

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// Outcome says how an attempt ended.
type Outcome string

// The outcomes of an attempt.
const (
	OutcomeRunning    Outcome = "running"
	OutcomeAnswered   Outcome = "answered"   // a good end
	OutcomeFailed     Outcome = "failed"     // by the verdict
	OutcomeSuperseded Outcome = "superseded" // another attempt was faster, or the request was over
	OutcomeHedgeLost  Outcome = "hedge_lost" // the same in a race that a hedge was part of
	OutcomeCanceled   Outcome = "canceled"   // the client left
	OutcomeDeadline   Outcome = "deadline"   // our own deadline passed
)

// Record is the story of one attempt.
type Record struct {
	Key          resilience.Key
	At           time.Time
	Outcome      Outcome
	Verdict      resilience.Verdict
	Status       int
	Probe        bool
	Resumes      bool          // it was to finish the answer of an earlier attempt
	Hedge        bool          // it was started beside one that was slow
	LastResort   bool          // the target was out, and nothing else was left
	FirstContent time.Duration // 0 while none has come
	Duration     time.Duration // to its end
}

func (r *Record) end(o Outcome, v resilience.Verdict, status int, now time.Time) {
	r.Outcome, r.Verdict, r.Status, r.Duration = o, v, status, now.Sub(r.At)
}

// Skip is a target that was not tried, and why.
type Skip struct {
	Key resilience.Key
	resilience.Exclusion
	// Unfit says that the target could do no better with this request; there is no exclusion.
	Unfit bool
}

// Cause says why a request was given up.
type Cause uint8

// The causes.
const (
	CauseNone         Cause = iota
	CauseExhausted          // no target is eligible and none will be in time
	CauseNoConnection       // the plan has no target
	CauseRequest            // the request itself is at fault
	CauseDeadline           // the request's deadline passed
	CauseQueueFull          // too many requests wait already
	CauseLocal              // the machine's own network is out
	CauseBusy               // every place on the connections is taken, and too many wait or have waited long enough
)

// Report is why a request failed: what was tried, what was skipped, and when to come back.
type Report struct {
	Cause    Cause
	Attempts []Record
	Skipped  []Skip
	// First is the failure that the client is to see when the request itself is at fault.
	First *Record
	// RetryAfter is the soonest recovery, 0 where none is known.
	RetryAfter time.Duration
	// Class is what all causes together come to.
	Class Class
}

// Class sums up why all targets failed or were out (law X1).
type Class uint8

// The classes.
const (
	ClassOutage  Class = iota // upstream failures and mixed causes
	ClassLimited              // rate limits and quotas alone
	ClassTimeout              // timeouts alone
	ClassBad                  // answers that cannot be used: malformed or empty
)

// Records returns the story of the attempts so far.
func (r *Request) Records() []Record { return r.records }

// Report says why the request was given up. It is valid after a GiveUp.
func (r *Request) Report(now time.Time) Report {
	rep := Report{Cause: r.cause, Attempts: r.records, First: r.stop}
	var kinds []resilience.Kind
	for i := range r.records {
		if a := &r.records[i]; a.Outcome == OutcomeFailed && blames(a.Verdict.Scope) {
			kinds = append(kinds, a.Verdict.Kind)
		}
	}
	for i := range r.state {
		t, s := &r.plan.Targets[i], &r.state[i]
		if s.unfit && !s.barred && !r.asked(t.Key()) {
			rep.Skipped = append(rep.Skipped, Skip{Key: t.Key(), Unfit: true})
		}
	}
	r.each(func(i int, s *resilience.Standing) bool {
		key := r.plan.Targets[i].Key()
		if !s.Out {
			if x, out := r.short(i); out {
				s.Out, s.Exclusion = true, x
			}
		}
		again := s.RetryAfter
		if !s.Out {
			// Nothing excludes it: it may be asked again as soon as a retry would, or when it
			// said itself, which counts also where no gate keeps it.
			again = max(firstRetry, r.state[i].backAt.Sub(now))
		} else if !r.asked(key) {
			rep.Skipped = append(rep.Skipped, Skip{Key: key, Exclusion: s.Exclusion})
			if s.Layer == resilience.LayerFit {
				return true // it says nothing of the upstream
			}
			kinds = append(kinds, s.Kind)
		}
		if again > 0 && (rep.RetryAfter == 0 || again < rep.RetryAfter) {
			rep.RetryAfter = again
		}
		return true
	})
	rep.Class = classOf(kinds)
	return rep
}

func (r *Request) asked(key resilience.Key) bool {
	return slices.ContainsFunc(r.records, func(a Record) bool { return a.Key == key })
}

// blames reports whether a failure of that scope says something about the upstream.
func blames(s resilience.Scope) bool {
	return s >= resilience.ScopeModel && s <= resilience.ScopeProvider
}

// classOf finds what all kinds have in common.
func classOf(kinds []resilience.Kind) Class {
	if len(kinds) == 0 {
		return ClassOutage
	}
	class := kindClass(kinds[0])
	for _, k := range kinds[1:] {
		if kindClass(k) != class {
			return ClassOutage
		}
	}
	return class
}

func kindClass(k resilience.Kind) Class {
	switch k {
	case resilience.KindRateLimit, resilience.KindQuotaExhausted:
		return ClassLimited
	case resilience.KindTimeout:
		return ClassTimeout
	case resilience.KindMalformedResponse, resilience.KindEmptyResponse:
		return ClassBad
	}
	return ClassOutage
}
