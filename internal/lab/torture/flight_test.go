package torture

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// flight is one request on its way: it does for the attempt loop what the gateway's driver does.
type flight struct {
	n        *node
	route    *route.Route
	picker   failover.Picker
	req      *failover.Request
	number   uint64
	input    int64 // tokens
	stream   bool
	single   bool
	began    time.Duration
	idle     time.Duration // since when it has waited for one that hangs, though another target is free; 0 where it does not
	running  map[int]*permit
	answer   *failover.Attempt
	over     bool
	seen     tried
	waiting  *stay
	scouting bool // it was let go to find out, and has not been told yet
	pauses   int  // numbers the waits, so that an old timer is known
}

// stay is a time in a waiting room.
type stay struct {
	since  time.Duration
	first  time.Duration // when its request first waited
	budget time.Duration
}

// begin sends a request on its way.
func (n *node) begin(r *rand.Rand) {
	name := n.variant.combos[r.IntN(len(n.variant.combos))]
	if r.IntN(10) == 0 {
		k := n.variant.keys[r.IntN(len(n.variant.keys))]
		name = k.Provider + "/" + k.Model
	}
	to, err := n.router.Resolve(catalog.OpenAI, name)
	if err != nil {
		panic(err)
	}
	f := &flight{n: n, route: to, stream: r.IntN(3) > 0, single: r.IntN(20) == 0, began: n.w.mono, running: map[int]*permit{}}
	n.w.attempts++
	f.number = n.w.attempts
	asked := route.Asked{Stream: f.stream}
	if r.IntN(3) == 0 {
		asked.Session = fmt.Sprint("session ", r.IntN(3))
	}
	input := []int64{10, 500, 20_000}[r.IntN(3)]
	f.input = input
	f.picker = to.Picker(asked)
	f.req = failover.NewRequest(to.Plan, f.picker, f.stream).For(failover.Ask{
		Caller: r.Uint64() % 3, Bytes: input * 4, Estimate: func() failover.Needs { return failover.Needs{Input: input, Output: 100} },
	})
	if f.single {
		f.req.Single()
	}
	n.flights = append(n.flights, f)
	first, told := n.foretold(to, route.Question{Asked: asked, Ask: failover.Ask{
		Bytes: input * 4, Estimate: func() failover.Needs { return failover.Needs{Input: input, Output: 100} },
	}})
	n.hedging(to.Plan).asked = append(n.hedging(to.Plan).asked, n.w.mono)
	f.do(failover.Event{Type: failover.Begin}, fmt.Sprintf("is asked for %s by request %d (stream %v, single %v)", name, f.number, f.stream, f.single))
	if told {
		f.asForetold(first)
	}
	n.later(to.Plan.Limits.Deadline, func() { f.do(failover.Event{Type: failover.TimedOut}, "") })
	if r.IntN(12) == 0 {
		n.later(ms(r, 3000), func() {
			f.do(failover.Event{Type: failover.Abandoned}, fmt.Sprintf("loses the client of request %d", f.number))
		})
	}
}

// do steps the request and carries out what it asks for.
func (f *flight) do(ev failover.Event, words string) {
	if f.over {
		return
	}
	if ev.Type == failover.Called {
		f.pauses++ // the timer of the line is void
	}
	if ev.Type == failover.Woken {
		f.scouting = false
	}
	var a failover.Action
	f.n.step(words, func() {
		f.tells(ev)
		f.n.w.say("  request %d: %s", f.number, describe(ev))
		a = f.req.Step(ev, f.n.w.clock.now())
		for _, c := range a.Cancel {
			f.n.heard(f.running[c.ID], neutral, resilience.Verdict{})
			delete(f.running, c.ID)
		}
		if a.Type == failover.Dispatch {
			f.dispatched(a.Attempt)
		}
		f.seen.action(f, ev, a)
		if f.over = f.over || a.Type == failover.GiveUp || a.Type == failover.Finish; f.over {
			f.ended(a)
		}
	})
	if f.over {
		return
	}
	if ev.Type == failover.Suspect {
		id := ev.Attempt
		f.n.lobby.Watch(f.req, id, func() { f.n.later(0, func() { f.do(failover.Event{Type: failover.Suspect, Attempt: id}, "") }) })
		f.n.pollAt(f.n.w.mono)
	}
	switch a.Type {
	case failover.Dispatch:
		f.send(a.Attempt)
	case failover.Pause:
		f.pause(a.Until.Sub(f.n.w.clock.now()))
	case failover.Enter:
		f.enter(a.Budget)
	case failover.Queue:
		f.line(a.Until.Sub(f.n.w.clock.now()))
	case failover.Commit:
		f.answer = a.Attempt
		f.n.lobby.Unwatch(f.req)
	}
}

func describe(ev failover.Event) string {
	name := []string{"begins", "failed", "has content", "ended", "is suspicious", "is slow", "is woken", "is called", "finds the room full", "is abandoned", "is out of time"}[ev.Type]
	if ev.Attempt > 0 {
		name = fmt.Sprintf("attempt %d %s", ev.Attempt, name)
	}
	if ev.Verdict.Scope != resilience.ScopeNone {
		name += ": " + words(ev.Verdict)
	}
	return name
}

