package failover

import (
	"context"
	"sync"
	"time"

	"omniroute/resilience"
)

// Runner holds what requests share: the engine's news and the waiting rooms. It is safe for
// concurrent use. Close it when no request uses it any more.
type Runner struct {
	engine *resilience.Engine
	stop   []func()

	mu     sync.Mutex
	lobby  *Lobby
	timer  *time.Timer
	next   time.Time // what the timer is set to
	closed bool
	slow   map[*Handle]struct{} // requests with a suspicious attempt
}

// NewRunner returns a Runner for an engine.
func NewRunner(e *resilience.Engine) *Runner {
	rn := &Runner{engine: e, lobby: NewLobby(), slow: map[*Handle]struct{}{}}
	rn.stop = []func(){
		e.OnOpening(func(provider string) {
			rn.mu.Lock()
			rn.lobby.Changed(provider, time.Now())
			rn.pollUnlock()
		}),
		e.Subscribe(func(ev resilience.Event) {
			if ev.Type == resilience.EventOpened && ev.Cause == "suspicion" {
				rn.suspected(ev.Key)
			}
		}),
	}
	return rn
}

// Engine returns the engine that the runner works under.
func (rn *Runner) Engine() *resilience.Engine { return rn.engine }

// Close ends the runner's timer and its hold on the engine. Requests in the rooms are woken as
// expired.
func (rn *Runner) Close() {
	for _, stop := range rn.stop {
		stop()
	}
	rn.mu.Lock()
	rn.closed = true
	if rn.timer != nil {
		rn.timer.Stop()
	}
	all := rn.lobby.expireAll(time.Now())
	rn.mu.Unlock()
	for _, w := range all {
		w.Wake()
	}
}

// Waiting returns how many requests wait for a target.
func (rn *Runner) Waiting() int {
	rn.mu.Lock()
	defer rn.mu.Unlock()
	return rn.lobby.Waiting()
}

// pollUnlock polls the rooms, sets the timer and gives the lock back before it wakes anyone.
func (rn *Runner) pollUnlock() {
	if rn.closed {
		rn.mu.Unlock()
		return
	}
	now := time.Now()
	let, again := rn.lobby.Poll(now)
	if !again.IsZero() && (rn.next.IsZero() || again.Before(rn.next) || !rn.next.After(now)) {
		rn.next = again
		if d := again.Sub(now); rn.timer == nil {
			rn.timer = time.AfterFunc(d, rn.tick)
		} else {
			rn.timer.Reset(d)
		}
	}
	rn.mu.Unlock()
	for _, w := range let {
		w.Wake()
	}
}

func (rn *Runner) tick() {
	rn.mu.Lock()
	rn.next = time.Time{}
	rn.pollUnlock()
}

func (rn *Runner) suspected(key resilience.Key) {
	rn.mu.Lock()
	var tell []*Handle
	for h := range rn.slow {
		if k := h.suspect.Target.Key(); k.Provider == key.Provider && (key.Connection == "" || k.Connection == key.Connection) {
			tell = append(tell, h)
		}
	}
	rn.mu.Unlock()
	for _, h := range tell {
		h.tell(Event{Type: Suspect, Attempt: h.suspect.ID})
	}
}

// Handle drives one request in real time: it keeps the timers and turns what happens elsewhere
// into events. Do, Next and Close are
// for one goroutine; Tell is for any.
type Handle struct {
	*Request
	rn      *Runner
	events  chan Event
	waiter  *Waiter
	suspect *Attempt // registered with the runner
	timers  []*time.Timer
	done    chan struct{}
}

// Handle begins to drive a request.
func (rn *Runner) Handle(r *Request) *Handle {
	// Two attempts, their suspicion and the room have at most an event each under way.
	return &Handle{Request: r, rn: rn, events: make(chan Event, 4), done: make(chan struct{})}
}

// Tell passes an event to whoever waits in Next. It may be called from any goroutine, and
// returns false when the handle was closed before the event was taken in.
func (h *Handle) Tell(ev Event) bool {
	select {
	case h.events <- ev:
		return true
	case <-h.done:
		return false
	}
}

// tell is Tell for news that must not hold up their sender and that the request can do without
// while it is busy with others.
func (h *Handle) tell(ev Event) {
	select {
	case h.events <- ev:
	default:
	}
}

// Do steps the request now and prepares what the action asks for: the room, the timers of an
// attempt or of a pause. The caller starts and cancels attempts.
func (h *Handle) Do(ev Event) Action {
	now := time.Now()
	a := h.Step(ev, now)
	if ev.Type == Suspect {
		h.register(ev.Attempt)
	}
	switch a.Type {
	case Dispatch:
		id := a.Attempt.ID
		if a.Attempt.SuspectAfter < a.Attempt.Timeout {
			h.after(a.Attempt.SuspectAfter, Event{Type: Suspect, Attempt: id})
		}
	case Pause:
		h.after(a.Until.Sub(now), Event{Type: Woken})
	case Enter:
		h.rn.mu.Lock()
		w, ok := h.rn.lobby.Enter(h.Request, a.Budget, func(waited time.Duration, _ bool) {
			h.tell(Event{Type: Woken, Waited: waited})
		}, now)
		h.waiter = w
		h.rn.pollUnlock()
		if !ok {
			return h.Do(Event{Type: RoomFull})
		}
	}
	return a
}

func (h *Handle) after(d time.Duration, ev Event) {
	h.timers = append(h.timers, time.AfterFunc(d, func() { h.tell(ev) }))
}

func (h *Handle) register(id int) {
	a := h.find(id)
	h.rn.mu.Lock()
	defer h.rn.mu.Unlock()
	if a == nil || h.over || h.committed != nil {
		delete(h.rn.slow, h)
		return
	}
	h.suspect = a
	h.rn.slow[h] = struct{}{}
}

// Next waits for the next event. When ctx ends first it returns Abandoned, or TimedOut when the
// request's deadline has passed; the caller sets that deadline on ctx.
func (h *Handle) Next(ctx context.Context) Event {
	select {
	case ev := <-h.events:
		return ev
	default:
	}
	select {
	case ev := <-h.events:
		return ev
	case <-ctx.Done():
		if context.Cause(ctx) == context.DeadlineExceeded {
			return Event{Type: TimedOut}
		}
		return Event{Type: Abandoned}
	}
}

// Close gives back what the handle holds. The request must be over.
func (h *Handle) Close() {
	close(h.done)
	for _, t := range h.timers {
		t.Stop()
	}
	if h.waiter == nil && h.suspect == nil {
		return
	}
	h.rn.mu.Lock()
	defer h.rn.mu.Unlock()
	delete(h.rn.slow, h)
	if h.waiter != nil {
		h.rn.lobby.Leave(h.Request, h.waiter)
	}
}
