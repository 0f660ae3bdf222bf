package failover

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"omniroute/classify"
	"omniroute/resilience"
)

// Options adjust Run. The zero value is the default.
type Options struct {
	Limits Limits
	// Stream says that fn calls Attempt.FirstContent as soon as the answer begins: until then
	// FirstToken bounds the attempt, afterwards nothing but the deadline does.
	Stream bool
	// Hedge lets fn run for a second target beside one that is slow. The zero value means never.
	Hedge Hedge
	// FirstToken and Answer bound an attempt; see Target.
	FirstToken, Answer time.Duration
	// Caller is on whose behalf fn runs. Where Runner.Limit bounds a connection, those who wait for
	// a place on it are served caller by caller.
	Caller uint64
	// Verdict judges an error of fn. Nil asks the error itself (a method Verdict()
	// resilience.Verdict), else the classifier, which knows transport errors; what it does not
	// know counts as a transient failure of the provider.
	Verdict func(resilience.Key, error) resilience.Verdict
}

// Error is what Run returns when no target has answered. It wraps the errors of all attempts.
type Error struct {
	Report Report
	Causes []error // of the attempts that failed, in order
}

// Error tells every attempt and every skipped target.
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("no target has answered")
	switch e.Report.Cause {
	case CauseNoConnection:
		b.WriteString(": none was given")
	case CauseDeadline:
		b.WriteString(" before the deadline")
	case CauseQueueFull:
		b.WriteString(": too many requests wait for one already")
	case CauseLocal:
		b.WriteString(": this machine's own network is out")
	case CauseBusy:
		b.WriteString(": as many calls run as are allowed, and there was no place in time")
	}
	for _, a := range e.Report.Attempts {
		fmt.Fprintf(&b, "; %s %s", a.Key, a.Outcome)
		if a.Outcome == OutcomeFailed {
			fmt.Fprintf(&b, ": %s", a.Verdict)
		}
	}
	for _, s := range e.Report.Skipped {
		if s.Unfit {
			fmt.Fprintf(&b, "; %s could do no better", s.Key)
			continue
		}
		fmt.Fprintf(&b, "; %v", &resilience.ExcludedError{Key: s.Key, Exclusion: s.Exclusion})
	}
	if e.Report.RetryAfter > 0 {
		fmt.Fprintf(&b, "; retry after %v", e.Report.RetryAfter.Round(time.Millisecond))
	}
	return b.String()
}

// Unwrap returns the errors of the attempts.
func (e *Error) Unwrap() []error { return e.Causes }

// Panic is what Run panics with, on its caller's goroutine, when fn has panicked.
type Panic struct {
	Value any    // what fn panicked with
	Stack []byte // where
}

// String says what happened and where.
func (p Panic) String() string { return fmt.Sprintf("%v\n\n%s", p.Value, p.Stack) }

// Run calls fn for one target after the other until one call succeeds, and returns its value.
// Targets with the same provider and model next to each other are siblings.
//
// fn must return soon after its context has ended, which is also how it learns that it took too
// long or that another attempt was faster: Run does not wait for it. When a provider hangs, or
// with Options.Hedge when one is slow, fn may be running for two targets at once. The context ends
// when Run returns, so that the value must not depend on it.
//
// A ctx that has ended before asks nobody. The error is an *Error, or ctx's, or tells of options that make no sense. An fn that panics is
// not the target's fault: Run panics with a Panic.
func Run[T any](ctx context.Context, rn *Runner, targets []resilience.Key, fn func(context.Context, *Attempt) (T, error)) (T, error) {
	return RunWith(ctx, rn, targets, Options{}, fn)
}

// RunWith is Run with options.
func RunWith[T any](ctx context.Context, rn *Runner, targets []resilience.Key, o Options, fn func(context.Context, *Attempt) (T, error)) (T, error) {
	var zero T
	plan, err := rn.plans.get(rn.engine, &rn.places, targets, o)
	if err != nil {
		return zero, err
	}
	if err := ctx.Err(); err != nil { // the caller has left already: nobody is asked
		return zero, err
	}
	bounded, cancel := context.WithTimeout(ctx, plan.Limits.Deadline)
	defer cancel()
	d := &runDriver[T]{h: rn.Handle(NewRequest(plan, nil, o.Stream).For(Ask{Caller: o.Caller})), o: o, fn: fn, parent: ctx, ctx: bounded}
	defer d.finish()
	return d.drive()
}

// runDriver drives one request whose attempts are calls of a function.
type runDriver[T any] struct {
	h           *Handle
	o           Options
	fn          func(context.Context, *Attempt) (T, error)
	parent, ctx context.Context
	calls       []*call

	mu      sync.Mutex
	results map[int]result[T]
	causes  []error
}

// call is one call of the function.
type call struct {
	id     int
	handle *Handle
	ctx    context.Context
	cancel context.CancelFunc
	timer  *time.Timer
	won    chan struct{} // closed when its answer is the one that counts
}

