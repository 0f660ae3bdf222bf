package failover

import (
	"time"

	"omniroute/resilience"
)

// Answering is what is left of a request once its answer is on its way and nothing else will be tried:
// the attempt that answers, and the story so far. An answer may take long, so that it is small. It is
// for one goroutine.
type Answering struct {
	attempt *Attempt // nil once it is over
	records []Record // by now nobody else's
	stream  bool
}

// first is the first attempt and its record, which are there as long as the answer.
type first struct {
	Attempt
	records [1]Record
}

// Part takes the answer out of a request, after a Commit, and closes the handle: what is told to it from
// then on has no effect.
func (h *Handle) Part() Answering {
	p := h.answering()
	h.over = true
	h.Close()
	return p
}

// answering is the request's answer, which must be committed.
func (r *Request) answering() Answering { return Answering{r.committed, r.records, r.stream} }

// End settles the attempt: its answer is over. A verdict of ScopeNone is a good end. Status is the
// upstream's HTTP status.
func (p *Answering) End(v resilience.Verdict, status int, now time.Time) {
	a := p.attempt
	if a == nil {
		return
	}
	out := OutcomeFailed
	switch v.Scope {
	case resilience.ScopeNone:
		out = OutcomeAnswered
		a.permit.Success(now)
	case resilience.ScopeClient, resilience.ScopeLocal:
		out = OutcomeCanceled
		a.permit.Neutral(now)
	default:
		a.permit.Failure(v, now)
	}
	p.ends(out, v, status, now)
}

// Abandon settles an attempt whose answer is not over, and blames nobody (law A9).
func (p *Answering) Abandon(now time.Time) {
	if p.attempt != nil {
		p.attempt.permit.Neutral(now)
		p.ends(OutcomeCanceled, resilience.Verdict{}, 0, now)
	}
}

func (p *Answering) ends(o Outcome, v resilience.Verdict, status int, now time.Time) {
	p.attempt.ends(&p.records[p.attempt.record], o, v, status, p.stream, true, now)
	p.attempt = nil
}

// Records returns the story of the request's attempts.
func (p *Answering) Records() []Record { return p.records }
