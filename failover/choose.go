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
		if a := r.dispatch(i, now, usual); a != nil {
			return a
		}
		r.open.close(i)
	}
	return nil
}

// manner is how a target is asked for admission.
type manner uint8

const (
	usual      manner = iota
	alone             // the request has no other target
	lastResort        // whatever excludes it
)

// dispatch takes the target's permit and a place on its connection and makes the attempt, or
// returns nil.
func (r *Request) dispatch(i int, now time.Time, how manner) *Attempt {
	t := &r.plan.Targets[i]
	if !r.takePlace(t.Places) {
		r.passOver(i)
		return nil
	}
	var right resilience.Permit
	var err error
	switch how {
	case usual:
		right, err = t.Acquire()
	case alone:
		right, err = t.AcquireAlone()
	case lastResort:
		right, err = t.AcquireLastResort()
	}
	if err != nil {
		t.Places.free()
		return nil
	}
	var a *Attempt
	if r.dispatched > 0 {
		a = new(Attempt)
	} else {
		f := new(first)
		a, r.records = &f.Attempt, f.records[:0]
	}
	r.dispatched++
	*a = Attempt{
		ID: r.dispatched, Target: t, Probe: right.Probe() || right.Recheck() || how == lastResort, LastResort: how == lastResort, Resumes: r.resuming,
		permit: permit{Permit: right, places: t.Places}, start: now, index: i, record: len(r.records),
	}
	if t.Meter != nil {
		a.permit.reserved = t.Meter.Reserve(&r.ask, now)
	}
	a.Timeout, a.SuspectAfter = t.timing(r.plan.Limits, r.stream, right.Probe())
	switch {
	case r.resuming:
		// It may be busy for long with what the client has already, which is no sign of a hang.
		a.SuspectAfter = a.Timeout
	case !r.single && !a.Probe && r.left > 1:
		a.HedgeAfter = t.hedgeAfter(r.plan.Hedge, r.stream)
	}
	r.state[i].tried = true
	r.records = append(r.records, Record{Key: t.Key(), At: now, Outcome: OutcomeRunning, Probe: a.Probe, Resumes: a.Resumes, LastResort: a.LastResort})
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
		if !r.state[i].tried && !s.Out && r.roomy(i) {
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

func (r *Request) giveUp(c Cause) Action {
	if r.stop != nil {
		c = CauseRequest
	}
	r.cause, r.over = c, true
	return Action{Type: GiveUp}
}
