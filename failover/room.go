package failover

import (
	"slices"
	"time"
)

// waiter is one request in a waiting room, from Enter until it leaves or is let go.
type waiter struct {
	wake func(waited time.Duration)

	since   time.Time // when its request began to wait: the oldest goes first
	budget  time.Duration
	counted time.Duration
	running time.Time // since when the wait counts; zero while a gate is open
}

func (w *waiter) waited(now time.Time) time.Duration {
	if w.running.IsZero() {
		return w.counted
	}
	return w.counted + now.Sub(w.running)
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
	limit    int
	maxWait  time.Duration
	opening  bool
	nextAt   time.Time
	interval time.Duration
	slowdown int
	// scout is the waiter that was sent to probe and has not come back or got through yet.
	scout *waiter
	// expiry is when the first budget may be used up, at the earliest; zero while none runs.
	expiry time.Time
}

const maxSlowdown = 3 // doublings: eight times

// enter takes a waiter in, among the others by its age, or refuses when the room is full.
func (q *room) enter(w *waiter, now time.Time) bool {
	if len(q.waiters) >= q.limit {
		return false
	}
	if !q.opening {
		q.run(w, now)
	}
	i, _ := slices.BinarySearchFunc(q.waiters, w, func(a, b *waiter) int {
		if a.since.After(b.since) {
			return 1
		}
		return -1 // behind those of the same age
	})
	q.waiters = slices.Insert(q.waiters, i, w)
	return true
}

// run lets a waiter's time count.
func (q *room) run(w *waiter, now time.Time) {
	w.running = now
	if t := now.Add(w.budget - w.counted); q.expiry.IsZero() || t.Before(q.expiry) {
		q.expiry = t
	}
}

// leave takes out one that waits no more, and reports whether that changes anything for others.
func (q *room) leave(w *waiter) bool {
	if q.scout == w {
		q.scout = nil
		return true
	}
	i := slices.Index(q.waiters, w)
	if i < 0 {
		return false
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	return len(q.waiters) == 0
}

// poll lets go whom it may and says when to poll again at the latest: zero when only news can
// change anything. recovery is when a target may be probed next, zero where that is not known.
func (q *room) poll(s standing, recovery, now time.Time) (out []Release, again time.Time) {
	if s != probing {
		q.scout = nil
	}
	if len(q.waiters) == 0 {
		q.opening, q.slowdown = false, 0
		return nil, time.Time{}
	}
	if s == open {
		if !q.opening {
			q.open(now)
		}
		for len(q.waiters) > 0 && !q.nextAt.After(now) {
			out = append(out, q.first(now))
			q.nextAt = q.nextAt.Add(q.interval)
		}
		if len(q.waiters) == 0 {
			q.opening, q.slowdown = false, 0
			return out, time.Time{}
		}
		return out, q.nextAt
	}
	q.shut(now)
	if s == probing && q.scout == nil {
		q.scout = q.waiters[0]
		out = append(out, q.first(now))
	}
	out = append(out, q.expire(now)...)
	again = recovery
	if !q.expiry.IsZero() && (again.IsZero() || q.expiry.Before(again)) {
		again = q.expiry
	}
	return out, again
}

// open begins a release: from now on no wait counts.
func (q *room) open(now time.Time) {
	q.opening, q.nextAt, q.expiry = true, now, time.Time{}
	span := min(now.Sub(q.waiters[0].since), q.maxWait) << q.slowdown
	q.interval = span / time.Duration(len(q.waiters))
	for _, w := range q.waiters {
		w.counted, w.running = w.waited(now), time.Time{}
	}
}

// shut ends a release before the room was empty.
func (q *room) shut(now time.Time) {
	if !q.opening {
		return
	}
	q.opening = false
	q.slowdown = min(q.slowdown+1, maxSlowdown)
	for _, w := range q.waiters {
		q.run(w, now)
	}
}

func (q *room) first(now time.Time) Release {
	w := q.waiters[0]
	q.waiters[0] = nil
	q.waiters = q.waiters[1:]
	return Release{w, w.waited(now)}
}

// expire lets go those whose budget is used up.
func (q *room) expire(now time.Time) (out []Release) {
	if q.expiry.IsZero() || now.Before(q.expiry) {
		return nil
	}
	q.expiry = time.Time{}
	q.waiters = slices.DeleteFunc(q.waiters, func(w *waiter) bool {
		waited := w.waited(now)
		if waited >= w.budget {
			out = append(out, Release{w, waited})
			return true
		}
		if t := now.Add(w.budget - waited); q.expiry.IsZero() || t.Before(q.expiry) {
			q.expiry = t
		}
		return false
	})
	return out
}
