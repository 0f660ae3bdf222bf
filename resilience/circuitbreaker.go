package resilience

import (
	"context"
	"errors"
	"time"
)

// BreakerOptions configure a breaker that is used alone. Zero values mean the defaults of
// BreakerPolicy.
type BreakerOptions struct {
	FailureThreshold int
	ResetTimeout     time.Duration
	HalfOpenRequests int
	CooldownByKind   map[Kind]time.Duration
	// ClassifyError says what kind an error of the function is. Nil counts every error as
	// server_error.
	ClassifyError func(error) Kind
	// OnStateChange is called after each change of state, outside every lock: it may use the
	// breaker.
	OnStateChange func(name string, from, to BreakerState)
}

// CircuitBreaker is layer 1 alone. It counts every failure that it is told of, rate limits
// included. Its methods are safe for concurrent use.
type CircuitBreaker struct {
	e        *Engine
	d        *domain
	classify func(error) Kind
}

// CircuitBreaker returns the breaker of that name with these options from now on: the provider's
// own where the name is a provider's, so that both see the same state.
func (e *Engine) CircuitBreaker(name string, o BreakerOptions) *CircuitBreaker {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.domain(Key{Provider: name})
	p := *d.policy
	if o.FailureThreshold > 0 {
		p.Breaker.FailureThreshold, p.Breaker.DegradedThreshold = o.FailureThreshold, 0
	}
	if o.ResetTimeout > 0 {
		p.Breaker.ResetTimeout = o.ResetTimeout
	}
	if o.HalfOpenRequests > 0 {
		p.Breaker.HalfOpenRequests = o.HalfOpenRequests
	}
	if o.CooldownByKind != nil {
		p.Breaker.CooldownByKind = o.CooldownByKind
	}
	p = p.Defaults()
	d.policy, d.own = &p, &p
	b := &CircuitBreaker{e: e, d: d, classify: o.ClassifyError}
	if o.OnStateChange != nil {
		state := d.breaker.breakerView(d.policy, e.now())
		e.bus.add(&handler{event: func(ev Event) {
			if ev.Layer != LayerBreaker || ev.Key != d.key {
				return
			}
			if to, ok := stateAfter[ev.Type]; ok && to != state {
				from := state
				state = to
				o.OnStateChange(name, from, to)
			}
		}})
	}
	return b
}

var stateAfter = map[EventType]BreakerState{
	EventDegraded: Degraded, EventOpened: Open, EventHalfOpen: HalfOpen, EventClosed: Closed,
}

// CanExecute reports whether Execute would run its function now. It changes nothing.
func (b *CircuitBreaker) CanExecute() bool {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	return b.d.breaker.breakerAsk("", b.d.policy, false, b.e.now()).verdict != refused
}

// Execute runs fn if the breaker admits it, else it returns an *ExcludedError. An error of fn
// counts as a failure and is returned; one that comes of the caller's own cancellation is
// neutral. A panic counts as a failure and goes on.
func (b *CircuitBreaker) Execute(ctx context.Context, fn func(context.Context) error) error {
	begun, lease, err := b.admit()
	if err != nil {
		return err
	}
	settled := false
	defer func() {
		if !settled {
			b.fail(begun, lease, KindServerError)
		}
	}()
	err = fn(ctx)
	settled = true
	switch {
	case err == nil:
		b.succeed(begun, lease)
	case ctx.Err() != nil && errors.Is(err, context.Canceled):
		b.release(lease)
	case b.classify != nil:
		b.fail(begun, lease, b.classify(err))
	default:
		b.fail(begun, lease, KindServerError)
	}
	return err
}

func (b *CircuitBreaker) admit() (begun, lease uint64, err error) {
	begun = b.e.seq.Load()
	if b.d.word.Load()&bitGated == 0 {
		return begun, 0, nil
	}
	clock := b.e.opts.Now()
	now := clock.Sub(b.e.start)
	b.e.mu.Lock()
	defer b.e.unlock()
	g := b.d.breaker
	a := g.breakerAsk("", b.d.policy, false, now)
	switch a.verdict {
	case free:
		return begun, 0, nil
	case refused:
		x := Exclusion{Layer: LayerBreaker, Kind: g.kind, Until: wall(a.until, now, clock), RetryAfter: a.next - now, Held: a.held, Reason: g.rule}
		return 0, 0, &ExcludedError{Key: b.d.key, Exclusion: x}
	}
	b.e.lastID++
	b.e.setBreaker(b.d, g.admit(a, b.e.lastID, b.d.policy, now), "probe")
	return b.e.seq.Load(), b.e.lastID, nil
}

func (b *CircuitBreaker) succeed(begun, lease uint64) {
	if b.d.word.Load() == 0 {
		return
	}
	b.e.mu.Lock()
	defer b.e.unlock()
	seq := b.e.seq.Add(1)
	if !b.d.breaker.clean() {
		next, closed, _ := b.d.breaker.breakerSuccess("", begun, lease, seq, b.d.policy)
		b.e.setBreaker(b.d, next, "success")
		if closed {
			b.e.clearTransient(b.d, seq, nil)
		}
	}
}

func (b *CircuitBreaker) fail(begun, lease uint64, kind Kind) {
	b.e.mu.Lock()
	defer b.e.unlock()
	r := report{key: b.d.key, kind: kind, begun: begun, lease: lease, seq: b.e.seq.Add(1)}
	b.e.setBreaker(b.d, b.d.breaker.breakerFail(r, b.d.policy, b.e.now()), "failure")
}

func (b *CircuitBreaker) release(lease uint64) {
	if lease == 0 {
		return
	}
	b.e.mu.Lock()
	defer b.e.unlock()
	b.e.setBreaker(b.d, b.d.breaker.release(lease), "released")
}

// Status returns the breaker's state. It changes nothing.
func (b *CircuitBreaker) Status() BreakerStatus {
	b.e.mu.Lock()
	defer b.e.mu.Unlock()
	clock := b.e.opts.Now()
	return view{b.e, clock, clock.Sub(b.e.start)}.breaker(b.d)
}

// Reset closes the breaker and empties its count.
func (b *CircuitBreaker) Reset() {
	b.e.mu.Lock()
	defer b.e.unlock()
	if !b.d.breaker.clean() {
		b.e.setBreaker(b.d, b.d.breaker.cleared(b.e.seq.Add(1)), "reset")
	}
}
