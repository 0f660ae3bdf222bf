package resilience

import (
	"slices"
	"time"
)

// Standing is how a target stands, for one who plans.
type Standing struct {
	Exclusion      // where Out is true
	Out       bool // Acquire would refuse
	Probe     bool // Acquire would admit as a probe or a recheck
}

// Standings is Standing for many targets at once, under one lock and at one moment. It stores
// them in into, which it lengthens where it is too short, and changes nothing else. All targets
// must be of this engine.
func (e *Engine) Standings(targets []*Target, alone bool, into []Standing) []Standing {
	into = slices.Grow(into[:0], len(targets))[:len(targets)]
	var clock time.Time
	locked := false
	for i, t := range targets {
		if t.unknown() {
			into[i] = Standing{}
			continue
		}
		if !locked {
			clock, locked = e.opts.Now(), true
			e.mu.Lock()
		}
		x, a, _ := e.peek(t).decide(alone, clock)
		into[i] = Standing{x, a == refused, a == probe || a == recheck}
	}
	if locked {
		e.mu.Unlock()
	}
	return into
}

// Admission is what Acquire would say, without the reasons.
type Admission uint8

// What Acquire would say.
const (
	Free     Admission = iota // it would admit, and nothing is in doubt
	Doubtful                  // it would admit as a probe or a recheck
	Out                       // it would refuse
)

// Admissions is Standings without the reasons, at a fraction of the cost: it stores what each target
// would say in into, which must be as long. All targets must be of this engine.
func (e *Engine) Admissions(targets []*Target, into []Admission) {
	var clock time.Time
	locked := false
	for i, t := range targets {
		if t.unknown() {
			into[i] = Free
			continue
		}
		if !locked {
			clock, locked = e.opts.Now(), true
			e.mu.Lock()
		}
		into[i] = e.peek(t).admission(clock)
	}
	if locked {
		e.mu.Unlock()
	}
}

func (t *Target) admission(clock time.Time) Admission {
	if _, out := t.byOperator(clock); out {
		return Out
	}
	var answers [4]answer
	switch t.ask(false, clock.Sub(t.engine.start), &answers) {
	case refused:
		return Out
	case probe, recheck:
		return Doubtful
	}
	return Free
}