// tells notes what the event makes of the permits.
func (f *flight) tells(ev failover.Event) {
	p := f.running[ev.Attempt]
	committed := f.answer != nil && f.answer.ID == ev.Attempt
	switch ev.Type {
	case failover.Failed:
		if p != nil && f.answer == nil {
			f.n.heard(p, failure, ev.Verdict)
			delete(f.running, ev.Attempt)
		}
	case failover.Content:
		if p != nil && f.answer == nil {
			f.n.heard(p, hasContent, resilience.Verdict{})
		}
	case failover.Ended:
		if !committed {
			return
		}
		switch ev.Verdict.Scope {
		case resilience.ScopeNone:
			f.n.heard(p, success, resilience.Verdict{})
		case resilience.ScopeClient, resilience.ScopeLocal:
			f.n.heard(p, neutral, resilience.Verdict{})
		default:
			f.n.heard(p, failure, ev.Verdict)
		}
		delete(f.running, ev.Attempt)
		f.answer = nil
	case failover.Suspect:
		if p != nil && f.answer == nil {
			f.n.heard(p, waited, resilience.Verdict{})
		}
	}
}

// dispatched notes a permit that the request has taken.
func (f *flight) dispatched(a *failover.Attempt) {
	p := &permit{n: f.n, key: a.Target.Key(), asProbe: a.Probe, maybe: a.Probe && !a.LastResort, resort: a.LastResort, alone: true, attempt: a.ID, silent: a.SuspectAfter}
	f.running[a.ID] = p
	f.n.granted(p)
	f.n.w.say("  request %d dispatches attempt %d to %v (probe %v, last resort %v, hedge %v)", f.number, a.ID, p.key, a.Probe, a.LastResort, a.Hedge)
}

// send lets an attempt's fate come.
func (f *flight) send(a *failover.Attempt) {
	w := f.n.w
	x := w.fateOf(a.Target.Key(), w.mono, f.number<<8+uint64(a.ID))
	w.say("    which %v", x)
	tell := func(after time.Duration, t failover.EventType, v resilience.Verdict) {
		f.n.later(after, func() { f.tell(a, failover.Event{Type: t, Attempt: a.ID, Verdict: v}) })
	}
	took := wholeMs(x.first)
	switch whole := x.first + x.rest; {
	case x.hangs || x.first > a.Timeout || !f.stream && x.cut == false && x.verdict.Scope == resilience.ScopeNone && whole > a.Timeout:
		took = wholeMs(a.Timeout)
		tell(took, failover.Failed, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout})
	case x.verdict.Scope != resilience.ScopeNone && (!x.cut || !f.stream):
		tell(took, failover.Failed, x.verdict)
	case !f.stream:
		took = wholeMs(whole)
		tell(took, failover.Content, resilience.Verdict{})
		tell(took, failover.Ended, resilience.Verdict{})
	default:
		tell(took, failover.Content, resilience.Verdict{})
		tell(whole, failover.Ended, x.verdict)
	}
	if a.SuspectAfter < took {
		tell(a.SuspectAfter, failover.Suspect, resilience.Verdict{})
	}
	if a.HedgeAfter > 0 && a.HedgeAfter < took {
		tell(a.HedgeAfter, failover.Slow, resilience.Verdict{})
	}
}

// tell passes on what becomes of an attempt.
func (f *flight) tell(a *failover.Attempt, ev failover.Event) {
	if f.over || f.running[a.ID] == nil {
		return // it was cancelled
	}
	if ev.Type == failover.Ended && f.answer == a && ev.Verdict.Scope != resilience.ScopeNone {
		ev.Resume = f.route.Recover && f.stream
	}
	f.do(ev, "")
}

func (f *flight) pause(d time.Duration) {
	f.pauses++
	n := f.pauses
	f.n.later(d, func() {
		if f.pauses == n {
			f.do(failover.Event{Type: failover.Woken}, "")
		}
	})
}

func (f *flight) enter(budget time.Duration) {
	n := f.n
	s := &stay{since: n.w.mono, first: n.w.mono, budget: budget}
	if f.seen.firstWait > 0 {
		s.first = f.seen.firstWait
	}
	f.seen.firstWait = s.first
	in := n.lobby.Enter(f.req, budget, func(waited time.Duration) {
		n.w.say("  request %d is let go after %v", f.number, waited)
		f.letGo(waited)
		n.later(0, func() { f.do(failover.Event{Type: failover.Woken, Waited: waited}, "") })
	}, n.w.clock.now())
	n.pollAt(n.w.mono)
	if !in {
		f.do(failover.Event{Type: failover.RoomFull}, "")
		return
	}
	f.waiting = s
}

func (f *flight) line(d time.Duration) {
	in := f.req.Line(func() {
		f.n.later(0, func() { f.do(failover.Event{Type: failover.Called}, "") })
	})
	if !in {
		f.do(failover.Event{Type: failover.RoomFull}, "")
		return
	}
	f.pause(d)
}

// ended is the end of a request, whatever it is.
func (f *flight) ended(a failover.Action) {
	n := f.n
	f.waiting = nil
	n.lobby.Unwatch(f.req)
	n.lobby.Leave(f.req, n.w.clock.now())
	n.pollAt(n.w.mono)
	f.route.Done(f.picker)
	n.flights = slices.DeleteFunc(n.flights, func(x *flight) bool { return x == f })
	f.seen.end(f, a)
}
