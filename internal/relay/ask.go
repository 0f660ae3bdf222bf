package relay

import (
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/dialect/needs"
	"omniroute/internal/headroom"
)

// request begins to drive the request. What it asks for is large, and Serve's frame lies below every
// open stream.
//
//go:noinline
func (x *exchange) request() *failover.Handle {
	ask := failover.Ask{Caller: x.Caller, Bytes: int64(len(x.Asked.Body)), Estimate: x.needs, Look: x.glance}
	return x.rl.o.Runner.Handle(failover.NewRequest(x.Route.Plan, x.picker, x.Asked.Stream).For(ask))
}

// needs reads what the request needs. It knows nothing once the body has been let go.
func (x *exchange) needs() failover.Needs {
	if x.released {
		return failover.Needs{}
	}
	return needs.Read(x.Asked.Body)
}

// glance is needs for those to whom a look is enough.
func (x *exchange) glance() failover.Needs {
	if x.released {
		return failover.Needs{}
	}
	return needs.Glance(x.Asked.Body)
}

// hearLimits takes in what the answer's headers say of what the upstream will still take.
func (c *call) hearLimits() {
	if r, ok := c.attempt.Reserved().(*headroom.Reservation); ok {
		r.Heard(c.header, time.Now())
	}
}

// noteUse says what the answer has cost, for the estimates of what others will.
func (c *call) noteUse() {
	u := &c.told.usage
	r, ok := c.attempt.Reserved().(*headroom.Reservation)
	if !ok || !u.Known {
		return
	}
	input := u.Input
	if c.up.Dialect == catalog.Anthropic || c.up.Provider.Known != nil && c.up.Provider.Known.FreeCacheReads {
		input -= u.CacheRead
	}
	r.Used(max(input, 0), u.Output)
}
