package failover

import "time"

// Two things let a request be with more than one target at once, and both are decided here: an
// attempt on a provider that hangs (law R9), and one that is slower than the plan's Hedge allows.

// hangs reports whether nothing is to be expected of the attempt any more: it is a probe, or on a
// provider that hangs, and it has waited suspiciously long.
func (a *Attempt) hangs() bool { return a.silent && (a.Probe || a.Target.Suspected()) }

// mayAnswer reports whether something runs of which an answer can be expected.
func (r *Request) mayAnswer() bool {
	for _, a := range r.running {
		if !a.hangs() {
			return true
		}
	}
	return false
}

// accompany decides whether the next target is started beside what runs.
//
// Where all that runs hangs the next target is needed, and anyone will do who need not prove
// himself first: the request would then wait for another one that is in doubt. An attempt that is
// only slow gets one companion at a time, out of the hedging budget, of whom nothing bad is known.
func (r *Request) accompany(now time.Time) Action {
	var b *Attempt
	switch hanging := !r.mayAnswer(); {
	case r.final && hanging: // what runs is not worth the wait for a known end
		cancel := r.dropRunning(now, OutcomeSuperseded)
		a := r.giveUp(CauseRequest)
		a.Cancel = cancel
		return a
	case r.final || r.single || !now.Before(r.Deadline()):
	case hanging:
		b = r.dispatchNext(now, noProbe)
	case len(r.running) == 1 && r.running[0].slow:
		b = r.hedge(now)
	}
	if b == nil {
		return Action{Type: Continue}
	}
	return Action{Type: Dispatch, Attempt: b}
}

// slow hears that an attempt has shown no content for as long as the plan's Hedge waits.
func (r *Request) slow(ev Event, now time.Time) Action {
	a := r.find(ev.Attempt)
	if a == nil || a.HedgeAfter == 0 || r.committed != nil {
		return Action{Type: Continue}
	}
	a.slow = true
	return r.accompany(now)
}

// hedge starts the next sound target, if there is one and the budget allows it.
func (r *Request) hedge(now time.Time) *Attempt {
	if r.dispatched >= r.plan.Limits.MaxAttempts {
		return nil
	}
	allowed := false
	r.open.reset(r, sound)
	for i := r.pick(now); i >= 0; i = r.pick(now) {
		// Only here, so that a request without a second target takes nothing from the others.
		if allowed = allowed || r.plan.Hedge.take(now); !allowed {
			return nil
		}
		if b := r.dispatch(i, now, usual); b != nil {
			b.Hedge, r.records[b.record].Hedge = true, true
			return b
		}
		r.open.close(i)
	}
	return nil
}

// lost notes who was overtaken by the winner.
func (r *Request) lost(losers []*Attempt, winner *Attempt) {
	for _, a := range losers {
		if !a.Hedge && !winner.Hedge {
			continue
		}
		r.records[a.record].Outcome = OutcomeHedgeLost
		r.state[a.index].tried = false // it has not failed: it may still finish an answer that breaks off
		if a.slow && !a.silent {
			// Had the slow ones no part in what a model is known to take, that would shrink with
			// every race that they lose, and more and more would be raced. How long it would have
			// taken nobody knows; more than this would let a hanging provider pass for a slow one.
			a.Target.recent(r.stream).Add(a.HedgeAfter)
		}
	}
}
