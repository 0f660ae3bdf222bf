package failover

import (
	"sync"
	"time"

	"omniroute/resilience"
)

// Runner holds what requests share: the engine's news, the waiting rooms, and what Run has
// learned of its targets. It is safe for concurrent use. Close it when no request uses it any
// more.
type Runner struct {
	engine *resilience.Engine
	stop   []func()
	plans  planCache
	places PlaceSet

	mu     sync.Mutex
	lobby  *Lobby
	timer  *time.Timer
	next   time.Time // what the timer is set to
	closed bool
}

// NewRunner returns a Runner for an engine.
func NewRunner(e *resilience.Engine) *Runner {
	rn := &Runner{engine: e, lobby: NewLobby()}
	rn.stop = []func(){
		e.OnOpening(func(provider string) {
			rn.mu.Lock()
			rn.lobby.Changed(provider, time.Now())
			rn.pollUnlock()
		}),
		e.Subscribe(func(ev resilience.Event) {
			rn.mu.Lock()
			all := rn.lobby.Heard(ev)
			rn.mu.Unlock()
			for _, tell := range all {
				tell()
			}
		}),
	}
	return rn
}

// Limit sets how many calls of Run may run at once on a connection; 0 means any number. It may be
// changed at any time.
func (rn *Runner) Limit(provider, connection string, n int) {
	rn.places.Of(resilience.Key{Provider: provider, Connection: connection}).Limit(n)
	rn.plans.forget()
}

// Engine returns the engine that the runner works under.
func (rn *Runner) Engine() *resilience.Engine { return rn.engine }

// Close ends the runner's timer and its hold on the engine. From then on no request waits in a
// room: those that do are let go, and who comes later finds it full.
func (rn *Runner) Close() {
	for _, stop := range rn.stop {
		stop()
	}
	rn.mu.Lock()
	rn.closed = true
	if rn.timer != nil {
		rn.timer.Stop()
	}
	all := rn.lobby.empty(time.Now())
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
