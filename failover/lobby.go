package failover

import (
	"container/heap"
	"slices"
	"time"
)

// Lobby is what the requests of one engine have to know of each other: the waiting rooms (law
// R3), and who waits for a provider that hangs (law R9). It has no clock and no lock: Runner
// wraps it for real time, a simulator polls it on its own.
type Lobby struct {
	rooms map[string][]*planRoom // by the plan's name
	due   roomQueue
	turns [2]int64 // the first and the last that were given

	slow  map[*Request]watcher
	hang  map[*Request]time.Time // when to let one of them look again that waits for nothing but an attempt that hangs
	asked uint64
}

// planRoom is the room of those who wait for the same targets. Requests of one plan that can
// make use of different targets wait in different rooms: what lets the one go on would send the
// other round in circles.
type planRoom struct {
	room
	plan  *Plan
	fit   []bool    // by target: false where it could do no better
	at    time.Time // when to poll next; zero: only on news
	n     int64     // its turn among the rooms that are due at the same time
	index int       // in due, -1 when it is not there
}

// NewLobby returns an empty lobby.
func NewLobby() *Lobby {
	return &Lobby{rooms: map[string][]*planRoom{}, slow: map[*Request]watcher{}, hang: map[*Request]time.Time{}}
}

// Enter takes a request into its plan's room for at most budget, and returns false when the room
// is full. wake is called once, by Release.Wake, with how much of the wait counts. Poll must be
// called soon after.
func (l *Lobby) Enter(r *Request, budget time.Duration, wake func(waited time.Duration), now time.Time) bool {
	if q := r.room; q != nil && q.scout == r.waiter {
		// Somebody else probes. Of several rooms that wait for one probe this one is next.
		q.n = l.turn(-1)
	}
	l.Leave(r, now)
	q := l.room(r)
	if r.firstWait.IsZero() {
		r.firstWait = now
	}
	w := &waiter{wake: wake, since: r.firstWait}
	q.limit, q.maxWait = r.plan.Limits.WaitingRoom, r.plan.Limits.MaxWait // of now: a reload may have changed them
	in := q.enter(w, budget, now)
	if in {
		r.waiter, r.room = w, q
	}
	l.pollAt(q, now)
	return in
}

// turn returns one behind all others, or before them.
func (l *Lobby) turn(way int64) int64 {
	i := (way + 1) / 2
	l.turns[i] += way
	return l.turns[i]
}

// room finds or makes the room of a request.
func (l *Lobby) room(r *Request) *planRoom {
	list := l.rooms[r.plan.Name]
	for _, q := range list {
		if (q.plan == r.plan || sameTargets(q.plan, r.plan)) && q.fits(r) {
			return q
		}
	}
	q := &planRoom{plan: r.plan, n: l.turn(+1), index: -1}
	q.fit = make([]bool, len(r.plan.Targets))
	for i := range q.fit {
		q.fit[i] = r.usable(i)
	}
	l.rooms[r.plan.Name] = append(list, q)
	return q
}

func (q *planRoom) fits(r *Request) bool {
	for i := range q.fit {
		if q.fit[i] != r.usable(i) {
			return false
		}
	}
	return true
}

// sameTargets tells plans that were made anew from those that were changed.
func sameTargets(a, b *Plan) bool {
	return slices.EqualFunc(a.Targets, b.Targets, func(x, y Target) bool { return x.Target == y.Target })
}

// Leave says that the request waits no more. One that was let go and will not try its luck has
// to say so too, or those behind it would wait for its outcome.
func (l *Lobby) Leave(r *Request, now time.Time) {
	q, w := r.room, r.waiter
	if w == nil {
		return
	}
	r.room, r.waiter = nil, nil
	if q.leave(w) {
		l.pollAt(q, now)
	}
}

// Changed says that a gate of the provider may have opened.
func (l *Lobby) Changed(provider string, now time.Time) {
	for _, list := range l.rooms {
		for _, q := range list {
			for i := range q.plan.Targets {
				if q.fit[i] && q.plan.Targets[i].Key().Provider == provider {
					l.pollAt(q, now)
					break
				}
			}
		}
	}
}

