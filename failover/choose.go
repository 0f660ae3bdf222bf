package failover

import (
	"time"

	"omniroute/resilience"
)

const firstRetry = 250 * time.Millisecond

// next decides what to do when nothing is running.
func (r *Request) next(now time.Time) Action {
	switch {
	case r.left == 0:
		return r.giveUp(CauseNoConnection)
	case r.dispatched >= r.plan.Limits.MaxAttempts:
		return r.giveUp(CauseExhausted)
	case !now.Before(r.Deadline()):
		return r.giveUp(CauseDeadline)
	}
	if until, ok := r.worthWaiting(now); ok {
		r.pausing, r.pauseFrom = patient, now
		return Action{Type: Pause, Until: until}
	}
	if a := r.dispatchNext(now, anyone); a != nil {
		return Action{Type: Dispatch, Attempt: a}
	}
	return r.wait(now)
}

// choice says which targets will do.
type choice uint8

const (
	anyone  choice = iota // whoever is eligible
	noProbe               // nobody who would have to prove himself
	sound                 // nobody with anything against him, nor one that is busy with the request
)

// dispatchNext sends the first target that will do and was not tried yet.
func (r *Request) dispatchNext(now time.Time, who choice) *Attempt {
	if r.dispatched >= r.plan.Limits.MaxAttempts {
		return nil
	}
	r.open.reset(r, who)
	for i := r.pick(now); i >= 0; i = r.pick(now) {
		if a := r.dispatch(i, now, false); a != nil {
			return a
		}
		r.open.close(i)
	}
	return nil
}

// dispatch takes the target's permit and makes the attempt, or returns nil.
func (r *Request) dispatch(i int, now time.Time, alone bool) *Attempt {
	t := &r.plan.Targets[i]
	acquire := t.Acquire
	if alone {
		acquire = t.AcquireAlone
	}
	permit, err := acquire()
	if err != nil {
		return nil
	}
	a := &r.first
	if r.dispatched > 0 {
		a = new(Attempt)
	}
	r.dispatched++
	*a = Attempt{
		ID: r.dispatched, Target: t, Probe: permit.Probe() || permit.Recheck(), Resumes: r.resuming,
		permit: permit, start: now, index: i, record: len(r.records),
	}
	a.Timeout, a.SuspectAfter = t.timing(r.plan.Limits, r.stream, permit.Probe())
	switch {
	case r.resuming:
		// It may be busy for long with what the client has already, which is no sign of a hang.
		a.SuspectAfter = a.Timeout
	case !r.single && !a.Probe && r.left > 1:
		a.HedgeAfter = t.hedgeAfter(r.plan.Hedge, r.stream)
	}
	r.state[i].tried = true
	r.records = append(r.records, Record{Key: t.Key(), At: now, Outcome: OutcomeRunning, Probe: a.Probe, Resumes: a.Resumes})
	r.running = append(r.running, a)
	t.Pulse.begin(r.stream, now)
	return a
}

// worthWaiting says whether to wait for a target of the entry that failed last rather than to
// move to a later entry (law R2).
func (r *Request) worthWaiting(now time.Time) (time.Time, bool) {
	if !r.plan.Ordered || r.last < 0 || r.patience <= 0 {
		return time.Time{}, false
	}
	entry := r.plan.Targets[r.last].Entry
	sibling, later := false, false
	r.each(func(i int, s *resilience.Standing) bool {
		if !r.state[i].tried && !s.Out {
			sibling = r.plan.Targets[i].Entry == entry
			later = later || !sibling
		}
		return !sibling
	})
	if sibling || !later {
		// A sibling is tried at once; and without a later one the room is the place to wait.
		return time.Time{}, false
	}
	best, at := -1, time.Time{}
	for i := range r.state {
		if r.plan.Targets[i].Entry != entry {
			continue
		}
		until, ok := r.backSoon(i, now)
		if ok && (best < 0 || until.Before(at)) {
			best, at = i, until
		}
	}
	if best < 0 {
		return time.Time{}, false
	}
	r.last = best
	return at, true
}

// backSoon returns when a target that was just tried will be back, if the request's patience
// reaches so far.
func (r *Request) backSoon(i int, now time.Time) (time.Time, bool) {
	s := r.state[i]
	if !s.tried || s.unfit {
		return time.Time{}, false
	}
	until := s.backAt
	if until.IsZero() {
		// A target that let its timeout pass has had its patience: once more would cost as much again.
		if !r.plan.Limits.PatienceForAny || s.silent {
			return time.Time{}, false
		}
		until = now.Add(firstRetry)
	}
	if x, out := r.plan.Targets[i].Check(); out {
		if x.RetryAfter == 0 {
			return time.Time{}, false
		}
		// The exclusion may last longer than the upstream's own word.
		if t := now.Add(x.RetryAfter); t.After(until) {
			until = t
		}
	}
	if until.Before(now) {
		until = now
	}
	return until, until.Sub(now) <= r.patience && until.Before(r.Deadline())
}

// wait decides when no target is eligible: try one again after a pause, recheck, wait for the
// soonest recovery, or give up (laws R1, R3, V10).
func (r *Request) wait(now time.Time) Action {
	again, soonest, found := false, time.Duration(0), false
	any := -1
	r.each(func(i int, s *resilience.Standing) bool {
		any = i
		switch {
		case !s.Out:
			again = true
		case s.Held:
			soonest, found = 0, true
		case s.RetryAfter > 0 && (!found || s.RetryAfter < soonest):
			soonest, found = s.RetryAfter, true
		}
		return true
	})
	left := min(r.waitLeft, r.Deadline().Sub(now))
	if any >= 0 && r.plan.Targets[any].LocalOutage() {
		// Nothing excludes the targets, yet asking them again would not reach them either.
		return r.giveUp(CauseLocal)
	}
	if again {
		pause := firstRetry << min(r.retries, 10)
		if pause > left {
			return r.giveUp(CauseExhausted)
		}
		r.retries++
		r.pausing, r.pauseFrom = retrying, now
		return Action{Type: Pause, Until: now.Add(pause)}
	}
	for i := range r.state {
		if s := &r.state[i]; !s.tried && !s.unfit {
			if a := r.dispatch(i, now, true); a != nil {
				return Action{Type: Dispatch, Attempt: a}
			}
		}
	}
	if !found || left <= 0 || soonest > left {
		return r.giveUp(CauseExhausted)
	}
	r.pausing, r.pauseFrom = inRoom, now
	return Action{Type: Enter, Budget: left}
}

func (r *Request) giveUp(c Cause) Action {
	if r.stop != nil {
		c = CauseRequest
	}
	r.cause, r.over = c, true
	return Action{Type: GiveUp}
}
