package failover

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Handle drives one request in real time: it keeps the timers and turns what happens elsewhere
// into events. Do, Next and Close are for one goroutine; Tell is for any.
type Handle struct {
	*Request
	rn      *Runner
	timers  []timer
	watched bool // the lobby may know of a slow attempt

	mu     sync.Mutex
	queue  []Event
	taken  int // how many of the queue were taken out
	closed bool
	signal chan struct{} // holds a token while the queue may have something
}

// timer is one that was set for an attempt, for a pause (attempt 0), or for the wait in line.
type timer struct {
	*time.Timer
	attempt int
}

const inTheLine = -1

// Handle begins to drive a request.
func (rn *Runner) Handle(r *Request) *Handle {
	return &Handle{Request: r, rn: rn, signal: make(chan struct{}, 1)}
}

// Tell passes an event to whoever waits in Next, in the order of the calls. It may be called from
// any goroutine, never blocks, and returns false when the handle is closed.
func (h *Handle) Tell(ev Event) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	h.queue = append(h.queue, ev)
	select {
	case h.signal <- struct{}{}:
	default:
	}
	return true
}

// Do steps the request now and prepares what the action asks for: the room, the timers of an
// attempt or of a pause. The caller starts and cancels attempts.
func (h *Handle) Do(ev Event) Action {
	now := time.Now()
	a := h.Step(ev, now)
	for _, c := range a.Cancel {
		h.stopTimers(c.ID)
	}
	switch ev.Type {
	case Failed:
		h.stopTimers(ev.Attempt)
	case Suspect:
		h.watch(ev.Attempt)
	case Called:
		h.stopTimers(inTheLine)
	}
	switch a.Type {
	case Dispatch:
		if t := a.Attempt; t.SuspectAfter < t.Timeout {
			h.after(t.SuspectAfter, Suspect, t.ID)
		}
		if t := a.Attempt; t.HedgeAfter > 0 {
			h.after(t.HedgeAfter, Slow, t.ID)
		}
	case Commit:
		h.stopTimers(a.Attempt.ID)
	case Pause:
		h.after(a.Until.Sub(now), Woken, 0)
	case Queue:
		h.after(a.Until.Sub(now), Woken, inTheLine)
		if !h.Line(func() { h.Tell(Event{Type: Called}) }) {
			h.stopTimers(inTheLine)
			return h.Do(Event{Type: RoomFull})
		}
	case Enter:
		h.rn.mu.Lock()
		in := !h.rn.closed && h.rn.lobby.Enter(h.Request, a.Budget, func(waited time.Duration) {
			h.Tell(Event{Type: Woken, Waited: waited})
		}, now)
		h.rn.pollUnlock()
		if !in {
			return h.Do(Event{Type: RoomFull})
		}
	}
	return a
}

func (h *Handle) after(d time.Duration, what EventType, attempt int) {
	h.timers = append(h.timers, timer{time.AfterFunc(d, func() { h.Tell(Event{Type: what, Attempt: attempt}) }), attempt})
}

func (h *Handle) stopTimers(attempt int) {
	for _, t := range h.timers {
		if t.attempt == attempt {
			t.Stop()
		}
	}
}

func (h *Handle) watch(attempt int) {
	h.rn.mu.Lock()
	h.watched = true
	h.rn.lobby.Watch(h.Request, attempt, func() { h.Tell(Event{Type: Suspect, Attempt: attempt}) })
	h.rn.pollUnlock()
}

// Next waits for the next event. When ctx ends first it returns Abandoned, or TimedOut when the
// request's deadline has passed; the caller sets that deadline on ctx.
func (h *Handle) Next(ctx context.Context) Event {
	for {
		if ev, ok := h.take(); ok {
			return ev
		}
		select {
		case <-h.signal:
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), context.DeadlineExceeded) {
				return Event{Type: TimedOut}
			}
			return Event{Type: Abandoned}
		}
	}
}

func (h *Handle) take() (Event, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == len(h.queue) {
		return Event{}, false
	}
	ev := h.queue[h.taken]
	if h.taken++; h.taken == len(h.queue) {
		h.queue, h.taken = h.queue[:0], 0
	}
	return ev, true
}

// Close gives back what the handle holds. A request that is not over is abandoned.
func (h *Handle) Close() {
	h.Step(Event{Type: Abandoned}, time.Now())
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	for _, t := range h.timers {
		t.Stop()
	}
	if h.waiter == nil && !h.watched {
		return
	}
	h.rn.mu.Lock()
	h.rn.lobby.Unwatch(h.Request)
	h.rn.lobby.Leave(h.Request, time.Now())
	h.rn.pollUnlock()
}
