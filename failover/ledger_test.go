package failover

import (
	"fmt"
	"time"

	"omniroute/resilience"
)

// ledger is what an onlooker notes of one request.
type ledger struct {
	c        *crowd
	req      *Request
	plan     *Plan
	running  map[int]*Attempt
	tell     map[int]*Attempt // all that were sent
	sent     int
	slow     map[int]bool            // attempts that are slow
	since    map[resilience.Key]bool // targets tried since the last wait
	answer   *Attempt
	paused   time.Duration // in all
	roomed   time.Duration // what counted
	wakeAt   time.Time     // zero: no pause
	pauseAt  time.Time
	inRoom   bool
	unfit    bool // a failure of the request's own has come
	over     bool
	resumed  bool // an answer broke off, and another attempt was to finish it
	woken    []time.Duration
	deadline time.Time
}

// step gives a request an event and holds the answer against the laws.
func (l *ledger) step(ev Event) {
	c := l.c
	was := l.over
	a := l.req.Step(ev, c.now)
	fail := func(format string, args ...any) {
		c.t.Helper()
		c.t.Fatalf("%+v was answered by %s: %s", ev, describe(a, l.req, c.now), fmt.Sprintf(format, args...))
	}
	if was && a.Type != Finish {
		fail("the request was over")
	}
	if ev.Type == Failed || ev.Type == Content {
		if x := l.running[ev.Attempt]; x != nil && l.answer == nil {
			delete(l.running, ev.Attempt)
			if ev.Type == Content {
				l.answer = x
			}
		}
	}
	for _, x := range a.Cancel {
		if l.running[x.ID] != x && l.answer != x {
			fail("attempt %d does not run", x.ID)
		}
		delete(l.running, x.ID)
		if w := l.answer; ev.Type == Content && w != nil && (x.Hedge || w.Hedge) {
			delete(l.since, x.Target.Key()) // it has lost a race, not failed, and may finish an answer that breaks off
		}
	}
	if ev.Type == Ended && ev.Resume && !l.resumed && !was && l.answer != nil && l.answer.ID == ev.Attempt && blames(ev.Verdict.Scope) {
		l.resumed = true
		delete(l.since, l.answer.Target.Key())
		l.answer = nil
		if a.Type == Commit || a.Type == Enter || a.Type == Continue {
			fail("nothing finishes the answer")
		}
	}
	if l.resumed && ev.Type == Failed && ev.Again && l.tell[ev.Attempt] != nil {
		delete(l.since, l.tell[ev.Attempt].Target.Key())
	}
	kept := l.wakeAt
	l.wakeAt = time.Time{}
	switch a.Type {
	case Dispatch:
		x := a.Attempt
		key := x.Target.Key()
		l.sent++
		switch {
		case l.sent > l.plan.Limits.MaxAttempts:
			fail("attempt %d of %d", l.sent, l.plan.Limits.MaxAttempts)
		case l.since[key]:
			fail("%s was tried since the last wait", key)
		case l.answer != nil:
			fail("the answer has begun")
		case !c.now.Before(l.deadline):
			fail("the deadline has passed")
		case x.Timeout <= 0 || x.SuspectAfter <= 0:
			fail("timeout %v, suspicious after %v", x.Timeout, x.SuspectAfter)
		}
		if x.Resumes != l.resumed {
			fail("resumes: %v", x.Resumes)
		}
		l.checkBeside(x, fail)
		l.since[key] = true
		l.running[x.ID], l.tell[x.ID] = x, x
	case Pause:
		if a.Until.Before(c.now) || a.Until.After(l.deadline) || len(l.running) > 0 {
			fail("a pause until then")
		}
		l.wakeAt, l.pauseAt = a.Until, c.now
	case Enter:
		if a.Budget <= 0 || a.Budget > l.plan.Limits.MaxWait || len(l.running) > 0 {
			fail("a wait for that long")
		}
		for i := range l.plan.Targets {
			if _, out := l.plan.Targets[i].Check(); !out && !l.unfit {
				fail("%s is eligible", l.plan.Targets[i].Key())
			}
		}
		l.inRoom = true
		l.woken = nil
		if !c.lobby.Enter(l.req, a.Budget, func(d time.Duration) { l.woken = append(l.woken, d) }, c.now) {
			l.inRoom = false
			l.step(Event{Type: RoomFull})
		}
	case Commit:
		if a.Attempt != l.answer || ev.Type != Content {
			fail("another attempt has content")
		}
	case GiveUp:
		if l.answer != nil || len(l.running) > 0 {
			fail("an answer may still come")
		}
		l.checkGiveUp(fail)
		l.end()
	case Finish:
		l.end()
	case Continue:
		if len(l.running) == 0 && l.answer == nil && !l.inRoom && kept.IsZero() {
			fail("nothing is under way")
		}
		l.wakeAt = kept // a pause goes on
	}
	if l.paused+l.roomed > l.plan.Limits.MaxWait+l.plan.Limits.Patience {
		fail("it has waited %v", l.paused+l.roomed)
	}
}

// checkBeside: beside what runs another is started only where all of that hangs, or as a hedge:
// beside one that is slow, on a target that nothing is known against, and within the budget.
func (l *ledger) checkBeside(x *Attempt, fail func(string, ...any)) {
	c, h := l.c, l.plan.Hedge
	if !x.Hedge {
		for _, a := range l.running {
			if !a.hangs() {
				fail("%s does not hang", a.Target.Key())
			}
		}
		return
	}
	for _, a := range l.running {
		if len(l.running) > 1 || !l.slow[a.ID] || a.Target.Key() == x.Target.Key() {
			fail("%d run, slow are %v", len(l.running), l.slow)
		}
	}
	recent := func(all []time.Time, d time.Duration) (n int) {
		for _, at := range all {
			if c.now.Sub(at) < d {
				n++
			}
		}
		return n
	}
	c.hedged[l.plan] = append(c.hedged[l.plan], c.now)
	n, of := recent(c.hedged[l.plan], time.Minute), recent(c.came[l.plan], 61*time.Second)
	switch {
	case !h.on() || len(l.running) == 0:
		fail("nothing to be hedged")
	case !x.Target.Sound() || x.Probe:
		fail("%s is in doubt", x.Target.Key())
	case n > 1 && float64(n) > h.Share*float64(of)+1e-6:
		fail("%d hedges for %d requests", n, of)
	}
}

// checkGiveUp: nothing that could be tried is left untried.
func (l *ledger) checkGiveUp(fail func(string, ...any)) {
	rep := l.req.Report(l.c.now)
	for i := range rep.Attempts {
		if rep.Attempts[i].Outcome == OutcomeRunning {
			fail("an attempt was left running")
		}
	}
	if rep.Cause != CauseExhausted || l.sent >= l.plan.Limits.MaxAttempts {
		return
	}
	for i := range l.plan.Targets {
		t := &l.plan.Targets[i]
		if _, out := t.Check(); !out && !l.since[t.Key()] {
			fail("%s is eligible and was not tried", t.Key())
		}
	}
}

func (l *ledger) end() {
	l.over, l.inRoom = true, false
	l.c.lobby.Leave(l.req, l.c.now)
	if len(l.req.running) > 0 {
		l.c.t.Fatal("attempts run on after the end")
	}
}
