package failover

import (
	"fmt"
	"slices"
	"time"

	"omniroute/resilience"
)

// Limits bound one request. The zero value of a field means its default.
type Limits struct {
	// MaxAttempts is how many attempts may be dispatched in all. Defaults to 6.
	MaxAttempts int
	// Deadline is how long the request may take in all. Defaults to 10m.
	Deadline time.Duration
	// Patience is how long in all a request may wait for a target that has just stated when it
	// will be back, before it moves to the next entry of the plan. Defaults to 2s; negative
	// means none. PatienceForAny extends it to failures without such a statement.
	Patience       time.Duration
	PatienceForAny bool
	// MaxWait is how long in all a request may wait for a target when none is eligible.
	// Defaults to 10s; negative means not at all.
	MaxWait time.Duration
	// SuspectAfter is when an attempt without content is suspicious. 0 means automatic: twice
	// the recent 95th percentile, at least 1s; with under 20 recent answers a tenth of the
	// target's timeout, at least 1s.
	SuspectAfter time.Duration
	// WaitingRoom is how many requests of one plan may wait at once. Defaults to 2000.
	WaitingRoom int
	// QueueWait is how long in all a request may wait in line for a place on a connection,
	// QueueDepth how many may be in one line. Default to 30s and 100; negative means not at all.
	QueueWait  time.Duration
	QueueDepth int
}

// Defaults returns l with every zero field replaced by its default.
func (l Limits) Defaults() Limits {
	set(&l.MaxAttempts, 6)
	set(&l.Deadline, 10*time.Minute)
	set(&l.Patience, 2*time.Second)
	set(&l.MaxWait, 10*time.Second)
	set(&l.WaitingRoom, 2000)
	set(&l.QueueWait, 30*time.Second)
	set(&l.QueueDepth, 100)
	l.Patience, l.MaxWait, l.QueueWait = max(l.Patience, 0), max(l.MaxWait, 0), max(l.QueueWait, 0)
	return l
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Target is one candidate of a plan.
type Target struct {
	*resilience.Target
	// Entry numbers the plan's entries. Targets of one entry are siblings: connections of one
	// provider for one model. They are tried one after the other without patience.
	Entry int
	// Window is the model's context window in tokens, 0 where it is not known. Model knows more,
	// and goes before it.
	Window int64
	Model  Model
	// Places are the connection's, Meter what the upstream has left for it; nil where nothing
	// bounds them.
	Places *Places
	Meter  Meter
	// FirstToken is how long a streamed attempt may take to its first content, Answer how long
	// another one may take in all. Default to 60s and 5m.
	FirstToken, Answer time.Duration
	// Streamed and Whole hold the recent times to the first content of streamed answers and
	// of whole answers; nil where nobody keeps them.
	Streamed, Whole *Latency
	// Pulse follows how the target is doing, for strategies; nil where nobody does.
	Pulse *Pulse
	// Headroom tells what is left of the target's rate limits; nil where nobody knows.
	Headroom Headroom
	// Data is the driver's own.
	Data any
}

// Headroom tells how much a target has left of its rate limits, from 0 (nothing) to 1 (all of it), and
// false where nothing fresh is known. It is asked for every candidate of every request: it must be
// quick and safe for concurrent use, and must change nothing.
type Headroom interface {
	Headroom(now time.Time) (fraction float64, known bool)
}

// Plan is what a name stands for: targets in their order. It does not change once it is in use,
// so that any number of requests may share it.
type Plan struct {
	// Name identifies the plan: requests of one name wait in one room.
	Name    string
	Targets []Target
	Limits  Limits
	// Ordered says that a later entry is second best, so that patience is worth something.
	Ordered bool
	// Hedge says when a second target is asked beside a slow one. The zero value means never.
	Hedge Hedge
	// LastResort lets a request that would fail since everything is out try the target that will
	// be back soonest, once.
	LastResort bool

	gates []*resilience.Target // of the targets
}

// NewPlan completes a plan: limits and timeouts that are not set get their defaults.
func NewPlan(p Plan) (*Plan, error) {
	p.Limits = p.Limits.Defaults()
	if err := p.Hedge.complete(); err != nil {
		return nil, fmt.Errorf("plan %q: %w", p.Name, err)
	}
	p.Targets = slices.Clone(p.Targets)
	p.gates = make([]*resilience.Target, len(p.Targets))
	for i := range p.Targets {
		t := &p.Targets[i]
		if t.Target == nil {
			return nil, fmt.Errorf("plan %q: target %d is not resolved", p.Name, i)
		}
		p.gates[i] = t.Target
		set(&t.FirstToken, 60*time.Second)
		set(&t.Answer, 5*time.Minute)
	}
	return &p, nil
}
