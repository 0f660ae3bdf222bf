package failover

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// watcher is a request with an attempt that has waited suspiciously long.
type watcher struct {
	key  resilience.Key
	n    uint64
	tell func()
}

// Watch says that an attempt of the request has waited suspiciously long: tell is called when its breaker opens for
// that reason. Where the attempt hangs already, tell is called as long after as it was allowed to be silent, since
// another target may be back by then; Poll must be called soon after. It has to give the request Suspect.
func (l *Lobby) Watch(r *Request, attempt int, tell func()) {
	l.Unwatch(r)
	if r.over || r.committed != nil || len(r.running) == 0 {
		return
	}
	a := r.find(attempt)
	if a == nil {
		a = r.running[0] // which it stood beside
	}
	l.asked++
	l.slow[r] = watcher{a.Target.Key(), l.asked, tell}
	if a.hangs() && !r.single && r.left > 1 && r.dispatched < r.plan.Limits.MaxAttempts {
		l.hang[r] = r.now.Add(max(a.SuspectAfter, leastLook))
	}
}

// leastLook bounds how often a request looks for a target beside an attempt that hangs.
const leastLook = time.Second

// Unwatch says that nothing of the request is to be watched any more.
func (l *Lobby) Unwatch(r *Request) {
	delete(l.slow, r)
	delete(l.hang, r)
}

// Heard takes in an event of the engine and returns whom to tell, oldest first. Where another node has opened the
// breaker nobody knows what for: who is told finds out.
func (l *Lobby) Heard(ev resilience.Event) (tell []func()) {
	if ev.Type != resilience.EventOpened || ev.Cause != "suspicion" && ev.Cause != "cluster" {
		return nil
	}
	var found []watcher
	for _, w := range l.slow {
		if w.key.Provider == ev.Key.Provider && (ev.Key.Connection == "" || w.key.Connection == ev.Key.Connection) {
			found = append(found, w)
		}
	}
	for _, w := range byAge(found) {
		tell = append(tell, w.tell)
	}
	return tell
}

// lookAround returns those whose time has come to look for another target, oldest first, and when the next one's will.
// Who still finds none says so by Watch.
func (l *Lobby) lookAround(now time.Time) (out []Release, again time.Time) {
	var due []watcher
	for r, at := range l.hang {
		switch {
		case !at.After(now):
			due = append(due, l.slow[r])
			delete(l.hang, r)
		case again.IsZero() || at.Before(again):
			again = at
		}
	}
	for _, w := range byAge(due) {
		out = append(out, Release{look: w.tell})
	}
	return out, again
}

func byAge(all []watcher) []watcher {
	slices.SortFunc(all, func(a, b watcher) int { return int(a.n) - int(b.n) })
	return all
}
