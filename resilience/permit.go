package resilience

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// ErrExcluded is what every refusal is: errors.Is(err, ErrExcluded).
var ErrExcluded = errors.New("excluded")

// Exclusion is why a target turns traffic away, and until when.
type Exclusion struct {
	Layer Layer
	Kind  Kind
	// Until is the deadline; zero where there is none that is known (a quarantine, or an
	// operator's exclusion without an end).
	Until time.Time
	// RetryAfter is how long until the target may let a request through by itself, an OPEN
	// breaker's early probe included; 0 where that is not known.
	RetryAfter time.Duration
	// Held says that only a probe in flight keeps the target shut: its end is what to wait for.
	Held bool
	// Reason is an operator's own word, or the rule that fired.
	Reason string
}

// HasKind reports whether the exclusion has a kind: an operator's own has none, and neither has a
// connection without a free place.
func (x *Exclusion) HasKind() bool { return x.Layer != LayerOperator && x.Layer != LayerConcurrency }

// ExcludedError is a refusal by Acquire.
type ExcludedError struct {
	Key Key
	Exclusion
}

// Error says who is out, why and until when.
func (e *ExcludedError) Error() string {
	s := fmt.Sprintf("%s is excluded by its %s (%s)", e.Key, e.Layer, e.Kind)
	switch {
	case e.Held:
		return s + ": a probe is in flight"
	case e.Until.IsZero():
		return s + " until someone acts"
	}
	return s + " until " + e.Until.UTC().Format("2006-01-02T15:04:05.000Z")
}

// Is makes errors.Is(err, ErrExcluded) true.
func (e *ExcludedError) Is(target error) bool { return target == ErrExcluded }

// Permit is the right to make one attempt. It is a small value; copies are the same permit.
// Settle it once with Success, Failure or Neutral: settling again is harmless, and a permit that
// is lost blocks nothing beyond its lease. The zero Permit settles nothing.
type Permit struct {
	slot  *slot
	gen   uint64
	t     *Target
	begun uint64
	lease uint64
	mode  permitMode
}

type permitMode uint8

const (
	normal permitMode = iota
	probing
	rechecking
	desperate // let through as a last resort
)

// slot tells whether a permit is settled: its state is the generation, and two marks below it.
// Slots are reused, generations never.
type slot struct{ state atomic.Uint64 }

const (
	markContent = 1 << iota
	markWaited
	genShift = iota
)

var slots = sync.Pool{New: func() any { return new(slot) }}

func newPermit(t *Target, begun uint64) Permit {
	s := slots.Get().(*slot)
	return Permit{slot: s, gen: s.state.Load() >> genShift, t: t, begun: begun}
}

// settle ends the permit and reports whether this call did, and which marks it bore.
func (p Permit) settle() (uint64, bool) {
	if p.slot == nil {
		return 0, false
	}
	for {
		s := p.slot.state.Load()
		if s>>genShift != p.gen {
			return 0, false
		}
		if p.slot.state.CompareAndSwap(s, (p.gen+1)<<genShift) {
			slots.Put(p.slot)
			return s, true
		}
	}
}

// mark sets a mark and reports whether this call did.
func (p Permit) mark(m uint64) bool {
	if p.slot == nil {
		return false
	}
	for {
		s := p.slot.state.Load()
		if s>>genShift != p.gen || s&m != 0 {
			return false
		}
		if p.slot.state.CompareAndSwap(s, s|m) {
			return true
		}
	}
}

// Key returns the target that the permit is for.
func (p Permit) Key() Key {
	if p.t == nil {
		return Key{}
	}
	return p.t.key
}

// Probe reports whether the attempt decides about an exclusion that is due.
func (p Permit) Probe() bool { return p.mode == probing }

// Recheck reports whether the attempt looks after a long exclusion that stays for the others.
func (p Permit) Recheck() bool { return p.mode == rechecking }

// FirstContent says that the first real content of the answer has come. It is the evidence of
// health: it closes a half-open breaker and clears what a success clears. The end of the answer
// can then only add a failure.
func (p Permit) FirstContent() {
	if p.mark(markContent) {
		p.t.succeed(p)
	}
}

// Success settles the permit: the answer is complete.
func (p Permit) Success() {
	if s, ok := p.settle(); ok {
		if s&markContent == 0 {
			p.t.succeed(p)
		}
		p.t.mend(p)
		if p.lease != 0 {
			p.t.engine.ended(p)
		}
	}
}

// Failure settles the permit with what the attempt's end says. A verdict of ScopeNone is a
// success; request, client and local scope are neutral.
func (p Permit) Failure(v Verdict) {
	if v.Scope == ScopeNone {
		p.Success()
		return
	}
	if marks, ok := p.settle(); ok {
		p.t.engine.fail(p, v, marks&markContent != 0)
	}
}

// Neutral settles the permit without a verdict: the client left, a local limit ended it, or
// another attempt was faster.
func (p Permit) Neutral() {
	if marks, ok := p.settle(); ok && p.lease != 0 {
		p.t.engine.release(p, marks&markWaited != 0)
	}
}

// Waited says that the attempt has waited suspiciously long for its first content. Enough of
// them in a row, with no content meanwhile, open the breaker before any of them times out.
// The permit is not settled by it; saying it again is harmless.
func (p Permit) Waited() {
	if p.slot != nil && p.slot.state.Load()&markContent == 0 && p.mark(markWaited) {
		p.t.engine.waited(p)
	}
}
