package torture

import (
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// poll lets those go whose time has come, and holds the release to R3: oldest first, and not all at once.
func (n *node) poll() {
	let, again := n.lobby.Poll(n.w.clock.now())
	if !again.IsZero() {
		n.pollAt(n.w.mono + wholeMs(again.Sub(n.w.clock.now())))
	}
	n.released = n.released[:0]
	for _, r := range let {
		r.Wake()
	}
	n.inTurn()
}

// letGo notes that the room let the request go.
func (f *flight) letGo(waited time.Duration) {
	if s := f.waiting; s != nil {
		f.n.released = append(f.n.released, letGo{f, *s, waited})
		f.waiting = nil
	}
}

// letGo is a request that was let go.
type letGo struct {
	*flight
	stay
	counted time.Duration
}

// inTheCommonRoom reports whether the request can make use of every target of its plan: those that can
// use the same targets wait in one room.
func (f *flight) inTheCommonRoom() bool {
	return len(f.seen.refusals) == 0 && f.input < smallest && !f.n.learned
}

// smallest is the least context window of any model, in tokens.
const smallest = 8000

// free reports whether any target of the request's plan would take anyone.
func (f *flight) free() bool {
	for i := range f.route.Plan.Targets {
		if _, out, asProbe := f.route.Plan.Targets[i].Standing(false); !out && !asProbe {
			return true
		}
	}
	return false
}

// inTurn is R3.
func (n *node) inTurn() {
	n.onePerProbe()
	for i, x := range n.released {
		if !x.inTheCommonRoom() || x.counted >= x.budget || !x.free() {
			continue
		}
		for _, o := range n.flights {
			if s := o.waiting; s != nil && o.route.Plan == x.route.Plan && o.inTheCommonRoom() && s.first < x.stay.first {
				n.w.broke("R3 the oldest goes first", "request %d goes before %d", x.number, o.number)
			}
		}
		for _, y := range n.released[:i] {
			// Those that are let go over less than so many moments share one.
			waited, crowd := n.w.mono-y.stay.first, max(n.crowd(x.route.Plan), 5)
			if y.route.Plan == x.route.Plan && y.inTheCommonRoom() && y.counted < y.budget && waited > time.Duration(crowd)*time.Millisecond && x.route.Plan.Limits.MaxWait > 100*time.Millisecond {
				n.w.broke("R3 those who wait do not come back all at once", "requests %d and %d of %s go at once after %v", y.number, x.number, x.route.Name, waited)
			}
		}
	}
}

// crowd returns how many requests of a plan there are, which bounds how many have waited together.
func (n *node) crowd(p *failover.Plan) (many int) {
	for _, f := range n.flights {
		if f.route.Plan == p {
			many++
		}
	}
	return many
}

// onePerProbe: while no target takes everybody, one of those who wait is let go to find out, and the next
// only when it has.
func (n *node) onePerProbe() {
	for _, x := range n.released {
		if !x.inTheCommonRoom() || x.counted >= x.budget || x.free() {
			continue
		}
		if o := n.scouts[x.route.Plan.Name]; o != nil && o != x.flight && o.scouting && o.route.Plan == x.route.Plan {
			n.w.broke("R3 one who waits finds out for all", "request %d is let go while %d finds out", x.number, o.number)
		}
		n.scouts[x.route.Plan.Name], x.scouting = x.flight, true
	}
}

// roomHasWalls: no more wait for the same targets than may.
func (n *node) roomHasWalls() {
	waiting := map[*failover.Plan]int{}
	for _, f := range n.flights {
		if f.waiting == nil || !f.inTheCommonRoom() {
			continue
		}
		p := f.route.Plan
		if waiting[p]++; waiting[p] > p.Limits.WaitingRoom {
			n.w.broke("R3 at most queue.recovery requests wait", "%d wait for %s, %d may", waiting[p], p.Name, p.Limits.WaitingRoom)
		}
	}
}

// nobodyWaitsTooLong: while every target is out the wait has an end.
func (n *node) nobodyWaitsTooLong() {
	for _, f := range n.flights {
		s := f.waiting
		if s == nil {
			continue
		}
		n.lookAtTheGone(f)
		if n.w.mono <= s.since+s.budget+slack {
			continue
		}
		opened := false
		for i := range f.route.Plan.Targets {
			if at, ok := n.open[f.route.Plan.Targets[i].Key()]; ok && at >= s.since || !ok {
				opened = true
			}
		}
		if !opened {
			n.w.broke("R3 nobody waits longer than it may", "request %d has waited since %v, for at most %v", f.number, s.since, s.budget)
		}
	}
}

// nobodyHangsInVain is R9: a request whose every attempt hangs starts its next target where there is one, also where
// that comes back later: it looks as often as it suspects.
func (n *node) nobodyHangsInVain() {
	for _, f := range n.flights {
		if !f.hangsInVain() {
			f.idle = 0
			continue
		}
		if f.idle == 0 {
			f.idle = n.w.mono
		}
		patience := time.Second
		for _, p := range f.running {
			patience = max(patience, p.silent)
		}
		if n.w.mono > f.idle+patience+slack {
			n.w.broke("R9 a hung request starts its next target", "request %d has waited since %v for attempts that hang", f.number, f.idle)
		}
	}
}

// hangsInVain reports whether nothing is to be expected of all that a request has sent, and another target is free.
func (f *flight) hangsInVain() bool {
	s, plan := &f.seen, f.route.Plan
	if f.single || f.answer != nil || len(f.running) == 0 || !f.inTheCommonRoom() || s.resumed || s.stopped || s.sent >= plan.Limits.MaxAttempts || !f.hangs(0) {
		return false
	}
	for _, p := range f.running {
		if p.hazy {
			return false
		}
	}
	ask := failover.Ask{Bytes: f.input * 4, Estimate: func() failover.Needs { return failover.Needs{Input: f.input, Output: 100} }}
	for i := range plan.Targets {
		t := &plan.Targets[i]
		if last, tried := s.since[t.Key()]; tried && last == s.waits {
			continue
		}
		if _, out, asProbe := t.Look(&ask, false, f.n.w.clock.now()); !out && !asProbe {
			return true
		}
	}
	return false
}

// lookAtTheGone notes which of a request's targets are open that are no longer configured: its plan has them yet.
func (n *node) lookAtTheGone(f *flight) {
	for i := range f.route.Plan.Targets {
		t := &f.route.Plan.Targets[i]
		if n.variant.has(t.Key()) {
			continue
		}
		if _, out := t.Check(); !out {
			n.open[t.Key()] = n.w.mono
		}
	}
}

// placesAreCounted: as many places are taken as attempts run, and none is free while somebody waits.
func (n *node) placesAreCounted() {
	if n.now != nil {
		return
	}
	running := map[resilience.Key]int{}
	for _, f := range n.flights {
		for _, p := range f.running {
			running[resilience.Key{Provider: p.key.Provider, Connection: p.key.Connection}]++
		}
	}
	for _, o := range n.router.Occupations() {
		k := resilience.Key{Provider: o.Provider, Connection: o.Connection}
		granted := 0
		for _, f := range n.flights {
			if f.seen.what == failover.Queue {
				granted++ // it may have been given one that it has not taken up yet
			}
		}
		if o.Running < running[k] && !n.moved || o.Running > running[k]+granted && !n.moved {
			n.w.broke("A2 a place is given back once", "%v has %d places taken, %d attempts run", k, o.Running, running[k])
		}
		if o.MaxConcurrent > 0 && o.Queued > 0 && o.Running < o.MaxConcurrent {
			n.w.broke("R3 no place is free while somebody waits", "%v: %+v", k, o)
		}
	}
}
