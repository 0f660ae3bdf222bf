package failover

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// leastPause bounds how often a request looks whether an upstream has something left again.
const leastPause = 50 * time.Millisecond

// survey is how the targets stand when none can be asked at once.
type survey struct {
	again   bool          // one that was tried may be asked again
	soonest time.Duration // until the first gate lets someone through, where found says that one will
	found   bool
	held    int // the target with too little left that will have enough soonest, -1 for none
	hold    Hold
	busy    bool // one has everything but a place
	any     int  // one of all that the request can make use of, -1 for none
}

func (r *Request) survey(now time.Time) survey {
	v := survey{held: -1, any: -1}
	r.each(func(i int, s *resilience.Standing) bool {
		v.any = i
		switch {
		case r.unsuited(i):
		case s.Out && s.Held:
			v.soonest, v.found = 0, true
		case s.Out && s.RetryAfter > 0 && (!v.found || s.RetryAfter < v.soonest):
			v.soonest, v.found = s.RetryAfter, true
		case s.Out:
		case r.state[i].tried:
			v.again = true
		default:
			if h, held := r.held(i, now); !held {
				v.busy = true
			} else if v.held < 0 || h.Until.Before(v.hold.Until) {
				v.held, v.hold = i, h
			}
		}
		return true
	})
	return v
}

// wait decides when no target can be asked at once: wait for a place or for what an upstream will
// have left, try one again after a pause, recheck, wait for the soonest recovery, or give up (laws
// R1, R3, R7, V10).
func (r *Request) wait(now time.Time) Action {
	if r.stretch() {
		return r.next(now)
	}
	s := r.survey(now)
	left := min(r.waitLeft, r.Deadline().Sub(now))
	limited := s.busy && r.queueLeft > 0 || s.held >= 0
	if s.any >= 0 && r.plan.Targets[s.any].LocalOutage() {
		if !limited && !s.busy {
			if a := r.recheck(now); a != nil { // each is tried once, and this may end it
				return Action{Type: Dispatch, Attempt: a}
			}
		}
		// To ask the others again would not reach them either.
		return r.giveUp(CauseLocal)
	}
	// One that failed a moment ago is tried once more before one of which it is known that it has
	// nothing left, and before standing in line.
	if s.again && (!limited || r.retries == 0) {
		pause := firstRetry << min(r.retries, 10)
		if pause <= left {
			r.retries++
			return r.pause(retrying, now.Add(pause), now)
		}
		if !limited && !s.busy {
			return r.giveUp(CauseExhausted)
		}
	}
	if limited || s.busy {
		return r.waitForRoom(s, left, now)
	}
	if a := r.recheck(now); a != nil {
		return Action{Type: Dispatch, Attempt: a}
	}
	if s.found && left > 0 && s.soonest <= left {
		r.pausing, r.pauseFrom = inRoom, now
		return Action{Type: Enter, Budget: left}
	}
	if a := r.lastResort(now); a != nil {
		return Action{Type: Dispatch, Attempt: a}
	}
	return r.giveUp(CauseExhausted)
}

// recheck asks one that a long exclusion keeps out, since the request has no other target (law V10): first one of
// which it is not known that its upstream has nothing left.
func (r *Request) recheck(now time.Time) *Attempt {
	for _, spent := range []bool{false, true} {
		for i := range r.state {
			x := &r.state[i]
			if x.tried || x.unfit || r.unsuited(i) {
				continue
			}
			if _, held := r.held(i, now); held != spent {
				continue
			}
			if a := r.dispatch(i, now, alone); a != nil {
				return a
			}
		}
	}
	return nil
}

func (r *Request) pause(why pauseKind, until, now time.Time) Action {
	r.pausing, r.pauseFrom = why, now
	return Action{Type: Pause, Until: until}
}

