package relay

import (
	"omniroute/failover"
)

// drive brings the request from an action to its end: an answer to commit, a failure to report, or a client
// that has left.
//
// An attempt runs in the handler's own goroutine, which is all that most requests need. When it
// waits suspiciously long the loop is handed over to another goroutine, which may start further
// attempts beside it; the handler then gets the outcome from there.
func (x *exchange) drive(act failover.Action) failover.Action {
	for {
		switch act.Type {
		case failover.Commit, failover.GiveUp, failover.Finish:
			return act
		case failover.Dispatch:
			act = x.runHere(act.Attempt)
		default:
			act = x.do(x.handle.Next(x.r.Context()))
		}
	}
}

// do steps the loop and cancels what it wants cancelled.
func (x *exchange) do(ev failover.Event) failover.Action {
	act := x.handle.Do(ev)
	for _, a := range act.Cancel {
		x.call(a.ID).end()
	}
	return act
}

// runHere runs an attempt in this goroutine and returns what comes after it.
func (x *exchange) runHere(a *failover.Attempt) failover.Action {
	c := x.newCall(a)
	x.setInline(c)
	ev := c.run()
	if driver := x.setInline(nil); driver != nil {
		x.handle.Tell(ev)
		return <-driver
	}
	return x.do(ev)
}

func (x *exchange) setInline(c *call) chan failover.Action {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.inline = c
	return x.driver
}

// handOver and slowWriter make the call the keeper of its watch.
func (c *call) handOver()   { c.x.handOver(c) }
func (c *call) slowWriter() { c.x.hurryWriter() }

// handOver starts a goroutine that drives the loop while the handler waits for its attempt.
func (x *exchange) handOver(c *call) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.inline != c || x.driver != nil {
		return
	}
	driver := make(chan failover.Action, 1)
	x.driver = driver
	x.rl.running.Go(func() { driver <- x.driveAside() })
}

// driveAside is drive for another goroutine than the handler's.
func (x *exchange) driveAside() failover.Action {
	handle := x.handle // one that has lost may outlast it
	for {
		act := x.do(handle.Next(x.r.Context()))
		switch act.Type {
		case failover.Commit, failover.GiveUp, failover.Finish:
			return act
		case failover.Dispatch:
			c := x.newCall(act.Attempt)
			x.rl.running.Go(func() { handle.Tell(c.run()) })
		}
	}
}

func (x *exchange) newCall(a *failover.Attempt) *call {
	c := newCall(x, a)
	x.calls = append(x.calls, c)
	x.reaching.Add(1)
	return c
}
