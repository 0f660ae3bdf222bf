package failover

import (
	"time"

	"omniroute/resilience"
)

// beginResume looks for an attempt that finishes the answer of a, which broke off (law S8). The
// targets that failed before stay tried; the one that broke off may be asked once more, and
// first: what it has begun is its own.
func (r *Request) beginResume(a *Attempt, v resilience.Verdict, now time.Time) Action {
	r.committed, r.resuming = nil, true
	r.last = a.index
	r.state[a.index].tried, r.state[a.index].backAt = false, back(v, now)
	return r.resume(now)
}

// resume dispatches the next attempt at finishing the answer. The client sits before half an
// answer meanwhile, so that nothing is waited for but within the request's patience.
func (r *Request) resume(now time.Time) Action {
	switch {
	case r.dispatched >= r.plan.Limits.MaxAttempts:
		return r.giveUp(CauseExhausted)
	case !now.Before(r.Deadline()):
		return r.giveUp(CauseDeadline)
	}
	if !r.done(r.last) {
		if a := r.dispatch(r.last, now, usual); a != nil {
			return Action{Type: Dispatch, Attempt: a}
		}
	}
	if a := r.dispatchNext(now, anyone); a != nil {
		return Action{Type: Dispatch, Attempt: a}
	}
	var at time.Time
	r.each(func(i int, s *resilience.Standing) bool {
		if !r.state[i].tried && s.Out && s.RetryAfter > 0 && !r.unsuited(i) {
			if until := now.Add(s.RetryAfter); at.IsZero() || until.Before(at) {
				at = until
			}
		}
		return true
	})
	if at.IsZero() || at.Sub(now) > r.patience || !at.Before(r.Deadline()) {
		return r.giveUp(CauseExhausted)
	}
	r.pausing, r.pauseFrom = resumption, now
	return Action{Type: Pause, Until: at}
}

// done reports whether a target is out of the question for this request.
func (r *Request) done(i int) bool { return r.state[i].tried || r.state[i].unfit }