// waitForRoom waits for a place, or for what an upstream has said that it will have left. When
// neither comes in time, the target that will have enough soonest is asked all the same: what is
// known of it may be wrong, and a refusal costs little.
func (r *Request) waitForRoom(s survey, left time.Duration, now time.Time) Action {
	until := now.Add(left)
	soon := func(d time.Duration) {
		if t := now.Add(d); d <= left && t.Before(until) {
			until = t
		}
	}
	if s.found {
		soon(max(s.soonest, firstRetry)) // a probe in flight has no date
	}
	if s.held >= 0 && !s.hold.Guess {
		soon(max(s.hold.Until.Sub(now), leastPause))
	}
	if s.busy && r.queueLeft > 0 {
		end := now.Add(min(r.queueLeft, r.Deadline().Sub(now)))
		if until.Before(end) && until.Before(now.Add(left)) {
			end = until
		}
		return r.queue(end, now)
	}
	if s.held < 0 {
		return r.giveUp(CauseBusy)
	}
	if left > 0 && until.Before(now.Add(left)) {
		return r.pause(retrying, until, now)
	}
	if a := r.dispatch(s.held, now, usual); a != nil {
		return Action{Type: Dispatch, Attempt: a}
	}
	if r.plan.Targets[s.held].Places.busy() {
		if r.queueLeft <= 0 {
			return r.giveUp(CauseBusy)
		}
		return r.queue(now.Add(min(r.queueLeft, r.Deadline().Sub(now))), now, s.held)
	}
	return r.giveUp(CauseExhausted)
}

// queue stands in line for a place on the connections of targets that have all but that, and of
// those that are named.
func (r *Request) queue(until, now time.Time, more ...int) Action {
	if r.line == nil {
		r.lines = r.lines[:0]
		r.each(func(i int, s *resilience.Standing) bool {
			p := r.plan.Targets[i].Places
			if p == nil || p.Most() == 0 || s.Out || r.state[i].tried || r.unsuited(i) || slices.Contains(r.lines, p) {
				return true
			}
			if _, held := r.held(i, now); !held || slices.Contains(more, i) {
				r.lines = append(r.lines, p)
			}
			return true
		})
	}
	r.pausing, r.pauseFrom = inLine, now
	return Action{Type: Queue, Until: until}
}

// lastResort asks the target that will be back soonest of those that the request has not asked
// yet, whatever excludes it (law R7).
func (r *Request) lastResort(now time.Time) *Attempt {
	if !r.plan.LastResort || r.desperate {
		return nil
	}
	type candidate struct {
		index int
		back  time.Duration
	}
	var all []candidate
	r.each(func(i int, s *resilience.Standing) bool {
		if s.Out && !s.Held && s.RetryAfter > 0 && !r.unsuited(i) && !r.asked(r.plan.Targets[i].Key()) {
			all = append(all, candidate{i, s.RetryAfter})
		}
		return true
	})
	slices.SortStableFunc(all, func(a, b candidate) int { return int(a.back - b.back) })
	for _, c := range all {
		if a := r.dispatch(c.index, now, lastResort); a != nil {
			r.desperate = true
			return a
		}
	}
	return nil
}

// Line puts a request that was told to Queue into the lines of the connections that it waits for,
// and returns false when none of them takes it in. wake is called once, from any goroutine, when
// the request has a place or has lost its place in line; the request must be given Called then.
func (r *Request) Line(wake func()) bool {
	if r.line != nil {
		return true // it has kept its place in line
	}
	t := &ticket{caller: r.ask.Caller, wake: wake, at: r.lines}
	r.line = t
	in := false
	for _, p := range t.at {
		if p.join(t, r.plan.Limits.QueueDepth) {
			in = true
		}
	}
	if !in {
		r.leaveLine()
	}
	return in
}

// called takes in what has become of the request's place in line, and reports whether it still
// has it or has got a place on a connection.
func (r *Request) called() bool {
	if r.line == nil {
		return false
	}
	switch p := r.line.got.Load(); p {
	case nil:
		return true
	case crowdedOut:
		r.leaveLine()
		return false
	default:
		for _, q := range r.line.at {
			q.leave(r.line)
		}
		r.line, r.granted = nil, p
		return true
	}
}

// takePlace takes a place on a connection, the one that was waited for where there is one.
func (r *Request) takePlace(p *Places) bool {
	if p != nil && p == r.granted {
		r.granted = nil
		return true
	}
	return p.take()
}

// leaveLine gives up what the request has or waits for and does not use.
func (r *Request) leaveLine() {
	if t := r.line; t != nil {
		r.line = nil
		if !t.got.CompareAndSwap(nil, gone) {
			if p := t.got.Load(); p != crowdedOut {
				p.free()
			}
		}
		for _, p := range t.at {
			p.leave(t)
		}
	}
	if p := r.granted; p != nil {
		r.granted = nil
		p.free()
	}
}
