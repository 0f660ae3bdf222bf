package resilience

import (
	"sync/atomic"
	"time"
)

// relatedWithin is how close dial failures at two endpoints must be to be our own network's.
const relatedWithin = 5 * time.Second

// localOutage finds out whether it is our own network that fails (law A10): dial failures at two
// unrelated endpoints within five seconds, and no success anywhere since the older of the two
// runs of failures began.
type localOutage struct {
	active      atomic.Bool
	runs        map[string]*dialRun // by endpoint
	lastSuccess uint64
}

// dialRun is an endpoint's present run of dial failures and what it did to the gates.
type dialRun struct {
	first uint64
	last  instant
	undo  []undo
}

// undo remembers a gate from before a run touched it, for as long as nothing else does.
type undo struct {
	gate   *gate
	before gate
	after  uint64 // the gate's date after the run's last touch
	set    func(gate)
}

// LocalOutage reports whether the machine's own network is held to be out. Dial failures then
// count against nobody; the first success ends it.
func (e *Engine) LocalOutage() bool { return e.local.active.Load() }

// hear takes in a dial failure and reports whether it is a local one.
func (l *localOutage) hear(e *Engine, endpoint string, seq uint64, now instant) bool {
	run := l.runs[endpoint]
	if run == nil {
		run = &dialRun{first: seq}
		l.runs[endpoint] = run
	}
	run.last = now
	e.watch.Store(true)
	if l.active.Load() {
		return true
	}
	var involved []*dialRun
	for other, o := range l.runs {
		if other != endpoint && now-o.last <= relatedWithin && min(run.first, o.first) > l.lastSuccess {
			involved = append(involved, o)
		}
	}
	if len(involved) == 0 {
		return false
	}
	l.active.Store(true)
	for _, r := range append(involved, run) {
		for _, u := range r.undo {
			if u.gate.touched == u.after {
				u.before.leases = nil
				u.set(u.before)
			}
		}
		r.undo = nil
	}
	e.emit(Event{Type: EventLocalOutage, Cause: "dial failures at unrelated endpoints"})
	return true
}

// note remembers what a dial failure has just changed.
func (l *localOutage) note(endpoint string, seq uint64, t *Target, before [3]gate) {
	run := l.runs[endpoint]
	e := t.engine
	for i, u := range []undo{
		{gate: &t.dom.breaker, set: func(g gate) { e.setBreaker(t.dom, g, "local outage") }},
		{gate: &t.cool, set: func(g gate) { e.setCool(t, g, "local outage") }},
		{gate: &t.lock, set: func(g gate) { e.setLock(t, g, "local outage") }},
	} {
		if u.gate.touched != seq {
			continue
		}
		u.before, u.after = before[i], seq
		known := false
		for j := range run.undo {
			if o := &run.undo[j]; o.gate == u.gate {
				known = true
				if o.after != before[i].touched {
					o.before = before[i] // something else touched it in between: that stays
				}
				o.after = seq
			}
		}
		if !known {
			run.undo = append(run.undo, u)
		}
	}
}

// success ends a local outage and the endpoint's own run.
func (l *localOutage) success(e *Engine, endpoint string, seq uint64) {
	if len(l.runs) == 0 && !l.active.Load() {
		return
	}
	l.lastSuccess = seq
	delete(l.runs, endpoint)
	if l.active.Swap(false) {
		e.emit(Event{Type: EventLocalOutageEnded, Cause: "success"})
	}
	e.watch.Store(false) // until a new run begins: older ones can no longer prove anything
}
