package failover

import (
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
	seen := make(map[resilience.Key]bool, len(r.records))
	for _, a := range r.records {
		seen[a.Key] = true
	}
	var kinds []resilience.Kind
	for _, a := range r.records {
		if a.Outcome == OutcomeFailed && a.Verdict.Scope != resilience.ScopeRequest {
			kinds = append(kinds, a.Verdict.Kind)
		}
	}
	soonest := time.Duration(0)
	for _, i := range r.order {
		t := &r.plan.Targets[i]
		x, out := t.Check()
		switch {
		case out:
			if !seen[t.Key()] {
				rep.Skipped = append(rep.Skipped, Skip{Key: t.Key(), Exclusion: x})
				kinds = append(kinds, x.Kind)
			}
			if x.RetryAfter > 0 && (soonest == 0 || x.RetryAfter < soonest) {
				soonest = x.RetryAfter
			}
		case r.unfit[i] && !seen[t.Key()]:
			rep.Skipped = append(rep.Skipped, Skip{Key: t.Key(), Unfit: true})
		case r.unfit[i]:
		default:
			// Nothing excludes it: it may be asked again as soon as a retry would.
			soonest = firstRetry
		}
	}
	for i := range r.records { // an upstream's own word counts also where no gate keeps it
		if u := back(r.records[i].Verdict, r.records[i].At.Add(r.records[i].Duration)); soonest == firstRetry && u.After(now) {
			soonest = u.Sub(now)
		}
	}
	rep.RetryAfter = soonest
	rep.Class = classOf(kinds)
	return rep
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
