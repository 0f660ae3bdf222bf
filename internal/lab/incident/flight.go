package incident

import (
	"time"

	"omniroute/failover"
)

// flight is one request on its way: it does for the attempt loop what the gateway's driver does,
// on virtual time.
type flight struct {
	w       *world
	req     *failover.Request
	route   string
	arrived time.Duration
	answer  *failover.Attempt
	over    bool
}

// do steps the request and carries out what it asks for.
func (f *flight) do(ev failover.Event) {
	w := f.w
	if f.over {
		return
	}
	a := f.req.Step(ev, w.clock())
	if ev.Type == failover.Suspect {
		id := ev.Attempt
		w.lobby.Watch(f.req, id, func() { f.do(failover.Event{Type: failover.Suspect, Attempt: id}) })
	}
	switch a.Type {
	case failover.Dispatch:
		f.dispatch(a.Attempt)
	case failover.Pause:
		w.at(a.Until.Sub(epoch), func() { f.do(failover.Event{Type: failover.Woken}) })
	case failover.Enter:
		f.enter(a.Budget)
	case failover.Commit:
		f.answer = a.Attempt
		w.lobby.Unwatch(f.req)
		w.result.answered(f, a.Attempt)
	case failover.GiveUp:
		w.result.gaveUp(f, f.req.Report(w.clock()))
		f.end()
	case failover.Finish:
		f.end()
	}
}

func (f *flight) end() {
	f.over = true
	f.w.live--
	f.w.lobby.Unwatch(f.req)
	f.w.lobby.Leave(f.req, f.w.clock())
	f.w.pollAt(f.w.now)
	f.w.result.attempts(f.req.Records())
}

func (f *flight) enter(budget time.Duration) {
	w := f.w
	in := w.lobby.Enter(f.req, budget, func(waited time.Duration) {
		f.do(failover.Event{Type: failover.Woken, Waited: waited})
	}, w.clock())
	w.pollAt(w.now)
	if !in {
		f.do(failover.Event{Type: failover.RoomFull})
	}
}

// dispatch sends an attempt and lets its fate come.
func (f *flight) dispatch(a *failover.Attempt) {
	w, id := f.w, a.ID
	key := a.Target.Key()
	fate := w.upstreams[key.Provider].receive(key, w.now)
	w.result.dispatched(key, w.now)
	tell := func(after time.Duration, ev failover.Event) {
		ev.Attempt = id
		w.at(w.now+after, func() { f.do(ev) })
	}
	took := fate.first
	switch {
	case fate.failure != nil:
		tell(took, failover.Event{Type: failover.Failed, Verdict: *fate.failure})
	case fate.hangs || took > a.Timeout:
		took = a.Timeout
		tell(took, failover.Event{Type: failover.Failed, Verdict: noContent})
	case w.Whole:
		took += fate.rest
		tell(took, failover.Event{Type: failover.Content})
		tell(took, failover.Event{Type: failover.Ended})
	default:
		tell(took, failover.Event{Type: failover.Content})
		tell(took+fate.rest, failover.Event{Type: failover.Ended})
	}
	if a.SuspectAfter < took {
		tell(a.SuspectAfter, failover.Event{Type: failover.Suspect})
	}
	if a.HedgeAfter > 0 && a.HedgeAfter < took {
		tell(a.HedgeAfter, failover.Event{Type: failover.Slow})
	}
}
