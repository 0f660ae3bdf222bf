package resilience

import (
	"context"
	"errors"
	"slices"
	"time"
)

// BreakerOptions configure a breaker that is used alone. Zero values mean the defaults of
// BreakerPolicy.
type BreakerOptions struct {
	FailureThreshold int
	ResetTimeout     time.Duration
	HalfOpenRequests int
	// EarlyProbes are the pauses before the single calls that pass while OPEN. Nil means the
	// policy's (2s, 4s, 8s, 10s, ...), an empty slice none: then OPEN lasts its ResetTimeout.
	EarlyProbes    []time.Duration
	CooldownByKind map[Kind]time.Duration
	// ClassifyError says what kind an error of the function is. Nil counts every error as
	// server_error; KindCanceled is neutral.
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

// CircuitBreaker returns the breaker of that name: the provider's own where the name is a
// provider's, so that both see the same state. Options that are set hold from now on for all who
// use that breaker; no options at all change nothing.
func (e *Engine) CircuitBreaker(name string, o BreakerOptions) *CircuitBreaker {
	e.mu.Lock()
	defer e.mu.Unlock()
	d := e.domain(Key{Provider: name})
	if p, set := o.policy(*e.policyOf(name)); set || d.own == nil {
		d.policy, d.own = p, p
	}
	b := &CircuitBreaker{e: e, d: d, classify: o.ClassifyError}
	if o.OnStateChange != nil {
		if d.onState != nil {
			e.bus.remove(d.onState)
		}
		state := d.breaker.breakerView(d.policy, e.now())
		d.onState = &handler{event: func(ev Event) {
			if ev.Layer != LayerBreaker || ev.Key != d.key {
				return
			}
			if to, ok := stateAfter[ev.Type]; ok && to != state {
				from := state
				state = to
				o.OnStateChange(name, from, to)
			}
		}}
		e.bus.add(d.onState)
	}
	return b
}

// policy returns base with the options that are set, and whether any is.
func (o BreakerOptions) policy(base Policy) (p *Policy, set bool) {
	b := &base.Breaker
	if o.FailureThreshold > 0 {
		b.FailureThreshold, b.DegradedThreshold, set = o.FailureThreshold, 0, true
	}
	if o.ResetTimeout > 0 {
		b.ResetTimeout, set = o.ResetTimeout, true
	}
	if o.HalfOpenRequests > 0 {
		b.HalfOpenRequests, set = o.HalfOpenRequests, true
	}
	if o.EarlyProbes != nil {
		b.EarlyProbes, set = slices.Clone(o.EarlyProbes), true
	}
	if o.CooldownByKind != nil {
		b.CooldownByKind, set = o.CooldownByKind, true
	}
	base = base.Defaults()
	return &base, set
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
	begun = b.e.seq.Load() // before the look at the gate; see Target.acquire
	if b.d.word.Load()&bitGated == 0 {
		b.d.count()
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
		return b.e.date, 0, nil
	case refused:
		x := Exclusion{Layer: LayerBreaker, Kind: g.kind, Until: wall(a.until, now, clock), RetryAfter: a.next - now, Held: a.held, Reason: g.rule}
		if a.held {
			x.RetryAfter = min(x.RetryAfter, heldRetry)
		}
		return 0, 0, &ExcludedError{Key: b.d.key, Exclusion: x}
	}
	b.e.lastID++
	b.e.setBreaker(b.d, g.admit(a, b.e.lastID, b.d.policy, now), "probe")
	return b.e.date, b.e.lastID, nil
}

func (b *CircuitBreaker) succeed(begun, lease uint64) {
	if b.d.word.Load() == 0 && !b.e.watch.Load() {
		return
	}
	e := b.e
	e.mu.Lock()
	defer e.unlock()
	seq := e.tick()
	e.local.success(e, b.d.endpoint, seq)
	if b.d.breaker.clean() {
		return
	}
	end := e.share.refutes()
	defer end()
	next, closed, _ := b.d.breaker.breakerSuccess("", begun, seq, b.d.policy)
	e.setBreaker(b.d, next.release(lease), "success")
	if closed {
		e.clearTransient(b.d, seq, nil)
	}
}

func (b *CircuitBreaker) fail(begun, lease uint64, kind Kind) {
	if kind == KindCanceled {
		b.release(lease)
		return
	}
	if kind == KindUnknown {
		kind = KindServerError
	}
	e := b.e
	e.mu.Lock()
	defer e.unlock()
	r := report{sent: b.d.sentInRun(), key: b.d.key, kind: kind, begun: begun, lease: lease, seq: e.tick()}
	next := b.d.breaker.breakerFail(r, b.d.policy, e.now())
	e.setBreaker(b.d, next.release(lease), "failure")
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
		end := b.e.share.refutes()
		defer end()
		b.e.setBreaker(b.d, b.d.breaker.cleared(b.e.tick()), "reset")
	}
}
