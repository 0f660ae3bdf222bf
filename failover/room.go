package failover

import (
	"slices"
	"time"
)

// Waiter is one request in a waiting room. It belongs to its room from Enter to its wake-up.
type Waiter struct {
	// Wake is called once, outside the room's lock, with how much of the wait counts and
	// whether the budget is used up.
	Wake func(waited time.Duration, expired bool)

	since   time.Time // when its request began to wait: the oldest goes first
	budget  time.Duration
	counted time.Duration
	running time.Time // since when the wait counts; zero while a gate is open
}

func (w *Waiter) waited(now time.Time) time.Duration {
	if w.running.IsZero() {
		return w.counted
	}
	return w.counted + now.Sub(w.running)
}

// standing is how a plan's targets stand towards those who wait.
type standing uint8

const (
	shut    standing = iota // nobody may go
	probing                 // one may go and find out
	open                    // all may go, in their turn
)

// room holds the requests of one plan that wait for any of its targets (law R3). It is a state
// machine without a clock or a lock: its owner polls it.
//
// Those who wait do not come back all at once. When a gate opens they are let go oldest first,
// evenly over as long as the oldest has waited. If the gates shut before the room is empty, the
// next release takes twice as long, up to eight times; an emptied room resets that.
type room struct {
	waiters  []*Waiter // oldest first
	limit    int
	maxWait  time.Duration
	opening  bool
	nextAt   time.Time
	interval time.Duration
	slowdown int
	// scout is the waiter that was sent to probe and has not come back or got through yet.
	scout bool
}

// woken is one waiter that the room lets go.
type woken struct {
	w       *Waiter
	waited  time.Duration
	expired bool
}

// enter takes a waiter in, among the others by its age, or refuses when the room is full.
func (q *room) enter(w *Waiter, now time.Time) bool {
	if len(q.waiters) >= q.limit {
		return false
	}
	w.running = now
	if q.opening {
		w.running = time.Time{}
	}
	i, _ := slices.BinarySearchFunc(q.waiters, w, func(a, b *Waiter) int { return a.since.Compare(b.since) })
	for i < len(q.waiters) && q.waiters[i].since.Equal(w.since) {
		i++
	}
	q.waiters = slices.Insert(q.waiters, i, w)
	return true
}

// leave takes out one whose request is over.
func (q *room) leave(w *Waiter) {
	if i := slices.Index(q.waiters, w); i >= 0 {
		q.waiters = slices.Delete(q.waiters, i, i+1)
	}
}

// poll lets go whom it may and says when to poll again at the latest: zero when only news from
// the gates can change anything. recovery is when the next target may be probed, zero where that
// is not known.
func (q *room) poll(s standing, recovery, now time.Time) (out []woken, again time.Time) {
	if len(q.waiters) == 0 {
		q.opening, q.slowdown, q.scout = false, 0, false
		return nil, time.Time{}
	}
	switch s {
	case open:
		q.scout = false
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
	case probing:
		q.shut(now)
		if !q.scout {
			q.scout = true
			out = append(out, q.first(now))
		}
	case shut:
		q.shut(now)
		q.scout = false
	}
	out = append(out, q.expire(now)...)
	again = recovery
	for _, w := range q.waiters {
		if t := now.Add(w.budget - w.waited(now)); again.IsZero() || t.Before(again) {
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
	q.slowdown = min(q.slowdown+1, 3)
	for _, w := range q.waiters {
		w.running = now
	}
}

func (q *room) first(now time.Time) woken {
	w := q.waiters[0]
	q.waiters = q.waiters[1:]
	return woken{w: w, waited: w.waited(now)}
}

func (q *room) expire(now time.Time) (out []woken) {
	q.waiters = slices.DeleteFunc(q.waiters, func(w *Waiter) bool {
		waited := w.waited(now)
		if waited < w.budget {
			return false
		}
		out = append(out, woken{w, waited, true})
		return true
	})
	return out
}
