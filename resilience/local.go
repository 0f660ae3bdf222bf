package resilience

import (
	"slices"
	"sync/atomic"
	"time"
)

// relatedWithin is how close dial failures at two endpoints must be to be our own network's.
const relatedWithin = 5 * time.Second

// localOutage finds out whether it is our own network that fails (law A10): dial failures at two
// unrelated endpoints within five seconds, and no answer from anywhere since the older of the two
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
	id     RecordID
	before gate
	after  uint64 // the gate's date after the run's last touch
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
		l.mark(e, endpoint)
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
	l.undo(e, append(involved, run))
	e.emit(Event{Type: EventLocalOutage, Cause: "dial failures at unrelated endpoints"})
	return true
}

// undo takes back what runs of dial failures have done.
func (l *localOutage) undo(e *Engine, runs []*dialRun) {
	end := e.share.refutes()
	defer end()
	for _, r := range runs {
		for _, u := range r.undo {
			if g, set := e.gateOf(u.id); set != nil && g.touched == u.after {
				if u.before.leases = nil; u.before.excluded {
					u.before.leases = g.leases // of now: somebody may probe what it brings back
				}
				set(u.before, "local outage")
			}
		}
		r.undo = nil
	}
}

// note remembers what a dial failure has just changed.
func (l *localOutage) note(t *Target, d *domain, seq uint64, before [4]gate) {
	run := l.runs[d.endpoint]
	now := [4]gate{d.breaker, t.conn.cool, t.cool, t.lock}
	for i, id := range t.idsBelow(d) {
		if now[i].touched != seq {
			continue
		}
		j := slices.IndexFunc(run.undo, func(u undo) bool { return u.id == id })
		if j < 0 {
			run.undo = append(run.undo, undo{id, before[i], seq})
			continue
		}
		u := &run.undo[j]
		if u.after != before[i].touched {
			u.before = before[i] // something else touched it in between: that stays
		}
		u.after = seq
	}
}

// success ends a local outage and the endpoint's own run. Any answer is one here, a refusal too.
func (l *localOutage) success(e *Engine, endpoint string, seq uint64) {
	if len(l.runs) == 0 && !l.active.Load() {
		return
	}
	l.lastSuccess = seq
	if l.runs[endpoint] != nil {
		delete(l.runs, endpoint)
		l.mark(e, endpoint)
	}
	if l.active.Swap(false) {
		e.emit(Event{Type: EventLocalOutageEnded, Cause: "success"})
	}
	e.watch.Store(false) // until a new run begins: older ones can no longer prove anything
}

// mark makes the successes of an endpoint with a run of dial failures tell of themselves.
func (l *localOutage) mark(e *Engine, endpoint string) {
	for _, d := range e.domains {
		if d.endpoint == endpoint {
			e.refreshDomain(d)
		}
	}
}

// ids names the target's four gates, in decide's order.
func (t *Target) ids() [4]RecordID { return t.idsBelow(t.dom) }

// idsBelow is ids for an attempt that went to the failure domain d.
func (t *Target) idsBelow(d *domain) [4]RecordID {
	return [4]RecordID{{LayerBreaker, d.key}, {LayerConnection, t.conn.key}, {LayerConnection, t.key}, {LayerModel, t.key}}
}

// gateOf returns a gate by its identity and how to set it; nil where it has no cell.
func (e *Engine) gateOf(id RecordID) (gate, func(gate, string)) {
	switch t, c, d := e.targets[id.Key], e.conns[id.Key], e.domains[id.Key]; {
	case id.Layer == LayerBreaker && d != nil:
		return d.breaker, func(g gate, cause string) { e.setBreaker(d, g, cause) }
	case id.Layer == LayerConnection && id.Key.Model == "" && c != nil:
		return c.cool, func(g gate, cause string) { e.setConn(c, g, cause) }
	case id.Layer == LayerConnection && id.Key.Model != "" && t != nil:
		return t.cool, func(g gate, cause string) { e.setCool(t, g, cause) }
	case id.Layer == LayerModel && t != nil:
		return t.lock, func(g gate, cause string) { e.setLock(t, g, cause) }
	}
	return gate{}, nil
}
