package torture

import (
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// tried is what the world knows of a request, for the laws of the relay.
type tried struct {
	since     map[resilience.Key]int // in which wait a target was last tried
	waits     int                    // how often it has waited
	sent      int
	paused    time.Duration // by pauses
	roomed    time.Duration // in the room, as far as it counts
	queued    time.Duration
	pauseFrom time.Duration
	what      failover.ActionType // the wait that it is in
	budget    time.Duration
	firstWait time.Duration
	stopped   bool // the client's own fault
	refusals  []refusal
	resort    int
	broke     resilience.Key // whose answer broke off
	resumed   bool
	committed bool
}

// refusal is a failure of the request's scope.
type refusal struct {
	key  resilience.Key
	kind resilience.Kind
	mine bool // it is the account's word: another connection may have what this one lacks
}

// action holds what a request does to the laws.
func (s *tried) action(f *flight, ev failover.Event, a failover.Action) {
	w, now := f.n.w, f.n.w.mono
	if s.since == nil {
		s.since = map[resilience.Key]int{}
	}
	limits := f.route.Plan.Limits
	switch ev.Type {
	case failover.Failed:
		switch {
		case a.Type == failover.Continue && f.answer != nil:
		case ev.Verdict.Scope == resilience.ScopeClient:
			s.stopped = true
		case ev.Verdict.Scope == resilience.ScopeRequest:
			f.n.learned = f.n.learned || ev.Verdict.Kind == resilience.KindContextLength
			if r, ok := f.lastKey(ev.Attempt); ok {
				s.refusals = append(s.refusals, refusal{r, ev.Verdict.Kind, ev.Verdict.RetrySame})
			}
		}
	case failover.Woken, failover.Called:
		if s.what != failover.Continue {
			s.waits++
		}
		switch s.what {
		case failover.Pause:
			s.paused += now - s.pauseFrom
		case failover.Enter:
			s.roomed += ev.Waited
			if ev.Waited > s.budget {
				w.broke("R3 nobody waits longer than it may", "request %d waited %v of %v", f.number, ev.Waited, s.budget)
			}
		case failover.Queue:
			s.queued += now - s.pauseFrom
		}
		s.what = failover.Continue
	case failover.Ended:
		if ev.Resume {
			s.resumed = true
			s.broke, _ = f.lastKey(ev.Attempt)
			delete(s.since, s.broke)
			s.committed = false
		}
	}
	if slack := time.Millisecond; s.paused > max(limits.Patience, 0)+max(limits.MaxWait, 0)+time.Duration(s.waits)*slack {
		w.broke("R2 patience is a budget", "request %d paused for %v, its patience is %v and max_wait %v", f.number, s.paused, limits.Patience, limits.MaxWait)
	}
	if s.roomed > limits.MaxWait+time.Duration(s.waits)*time.Millisecond {
		w.broke("R3 max_wait is the total of a request's waits", "request %d waited %v of %v", f.number, s.roomed, limits.MaxWait)
	}
	switch a.Type {
	case failover.Pause, failover.Enter, failover.Queue:
		s.what, s.pauseFrom, s.budget = a.Type, now, a.Budget
		if a.Type == failover.Pause {
			s.mayPause(f, a)
		}
		if len(f.running) > 0 {
			w.broke("R2 a request waits only where nothing runs", "request %d waits with %d attempts", f.number, len(f.running))
		}
	case failover.Commit:
		for id := range f.running {
			if id != a.Attempt.ID {
				w.broke("R9 who is overtaken is cancelled", "request %d goes on with attempt %d", f.number, id)
			}
		}
		s.committed = true
	case failover.Dispatch:
		s.dispatch(f, ev, a.Attempt)
	}
}

func (f *flight) lastKey(attempt int) (resilience.Key, bool) {
	records := f.req.Records()
	if attempt < 1 || attempt > len(records) {
		return resilience.Key{}, false
	}
	return records[attempt-1].Key, true
}

// mayPause: a pause is within what is left of the request's patience or of its wait.
func (s *tried) mayPause(f *flight, a failover.Action) {
	l := f.route.Plan.Limits
	d := a.Until.Sub(f.n.w.clock.now())
	if left := max(l.Patience, l.MaxWait); d > left+time.Millisecond {
		f.n.w.broke("R2 patience is a budget", "request %d pauses for %v, at most %v are allowed", f.number, d, left)
	}
}

// dispatch holds an attempt to the laws.
func (s *tried) dispatch(f *flight, ev failover.Event, a *failover.Attempt) {
	w, n, now := f.n.w, f.n, f.n.w.mono
	k := a.Target.Key()
	plan := f.route.Plan
	s.sent++
	if s.sent > plan.Limits.MaxAttempts {
		w.broke("R5 max_attempts", "request %d sends attempt %d of %d", f.number, s.sent, plan.Limits.MaxAttempts)
	}
	if now >= f.began+plan.Limits.Deadline {
		w.broke("R5 deadline", "request %d sends an attempt after %v", f.number, now-f.began)
	}
	if s.stopped {
		w.broke("R6 a client's own fault stops at once", "request %d sends an attempt to %v", f.number, k)
	}
	if s.committed {
		w.broke("S1 nothing is sent beside an answer", "request %d sends an attempt to %v", f.number, k)
	}
	if last, tried := s.since[k]; tried && last == s.waits && !(s.resumed && f.hedged(k)) {
		w.broke("R1 no target twice without a wait", "request %d goes to %v again", f.number, k)
	}
	s.since[k] = s.waits
	for _, r := range s.refusals {
		if r.mine {
			if same(r.key, k) {
				w.broke("R6 a refused request goes only to those that could do better", "request %d was refused by the account of %v and goes to %v", f.number, r.key, k)
			}
			continue
		}
		if sameOffer := r.key.Model == k.Model && r.key.Provider == k.Provider; sameOffer || r.kind == resilience.KindContextLength && r.key.Model == k.Model {
			w.broke("R6 a refused request goes only to those that could do better", "request %d was refused by %v (%v) and goes to %v", f.number, r.key, r.kind, k)
		}
	}
	if a.LastResort {
		s.resort++
		switch {
		case !plan.LastResort:
			w.broke("R7 only where the combo wants it", "request %d goes to %v", f.number, k)
		case s.resort > 1:
			w.broke("R7 a last resort is tried once", "request %d goes to %v", f.number, k)
		}
	}
	if len(f.running) > 1 {
		s.beside(f, ev, a)
	}
	if a.Hedge {
		h := n.hedging(plan)
		h.sent = append(h.sent, now)
		h.within(f, plan.Hedge.Share, now)
	}
}

// hedged reports whether the target lost a race: it has not failed.
func (f *flight) hedged(k resilience.Key) bool {
	return slices.ContainsFunc(f.req.Records(), func(r failover.Record) bool { return r.Key == k && r.Outcome == failover.OutcomeHedgeLost })
}

// beside: two attempts at a time are for a hedge, or for where nothing is to be expected of the others any more.
func (s *tried) beside(f *flight, ev failover.Event, a *failover.Attempt) {
	switch {
	case f.single:
		f.n.w.broke("R10 what makes something lasting is sent once at a time", "request %d is with %d targets", f.number, len(f.running))
	case a.Hedge, f.hangs(a.ID):
	default:
		f.n.w.broke("R9 a second attempt has a reason", "request %d is with %d targets after %s", f.number, len(f.running), describe(ev))
	}
}

// hangs reports whether all attempts but one have waited too long, each of them a probe or on a provider that hangs. Of one
// whose connection a reload has moved or removed nobody knows.
func (f *flight) hangs(but int) bool {
	for id, p := range f.running {
		if id != but && !p.hazy && !(p.waited && (p.asProbe || f.n.engine.Target(p.key).Suspected())) {
			return false
		}
	}
	return true
}

// hedging counts a plan's requests and hedges.
type hedging struct{ asked, sent []time.Duration }

func (n *node) hedging(p *failover.Plan) *hedging {
	h := n.hedges[p.Name]
	if h == nil {
		h = &hedging{}
		n.hedges[p.Name] = h
	}
	return h
}

// within is the budget: in no minute more than the larger of one and the share.
func (h *hedging) within(f *flight, share float64, now time.Duration) {
	count := func(at []time.Duration, since time.Duration) (c int) {
		for _, t := range at {
			if t > since {
				c++
			}
		}
		return c
	}
	hedges, requests := count(h.sent, now-time.Minute), count(h.asked, now-62*time.Second)
	if hedges > 1 && float64(hedges) > share*float64(requests)+1e-6 {
		f.n.w.broke("R9 hedges keep within their budget", "%d hedges in a minute of %d requests, the share is %v", hedges, requests, share)
	}
}

// end holds the end of a request to the laws.
func (s *tried) end(f *flight, a failover.Action) {
	w, n := f.n.w, f.n
	if len(f.running) > 0 {
		w.broke("A2 every permit is settled", "request %d is over with %d attempts", f.number, len(f.running))
	}
	if late := w.mono - f.began - f.route.Plan.Limits.Deadline; late > 0 && !s.committed && !s.resumed {
		w.broke("X3 every request is answered", "request %d ends %v after its deadline", f.number, late)
	}
	if a.Type != failover.GiveUp {
		return
	}
	rep := f.req.Report(w.clock.now())
	f.answered(rep)
	if len(rep.Attempts) != s.sent || f.req.Dispatched() != s.sent {
		w.broke("X2 every attempt is told", "request %d sent %d and tells of %d", f.number, s.sent, len(rep.Attempts))
	}
	if rep.Cause != failover.CauseExhausted || s.sent >= f.route.Plan.Limits.MaxAttempts || len(s.refusals) > 0 {
		return
	}
	for i := range f.route.Plan.Targets {
		k := f.route.Plan.Targets[i].Key()
		told := slices.ContainsFunc(rep.Attempts, func(r failover.Record) bool { return r.Key == k }) ||
			slices.ContainsFunc(rep.Skipped, func(r failover.Skip) bool { return r.Key == k })
		if t := n.engine.Target(k); !told && n.variant.has(k) {
			if _, out := t.Check(); out {
				w.broke("X2 every target that was skipped is told", "request %d does not say why it did not go to %v", f.number, k)
			}
		}
	}
}