// result is how a call returned. The last two are for calls that did not.
type result[T any] struct {
	value T
	err   error
	panic *Panic
	exit  bool // runtime.Goexit
}

var errTooLate = errors.New("no content in time")

func (d *runDriver[T]) drive() (T, error) {
	var zero T
	answer := 0
	a := d.h.Do(Event{Type: Begin})
	for {
		for _, c := range a.Cancel {
			d.calls[c.ID-1].cancel()
		}
		switch a.Type {
		case Dispatch:
			d.start(a.Attempt)
		case Commit:
			answer = a.Attempt.ID
			d.calls[answer-1].timer.Stop()
			close(d.calls[answer-1].won)
		case GiveUp:
			if err := d.parent.Err(); err != nil {
				return zero, err
			}
			return zero, &Error{Report: d.h.Report(time.Now()), Causes: d.causes}
		case Finish:
			return zero, d.ctx.Err() // abandoned
		}
		ev := d.h.Next(d.ctx)
		switch {
		case ev.Type == Ended || ev.Type == Failed:
			res := d.result(ev.Attempt)
			if res.panic != nil {
				panic(*res.panic)
			}
			if res.exit {
				runtime.Goexit()
			}
			if ev.Attempt == answer {
				d.h.Do(Event{Type: Ended, Attempt: answer, Verdict: ev.Verdict})
				return res.value, res.err
			}
			if ev.Type == Failed && d.h.find(ev.Attempt) != nil {
				d.causes = append(d.causes, res.err)
				d.calls[ev.Attempt-1].cancel()
			}
		case ev.Type == TimedOut && answer != 0:
			ev.Type = Abandoned // the answer had begun: it is not the target's fault
		}
		a = d.h.Do(ev)
	}
}

// start calls fn for an attempt. How it ends comes back as events, in order with all others.
func (d *runDriver[T]) start(a *Attempt) {
	c := &call{id: a.ID, handle: d.h, won: make(chan struct{})}
	c.ctx, c.cancel = context.WithCancel(d.ctx)
	a.call = c
	d.calls = append(d.calls, c)
	c.timer = time.AfterFunc(a.Timeout, func() {
		d.end(a, result[T]{err: fmt.Errorf("%s: %w", a.Target.Key(), errTooLate)})
	})
	go func() {
		res := result[T]{exit: true}
		defer func() {
			if res.exit {
				if p := recover(); p != nil {
					res.exit, res.panic = false, &Panic{p, debug.Stack()}
				}
			}
			d.end(a, res)
		}()
		res.value, res.err = d.fn(c.ctx, a)
		res.exit = false
	}()
}

// end takes in how a call ended, or that its time is up, whichever comes first.
func (d *runDriver[T]) end(a *Attempt, res result[T]) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ended := d.results[a.ID]; ended {
		return
	}
	if d.results == nil {
		d.results = map[int]result[T]{}
	}
	d.results[a.ID] = res
	if res.err != nil || res.exit || res.panic != nil {
		d.h.Tell(Event{Type: Failed, Attempt: a.ID, Verdict: d.judge(a.Target.Key(), res.err)})
		return
	}
	d.h.Tell(Event{Type: Content, Attempt: a.ID})
	d.h.Tell(Event{Type: Ended, Attempt: a.ID})
}

func (d *runDriver[T]) result(id int) result[T] {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.results[id]
}

func (d *runDriver[T]) judge(key resilience.Key, err error) resilience.Verdict {
	var own interface{ Verdict() resilience.Verdict }
	switch {
	case err == nil:
		return resilience.Verdict{Scope: resilience.ScopeLocal}
	case errors.Is(err, errTooLate):
		return resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout, Rule: "timeout.first_content"}
	case d.o.Verdict != nil:
		return d.o.Verdict(key, err)
	case errors.As(err, &own):
		return own.Verdict()
	}
	return transportErrors().Classify(classify.Input{Provider: key.Provider, Model: key.Model, Err: err, Now: time.Now()})
}

// finish ends what still runs.
func (d *runDriver[T]) finish() {
	d.h.Close()
	for _, c := range d.calls {
		c.cancel()
		c.timer.Stop()
	}
}

// FirstContent says that the attempt's answer has begun, and reports whether it is the one that
// counts: then it is not repeated elsewhere if it breaks off. Where it returns false another
// attempt was faster or the time was up, and fn should return. It is for functions under RunWith
// with Options.Stream, and waits only for Run itself.
func (a *Attempt) FirstContent() bool {
	c := a.call
	if c == nil || !c.handle.Tell(Event{Type: Content, Attempt: c.id}) {
		return false
	}
	select {
	case <-c.won:
		return true
	case <-c.ctx.Done():
		select {
		case <-c.won:
			return true
		default:
			return false
		}
	}
}
