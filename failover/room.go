package failover

import (
	"container/heap"
	"slices"
	"time"
)

// waiter is one request in a waiting room, from Enter until it leaves or is let go.
type waiter struct {
	wake    func(waited time.Duration)
	since   time.Time     // when its request first waited: the oldest goes first
	entered time.Duration // on the room's clock
	expires time.Duration // on the room's clock, when its budget is used up
	n       uint64        // who came first, among those that expire at the same time
	index   int           // among the expiring
}

// standing is how a room's targets stand towards those who wait.
type standing uint8

const (
	shut    standing = iota // nobody may go
	probing                 // one may go and find out
	open                    // all may go, in their turn
)

// room holds the requests that wait for any of the same targets (law R3). It is a state machine
// without a clock or a lock: its owner polls it.
//
// Those who wait do not come back all at once. When a gate opens they are let go oldest first,
// evenly over as long as the oldest has waited. If the gates shut before the room is empty, the
// next release takes twice as long, up to eight times; an emptied room resets that.
type room struct {
	waiters  []*waiter // oldest first
	expiring expiring
	limit    int
	maxWait  time.Duration
	entries  uint64
	opening  bool
	nextAt   time.Time
	interval time.Duration
	slowdown int
	// scout is the waiter that was sent to probe and has not come back or got through yet.
	scout *waiter

	// What counts as waiting: the room's own clock stands still while a gate is open.
	clock time.Duration
	since time.Time // when the clock was last read; zero while it stands
}

const maxSlowdown = 3 // doublings: eight times

// time reads the room's clock.
func (q *room) time(now time.Time) time.Duration {
	if !q.opening {
		if !q.since.IsZero() {
			q.clock += now.Sub(q.since)
		}
		q.since = now
	}
	return q.clock
}

// enter takes a waiter in, among the others by its age, or refuses when the room is full.
func (q *room) enter(w *waiter, budget time.Duration, now time.Time) bool {
	if len(q.waiters) >= q.limit {
		return false
	}
	w.entered = q.time(now)
	w.expires = w.entered + budget
	q.entries++
	w.n = q.entries
	q.waiters = slices.Insert(q.waiters, q.behind(w.since), w)
	heap.Push(&q.expiring, w)
	return true
}

// behind returns the place behind all waiters that are as old or older.
func (q *room) behind(since time.Time) int {
	i, _ := slices.BinarySearchFunc(q.waiters, since, func(w *waiter, t time.Time) int {
		if w.since.After(t) {
			return 1
		}
		return -1
	})
	return i
}

// leave takes out one that waits no more, and reports whether that changes anything for others.
func (q *room) leave(w *waiter) bool {
	if q.scout == w {
		q.scout = nil
		return true
	}
	return q.remove(w) && len(q.waiters) == 0
}

func (q *room) remove(w *waiter) bool {
	for i := q.behind(w.since) - 1; i >= 0 && q.waiters[i].since.Equal(w.since); i-- {
		if q.waiters[i] == w {
			q.waiters = slices.Delete(q.waiters, i, i+1)
			heap.Remove(&q.expiring, w.index)
			return true
		}
	}
	return false
}

// poll lets go whom it may and says when to poll again at the latest: zero when only news can
// change anything. recovery is when a target may be probed next, zero where that is not known.
func (q *room) poll(s standing, recovery, now time.Time) (out []Release, again time.Time) {
	if s != probing {
		q.scout = nil
	}
	q.time(now)
	if len(q.waiters) == 0 {
		q.opening, q.slowdown, q.since = false, 0, now
		return nil, time.Time{}
	}
	if s == open {
		if !q.opening {
			q.open(now)
		}
		for len(q.waiters) > 0 && !q.nextAt.After(now) {
			out = append(out, q.first())
			q.nextAt = q.nextAt.Add(q.interval)
		}
		if len(q.waiters) == 0 {
			q.opening, q.slowdown, q.since = false, 0, now
			return out, time.Time{}
		}
		return out, q.nextAt
	}
	if q.opening { // shut before it was empty
		q.opening, q.since = false, now
		q.slowdown = min(q.slowdown+1, maxSlowdown)
	}
	if s == probing && q.scout == nil {
		q.scout = q.waiters[0]
		out = append(out, q.first())
	}
	for len(q.expiring) > 0 && q.expiring[0].expires <= q.clock {
		w := q.expiring[0]
		q.remove(w)
		out = append(out, q.release(w))
	}
	again = recovery
	if len(q.expiring) > 0 {
		if t := now.Add(q.expiring[0].expires - q.clock); again.IsZero() || t.Before(again) {
			again = t
		}
	}
	return out, again
}

// open begins a release: from now on no wait counts.
func (q *room) open(now time.Time) {
	q.opening, q.nextAt = true, now
	span := min(now.Sub(q.waiters[0].since), q.maxWait) << q.slowdown
	q.interval = span / time.Duration(len(q.waiters))
}

// first takes out the oldest.
func (q *room) first() Release {
	w := q.waiters[0]
	q.waiters[0] = nil
	q.waiters = q.waiters[1:]
	heap.Remove(&q.expiring, w.index)
	return q.release(w)
}

func (q *room) release(w *waiter) Release { return Release{waiter: w, waited: q.clock - w.entered} }

// expiring is a heap of the waiters by when their budgets are used up.
type expiring []*waiter

func (h expiring) Len() int { return len(h) }

func (h expiring) Less(i, j int) bool {
	if h[i].expires != h[j].expires {
		return h[i].expires < h[j].expires
	}
	return h[i].n < h[j].n
}

func (h expiring) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

func (h *expiring) Push(x any) {
	w := x.(*waiter)
	w.index = len(*h)
	*h = append(*h, w)
}

func (h *expiring) Pop() any {
	old := *h
	w := old[len(old)-1]
	old[len(old)-1] = nil
	*h = old[:len(old)-1]
	return w
}
