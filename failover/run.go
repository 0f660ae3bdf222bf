package failover

import (
	"context"
	"errors"
	"fmt"
	"strings"
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
	// FirstToken and Answer bound an attempt; see Target.
	FirstToken, Answer time.Duration
	// Verdict judges an error of fn. Nil asks the error itself (a method Verdict()
	// resilience.Verdict), else the classifier, which knows transport errors; what it does not
	// know counts as server_error of the provider.
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
	for _, a := range e.Report.Attempts {
		fmt.Fprintf(&b, "; %s %s: %s", a.Key, a.Outcome, a.Verdict)
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

// FirstContent says that the attempt's answer has begun: it is the one that counts, and it is
// not repeated elsewhere if it breaks off. It is for functions under Run.
func (a *Attempt) FirstContent() {
	if a.handle != nil {
		a.handle.Tell(Event{Type: Content, Attempt: a.ID})
	}
}

// Run calls fn for one target after the other until one call succeeds, and returns its value.
// Targets with the same provider and model next to each other are siblings. fn must return when
// its context ends, which is also how it learns that another attempt was faster; it may be
// running twice at once when a provider hangs. The error is an *Error, or ctx's.
func Run[T any](ctx context.Context, rn *Runner, targets []resilience.Key, fn func(context.Context, *Attempt) (T, error)) (T, error) {
	return RunWith(ctx, rn, targets, Options{}, fn)
}

// RunWith is Run with options.
func RunWith[T any](ctx context.Context, rn *Runner, targets []resilience.Key, o Options, fn func(context.Context, *Attempt) (T, error)) (T, error) {
	var zero T
	plan, err := planOf(rn.engine, targets, o)
	if err != nil {
		return zero, err
	}
	ctx, cancel := context.WithTimeout(ctx, plan.Limits.Deadline)
	defer cancel()
	h := rn.Handle(NewRequest(plan, nil, o.Stream))
	d := &runDriver[T]{h: h, o: o, fn: fn, ctx: ctx, results: make(chan result[T], plan.Limits.MaxAttempts), cancels: map[int]context.CancelFunc{}}
	defer d.finish()
	return d.drive()
}

func planOf(e *resilience.Engine, keys []resilience.Key, o Options) (*Plan, error) {
	p := Plan{Limits: o.Limits, Ordered: true}
	var name strings.Builder
	for i, k := range keys {
		entry := 0
		if i > 0 {
			entry = p.Targets[i-1].Entry
			if k.Provider != keys[i-1].Provider || k.Model != keys[i-1].Model {
				entry++
			}
		}
		p.Targets = append(p.Targets, Target{Target: e.Target(k), Entry: entry, FirstToken: o.FirstToken, Answer: o.Answer})
		fmt.Fprintf(&name, "%q,", k)
	}
	p.Name = name.String()
	return NewPlan(p)
}

type result[T any] struct {
	id    int
	value T
	err   error
}

// runDriver drives one request whose attempts are calls of a function.
type runDriver[T any] struct {
	h       *Handle
	o       Options
	fn      func(context.Context, *Attempt) (T, error)
	ctx     context.Context
	results chan result[T]
	cancels map[int]context.CancelFunc
	timers  map[int]*time.Timer
	keys    map[int]resilience.Key
	started int
	causes  []error
}

var errFirstToken = errors.New("no content in time")

func (d *runDriver[T]) drive() (T, error) {
	var zero T
	a := d.h.Do(Event{Type: Begin})
	var answer int
	for {
		for _, c := range a.Cancel {
			d.cancels[c.ID]()
		}
		switch a.Type {
		case Dispatch:
			d.start(a.Attempt)
		case Commit:
			answer = a.Attempt.ID
			if t := d.timers[answer]; t != nil && d.o.Stream {
				t.Stop()
			}
		case GiveUp:
			return zero, &Error{Report: d.h.Report(time.Now()), Causes: d.causes}
		}
		var ev Event
		select {
		case res := <-d.results:
			if res.err == nil {
				if res.id != answer {
					if c := d.h.Do(Event{Type: Content, Attempt: res.id}); c.Type != Commit {
						a = c
						continue
					}
				}
				d.h.Do(Event{Type: Ended, Attempt: res.id})
				return res.value, nil
			}
			v := d.judge(res.id, res.err)
			d.causes = append(d.causes, res.err)
			if res.id == answer {
				d.h.Do(Event{Type: Ended, Attempt: res.id, Verdict: v})
				return zero, res.err
			}
			ev = Event{Type: Failed, Attempt: res.id, Verdict: v}
		case ev = <-d.h.events:
		case <-d.ctx.Done():
			if errors.Is(d.ctx.Err(), context.DeadlineExceeded) {
				ev = Event{Type: TimedOut}
				break
			}
			d.h.Do(Event{Type: Abandoned})
			return zero, d.ctx.Err()
		}
		a = d.h.Do(ev)
		if a.Type == Continue && ev.Type == TimedOut {
			return zero, d.ctx.Err() // the answer had begun
		}
	}
}

func (d *runDriver[T]) start(a *Attempt) {
	ctx, cancel := context.WithCancelCause(d.ctx)
	if d.timers == nil {
		d.timers, d.keys = map[int]*time.Timer{}, map[int]resilience.Key{}
	}
	a.handle = d.h
	d.started++
	d.keys[a.ID] = a.Target.Key()
	d.cancels[a.ID] = func() { cancel(context.Canceled) }
	d.timers[a.ID] = time.AfterFunc(a.Timeout, func() { cancel(errFirstToken) })
	go func() {
		res := result[T]{id: a.ID}
		defer func() {
			if p := recover(); p != nil {
				res.err = fmt.Errorf("the call panicked: %v", p)
			}
			if res.err != nil && errors.Is(context.Cause(ctx), errFirstToken) {
				res.err = fmt.Errorf("%w: %w", errFirstToken, res.err)
			}
			d.results <- res
		}()
		res.value, res.err = d.fn(ctx, a)
	}()
}

func (d *runDriver[T]) judge(id int, err error) resilience.Verdict {
	var own interface{ Verdict() resilience.Verdict }
	key := d.keys[id]
	switch {
	case errors.Is(err, errFirstToken):
		return resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout, Rule: "timeout.first_content"}
	case d.o.Verdict != nil:
		return d.o.Verdict(key, err)
	case errors.As(err, &own):
		return own.Verdict()
	}
	v := transportErrors().Classify(classify.Input{Provider: key.Provider, Model: key.Model, Err: err, Now: time.Now()})
	if v.Scope == resilience.ScopeNone {
		v = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError, Rule: "error"}
	}
	return v
}

// finish ends what still runs and waits for it.
func (d *runDriver[T]) finish() {
	for _, cancel := range d.cancels {
		cancel()
	}
	for _, t := range d.timers {
		t.Stop()
	}
	d.h.Close()
}
