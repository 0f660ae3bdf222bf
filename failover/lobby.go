package failover

import (
	"time"
)

// Lobby is the waiting rooms of all plans, without a clock or a lock: Runner wraps it for real
// time, a simulator polls it on its own.
type Lobby struct {
	rooms map[string]*planRoom
}

type planRoom struct {
	room
	plan *Plan
	at   time.Time // when to poll next, zero: only on news
}

// NewLobby returns an empty lobby.
func NewLobby() *Lobby { return &Lobby{rooms: map[string]*planRoom{}} }

// Enter takes a request's waiter into its plan's room. It returns false when the room is full.
// Poll must be called soon after.
func (l *Lobby) Enter(r *Request, budget time.Duration, wake func(waited time.Duration, expired bool), now time.Time) (*Waiter, bool) {
	q := l.rooms[r.plan.Name]
	if q == nil {
		q = &planRoom{}
		l.rooms[r.plan.Name] = q
	}
	// A reload may have changed the plan behind the name: the newest one holds for all.
	q.plan = r.plan
	q.limit, q.maxWait = r.plan.Limits.WaitingRoom, r.plan.Limits.MaxWait
	if r.firstWait.IsZero() {
		r.firstWait = now
	}
	w := &Waiter{Wake: wake, since: r.firstWait, budget: budget}
	if !q.enter(w, now) {
		return nil, false
	}
	q.at = now
	return w, true
}

// Leave takes out the waiter of a request that is over.
func (l *Lobby) Leave(r *Request, w *Waiter) {
	if q := l.rooms[r.plan.Name]; q != nil {
		q.leave(w)
	}
}

// Changed says that a gate of the provider may have opened.
func (l *Lobby) Changed(provider string, now time.Time) {
	for _, q := range l.rooms {
		for i := range q.plan.Targets {
			if q.plan.Targets[i].Key().Provider == provider {
				q.at = now
				break
			}
		}
	}
}

// Release is a waiter that Poll lets go. Call Wake outside every lock.
type Release struct {
	waiter  *Waiter
	waited  time.Duration
	expired bool
}

// Wake tells the request.
func (w Release) Wake() { w.waiter.Wake(w.waited, w.expired) }

// Waiting returns how many requests wait, for status and metrics.
func (l *Lobby) Waiting() int {
	n := 0
	for _, q := range l.rooms {
		n += len(q.waiters)
	}
	return n
}

// Poll lets go those whose time has come, and says when to poll again at the latest; zero means
// not before Enter or Changed.
func (l *Lobby) Poll(now time.Time) (out []Release, again time.Time) {
	for name, q := range l.rooms {
		if !q.at.IsZero() && !q.at.After(now) {
			s, recovery := q.standing(now)
			let, next := q.poll(s, recovery, now)
			for _, w := range let {
				out = append(out, w.export())
			}
			q.at = next
			if len(q.waiters) == 0 {
				delete(l.rooms, name)
				continue
			}
		}
		if !q.at.IsZero() && (again.IsZero() || q.at.Before(again)) {
			again = q.at
		}
	}
	return out, again
}

func (w woken) export() Release { return Release{w.w, w.waited, w.expired} }

// standing asks the gates of the plan.
func (q *planRoom) standing(now time.Time) (standing, time.Time) {
	best, recovery := shut, time.Time{}
	for i := range q.plan.Targets {
		x, out, asProbe := q.plan.Targets[i].Standing(false)
		switch {
		case !out && !asProbe:
			return open, time.Time{}
		case !out:
			best = probing
		case !x.Held && x.RetryAfter > 0:
			if t := now.Add(x.RetryAfter); recovery.IsZero() || t.Before(recovery) {
				recovery = t
			}
		}
	}
	return best, recovery
}

// expireAll empties every room.
func (l *Lobby) expireAll(now time.Time) (out []Release) {
	for name, q := range l.rooms {
		for _, w := range q.waiters {
			out = append(out, Release{w, w.waited(now), true})
		}
		delete(l.rooms, name)
	}
	return out
}