// Waiting returns how many requests wait, for status and metrics.
func (l *Lobby) Waiting() int {
	n := 0
	for _, list := range l.rooms {
		for _, q := range list {
			n += len(q.waiters)
		}
	}
	return n
}

// Release is a waiter that is let go, or one whose attempt hangs that is to look around. Call Wake outside every lock.
type Release struct {
	waiter *waiter
	waited time.Duration
	look   func()
}

// Wake tells the request, which has to be given Woken, or what Watch says.
func (w Release) Wake() {
	if w.look != nil {
		w.look()
		return
	}
	w.waiter.wake(w.waited)
}

// Poll lets go those whose time has come, and says when to poll again at the latest; zero means
// not before the next Enter, Leave, Changed or Watch.
func (l *Lobby) Poll(now time.Time) (out []Release, again time.Time) {
	for range len(l.due) {
		if len(l.due) == 0 {
			break
		}
		q := l.due[0]
		if q.at.After(now) {
			break
		}
		s, recovery := q.standing(now)
		before := q.scout
		let, next := q.poll(s, recovery, now)
		out = append(out, let...)
		if len(q.waiters) == 0 && q.scout == nil {
			l.close(q)
			continue
		}
		if q.scout != nil && q.scout != before {
			q.n = l.turn(+1)
		}
		l.pollAt(q, next)
	}
	looks, again := l.lookAround(now)
	if len(l.due) > 0 && (again.IsZero() || l.due[0].at.Before(again)) {
		again = l.due[0].at
	}
	return append(out, looks...), again
}

// standing asks the gates of the plan. recovery is when the next of them may let someone through
// by itself, zero where that is not known.
func (q *planRoom) standing(now time.Time) (best standing, recovery time.Time) {
	for i := range q.plan.Targets {
		if !q.fit[i] {
			continue
		}
		x, out, asProbe := q.plan.Targets[i].Standing(false)
		switch {
		case !out && !asProbe:
			return open, time.Time{}
		case !out:
			best = probing
		case x.RetryAfter > 0:
			if t := now.Add(x.RetryAfter); recovery.IsZero() || t.Before(recovery) {
				recovery = t
			}
		}
	}
	return best, recovery
}

// pollAt sets when a room is polled next; zero takes it out of the queue.
func (l *Lobby) pollAt(q *planRoom, t time.Time) {
	q.at = t
	switch {
	case t.IsZero() && q.index >= 0:
		heap.Remove(&l.due, q.index)
	case t.IsZero():
	case q.index >= 0:
		heap.Fix(&l.due, q.index)
	default:
		heap.Push(&l.due, q)
	}
}

func (l *Lobby) close(q *planRoom) {
	l.pollAt(q, time.Time{})
	name := q.plan.Name
	rest := slices.DeleteFunc(l.rooms[name], func(x *planRoom) bool { return x == q })
	if l.rooms[name] = rest; len(rest) == 0 {
		delete(l.rooms, name)
	}
}

// empty lets everybody go.
func (l *Lobby) empty(now time.Time) (out []Release) {
	for _, list := range l.rooms {
		for _, q := range list {
			q.time(now)
			for len(q.waiters) > 0 {
				out = append(out, q.first())
			}
		}
	}
	return out
}

// roomQueue is a heap of the rooms by when they are to be polled.
type roomQueue []*planRoom

func (h roomQueue) Len() int { return len(h) }

func (h roomQueue) Less(i, j int) bool {
	if c := h[i].at.Compare(h[j].at); c != 0 {
		return c < 0
	}
	return h[i].n < h[j].n
}

func (h roomQueue) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *roomQueue) Push(x any) {
	q := x.(*planRoom)
	q.index = len(*h)
	*h = append(*h, q)
}

func (h *roomQueue) Pop() any {
	old := *h
	q := old[len(old)-1]
	old[len(old)-1] = nil
	*h, q.index = old[:len(old)-1], -1
	return q
}
