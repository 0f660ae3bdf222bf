package simulate

import (
	"net/http"
	"time"

	"omniroute/failover"
	"omniroute/internal/headroom"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// flight is one request on its way: it does for the attempt loop what the gateway's driver does,
// on virtual time.
type flight struct {
	w       *world
	n       *node
	route   *route.Route
	picker  failover.Picker
	req     *failover.Request
	arrived time.Duration
	stream  bool
	prompt  float64 // tokens
	output  float64 // tokens
	sent    []fate  // of each attempt, in the order of their dispatch
	answer  *failover.Attempt
	first   time.Duration // when the first content came, since the arrival
	over    bool
}

// noContent is what an attempt says whose time is up.
var noContent = resilience.Verdict{
	Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout, RetrySame: true, RetryElsewhere: true, Rule: "timeout.first_content",
}

// do steps the request and carries out what it asks for.
func (f *flight) do(ev failover.Event) {
	if f.over {
		return
	}
	a := f.req.Step(ev, f.w.clock())
	if ev.Type == failover.Suspect {
		id := ev.Attempt
		f.n.lobby.Watch(f.req, id, func() { f.do(failover.Event{Type: failover.Suspect, Attempt: id}) })
		f.n.pollAt(f.w.now)
	}
	switch a.Type {
	case failover.Dispatch:
		f.dispatch(a.Attempt)
	case failover.Pause:
		f.w.at(a.Until.Sub(epoch), func() { f.do(failover.Event{Type: failover.Woken}) })
	case failover.Enter:
		f.enter(a.Budget)
	case failover.Queue:
		f.queue(a.Until)
	case failover.Commit:
		f.commit(a.Attempt)
	case failover.GiveUp:
		f.w.tally.gaveUp(f, f.req.Report(f.w.clock()))
		f.end()
	case failover.Finish:
		f.end()
	}
}

func (f *flight) commit(a *failover.Attempt) {
	if f.answer == nil {
		f.first = f.w.now - f.arrived
	}
	f.answer = a
	f.n.lobby.Unwatch(f.req)
	f.w.tally.committed(a.Target.Key(), f.w.now)
}

// leave is the client's end before the answer's.
func (f *flight) leave() {
	if f.over {
		return
	}
	f.w.tally.left()
	if f.req == nil { // of a naive proxy: what it asked runs on by itself
		f.over = true
		f.w.live--
		return
	}
	f.do(failover.Event{Type: failover.Abandoned})
}

func (f *flight) end() {
	f.over = true
	f.w.live--
	f.n.lobby.Unwatch(f.req)
	f.n.lobby.Leave(f.req, f.w.clock())
	f.n.pollAt(f.w.now)
	f.route.Done(f.picker)
	f.bill(f.req.Records())
}

// bill counts what became of the attempts and what they cost.
func (f *flight) bill(records []failover.Record) {
	f.w.tally.attempts(records)
	for i := range records {
		if r, x := &records[i], &f.sent[i]; x.billed() {
			f.w.tally.spent(r.Key, r.At.Sub(epoch), f.prompt, f.output*x.written(r.Duration), fruitless(r.Outcome))
		}
	}
}

func (f *flight) enter(budget time.Duration) {
	in := f.n.lobby.Enter(f.req, budget, func(waited time.Duration) {
		f.do(failover.Event{Type: failover.Woken, Waited: waited})
	}, f.w.clock())
	f.n.pollAt(f.w.now)
	if !in {
		f.do(failover.Event{Type: failover.RoomFull})
	}
}

// queue waits for a place. Whoever gives one back is in the middle of a step: the one that gets it
// goes on after that.
func (f *flight) queue(until time.Time) {
	in := f.req.Line(func() {
		f.w.at(f.w.now, func() { f.do(failover.Event{Type: failover.Called}) })
	})
	if !in {
		f.do(failover.Event{Type: failover.RoomFull})
		return
	}
	f.w.at(until.Sub(epoch), func() { f.do(failover.Event{Type: failover.Woken}) })
}

// dispatch sends an attempt and lets its fate come.
func (f *flight) dispatch(a *failover.Attempt) {
	w, key := f.w, a.Target.Key()
	up := a.Target.Data.(*route.Upstream)
	x := w.providers[key.Provider].receive(up, key, f.stream, f.output, w.now)
	if !f.stream { // it comes as a whole
		x.first, x.rest = x.first+x.rest, 0
	}
	f.sent = append(f.sent, x)
	reserved, _ := a.Reserved().(*headroom.Reservation)
	w.tally.dispatched(key, w.now)
	tell := func(after time.Duration, t failover.EventType, v resilience.Verdict, status int) {
		w.at(w.now+after, func() {
			if reserved != nil && !f.over {
				f.note(reserved, t, x.header, v)
			}
			f.tell(a, failover.Event{Type: t, Attempt: a.ID, Verdict: v, Status: status})
		})
	}
	took := x.first
	switch {
	case x.hangs || took > a.Timeout:
		took = a.Timeout
		tell(took, failover.Failed, noContent, 0)
	case x.failure != nil && !x.late:
		tell(took, failover.Failed, *x.failure, x.status)
	default:
		tell(took, failover.Content, resilience.Verdict{}, 200)
		v := resilience.Verdict{}
		if x.failure != nil {
			v = *x.failure
		}
		tell(took+x.rest, failover.Ended, v, x.status)
	}
	if a.SuspectAfter < took {
		tell(a.SuspectAfter, failover.Suspect, resilience.Verdict{}, 0)
	}
	if a.HedgeAfter > 0 && a.HedgeAfter < took {
		tell(a.HedgeAfter, failover.Slow, resilience.Verdict{}, 0)
	}
}

// note tells the target's meter what an answer's headers and its usage say.
func (f *flight) note(r *headroom.Reservation, t failover.EventType, h http.Header, v resilience.Verdict) {
	switch {
	case (t == failover.Content || t == failover.Failed) && h != nil:
		r.Heard(h, f.w.clock())
	case t == failover.Ended && v.Scope == resilience.ScopeNone:
		r.Used(int64(f.prompt), int64(f.output))
	}
}

// tell passes on what becomes of an attempt. An answer that breaks off is finished by another
// attempt where the combo says so; that its seam can be made exact is taken for granted.
func (f *flight) tell(a *failover.Attempt, ev failover.Event) {
	if f.over {
		return
	}
	if ev.Type == failover.Ended && f.answer == a {
		broke := ev.Verdict.Scope != resilience.ScopeNone
		if broke && f.route.Recover && f.stream {
			ev.Resume = true
			f.do(ev)
			if !f.over {
				f.w.tally.resumed()
			}
			return
		}
		if broke {
			f.w.tally.broke(f, ev.Verdict)
		} else {
			f.w.tally.answered(f, a)
		}
	}
	f.do(ev)
}
