package failover

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// Request is one request on its way over a plan. It is a state machine for one driver: its
// methods must not be called at the same time.
type Request struct {
	plan   *Plan
	picker Picker // nil: the plan's own order
	stream bool
	start  time.Time
	now    time.Time // of the present step
	ask    Ask

	state   []targetState // by target
	left    int           // targets that are not barred
	open    Open
	met     []Skip // exclusions that were met before the first attempt
	running []*Attempt
	records []Record

	dispatched int
	waitLeft   time.Duration
	queueLeft  time.Duration
	patience   time.Duration
	retries    int
	last       int // index of the target that failed last, -1 before that
	pausing    pauseKind
	pauseFrom  time.Time
	committed  *Attempt
	resuming   bool    // an answer has broken off, and another attempt is to finish it
	stop       *Record // the first failure that is the request's or the client's own
	final      bool    // nothing more is to be tried; what runs may still answer
	single     bool    // never two attempts at once
	over       bool
	cause      Cause

	// The lobby's: when the request first waited, which is its age there, and where it waits.
	firstWait time.Time
	waiter    *waiter
	room      *planRoom

	lines     []*Places // where to wait for a place
	line      *ticket   // in which it waits for one
	granted   *Places   // has a place for it
	passed    []int     // targets that it passed over for limits of their own
	desperate bool      // its last resort was tried
	stretched bool      // nothing fits by what is known, so that one was let through all the same

	// Room for what a request needs that is answered at once, so that it allocates only itself and what
	// outlives it.
	fewStates  [4]targetState
	fewMarks   [4]mark
	fewRunning [2]*Attempt
}

// targetState is what a request knows of one target.
type targetState struct {
	backAt time.Time // when it said that it would be back
	silent bool      // its last failure was a timeout
	tried  bool      // since the last wait
	met    bool      // its exclusion is among those that were met
	unfit  bool      // could do no better than one that refused the request
	barred bool      // not for this request at all, and unfit
	judged bool      // lacks is known
	lacks  *lack     // what it needs and the model has not
}

// lack is why a model could not take a request.
type lack struct {
	what string
	kind resilience.Kind
}

type pauseKind uint8

const (
	notPausing pauseKind = iota
	patient
	retrying
	inRoom
	resumption
	inLine
)

// NewRequest begins a request on a plan. picker says in which order to try the plan's targets;
// nil means in the plan's own. stream says whether the client asked for a stream.
func NewRequest(p *Plan, picker Picker, stream bool) *Request {
	n := len(p.Targets)
	r := &Request{plan: p, picker: picker, stream: stream, left: n, waitLeft: p.Limits.MaxWait, queueLeft: p.Limits.QueueWait, patience: p.Limits.Patience, last: -1}
	if n <= len(r.fewStates) {
		r.state, r.open.marks = r.fewStates[:n], r.fewMarks[:n]
	} else {
		r.state, r.open.marks = make([]targetState, n), make([]mark, n)
	}
	r.running = r.fewRunning[:0]
	return r
}

// Single says that the request must never be with two targets at once, since it would make
// something twice (law R10). Call it before the first step.
func (r *Request) Single() { r.single = true }

// For says what the request asks for. It must be said before the first step.
func (r *Request) For(a Ask) *Request {
	r.ask = a
	return r
}

// Dispatched returns how many attempts were sent so far.
func (r *Request) Dispatched() int { return r.dispatched }

// Deadline returns when the request must be over.
func (r *Request) Deadline() time.Time { return r.start.Add(r.plan.Limits.Deadline) }

// Step takes in one event and says what to do.
func (r *Request) Step(ev Event, now time.Time) Action {
	if r.over {
		return Action{Type: Finish}
	}
	r.now = now
	a := r.step(ev, now)
	switch {
	case r.over, a.Type != Queue && a.Type != Continue:
		r.leaveLine()
	case r.granted != nil: // there is no use for it
		r.granted.free()
		r.granted = nil
	}
	return a
}

func (r *Request) step(ev Event, now time.Time) Action {
	switch ev.Type {
	case Begin:
		r.start = now
		r.plan.Hedge.count(now)
		return r.next(now)
	case Failed:
		return r.failed(ev, now)
	case Content:
		return r.content(ev, now)
	case Ended:
		return r.ended(ev, now)
	case Suspect:
		return r.suspect(ev, now)
	case Slow:
		return r.slow(ev, now)
	case Woken:
		return r.woken(ev, now)
	case Called:
		if r.pausing != inLine {
			return Action{Type: Continue} // the wait had ended already
		}
		return r.woken(ev, now)
	case RoomFull:
		was := r.pausing
		r.pausing = notPausing
		if was == inLine { // it has not waited, so that what it has tried stays tried
			r.queueLeft = 0
			return r.next(now)
		}
		return r.giveUp(CauseQueueFull)
	case Abandoned:
		return r.abandoned(now)
	case TimedOut:
		if r.committed != nil {
			return Action{Type: Continue}
		}
		cancel := r.dropRunning(now, OutcomeDeadline)
		a := r.giveUp(CauseDeadline)
		a.Cancel = cancel
		return a
	}
	return Action{Type: Continue}
}

func (r *Request) find(id int) *Attempt {
	for _, a := range r.running {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func (r *Request) drop(a *Attempt) {
	r.running = slices.DeleteFunc(r.running, func(x *Attempt) bool { return x == a })
}

// dropRunning settles every running attempt as neutral: nobody is to blame.
func (r *Request) dropRunning(now time.Time, why Outcome) []*Attempt {
	if len(r.running) == 0 {
		return nil
	}
	cancel := r.running
	for _, a := range cancel {
		a.permit.Neutral(now)
		r.ends(a, why, resilience.Verdict{}, 0, now)
	}
	r.running = nil
	return cancel
}

// ends writes down how an attempt ended that was not the answer.
func (r *Request) ends(a *Attempt, o Outcome, v resilience.Verdict, status int, now time.Time) {
	a.ends(&r.records[a.record], o, v, status, r.stream, false, now)
}

// ends writes down how the attempt ended. Every attempt comes through here once.
func (a *Attempt) ends(rec *Record, o Outcome, v resilience.Verdict, status int, stream, answered bool, now time.Time) {
	rec.end(o, v, status, now)
	a.Target.Pulse.end(stream, !answered, o == OutcomeFailed && blames(v.Scope), a.start, now)
}

func (r *Request) failed(ev Event, now time.Time) Action {
	a := r.find(ev.Attempt)
	if a == nil || r.committed != nil {
		return Action{Type: Continue}
	}
	r.drop(a)
	a.permit.Failure(ev.Verdict, now)
	r.ends(a, OutcomeFailed, ev.Verdict, ev.Status, now)
	rec := &r.records[a.record]
	r.last = a.index
	r.state[a.index].backAt = back(ev.Verdict, now)
	r.state[a.index].silent = ev.Verdict.Kind == resilience.KindTimeout
	if r.resuming {
		r.state[a.index].tried = !ev.Again
	}

	switch ev.Verdict.Scope {
	case resilience.ScopeClient:
		if !r.final {
			keep := *rec
			r.stop, r.final = &keep, true
		}
	case resilience.ScopeRequest:
		if r.stop == nil {
			keep := *rec
			r.stop = &keep
		}
		if m := a.Target.Model; m != nil && ev.Verdict.Kind == resilience.KindContextLength {
			m.Refused(&r.ask, ev.Window, now)
		}
		r.markUnfit(a, ev.Verdict)
	}
	switch {
	case len(r.running) > 0 || r.final:
		return r.accompany(now) // the others may still answer
	case r.resuming:
		return r.resume(now)
	}
	return r.next(now)
}

// back reads when the upstream said that it will be back.
func back(v resilience.Verdict, now time.Time) time.Time {
	t := v.Until
	if v.RetryAfter > 0 {
		if u := now.Add(v.RetryAfter); u.After(t) {
			t = u
		}
	}
	return t
}

// markUnfit rules out the targets that could do no better with this request (law R6).
func (r *Request) markUnfit(a *Attempt, v resilience.Verdict) {
	for i := range r.plan.Targets {
		if !r.plan.Targets[i].better(a.Target, v, r.now) {
			r.state[i].unfit = true
		}
	}
}

// better says whether a request that other refused might be answered here. A context window is
// the model's, whoever offers it; what is refused otherwise depends on the provider too. Where even the one
// that refused might take it another time, it is not the provider's word but the account's: another
// may have what this one lacks.
func (t *Target) better(other *Target, v resilience.Verdict, now time.Time) bool {
	k, o := t.Key(), other.Key()
	switch {
	case v.RetrySame:
		return k.Connection != o.Connection || k.Provider != o.Provider
	case v.Kind != resilience.KindContextLength:
		return k.Model != o.Model || k.Provider != o.Provider
	}
	if w, o := t.window(now), other.window(now); w > 0 && o > 0 {
		return w > o
	}
	return k.Model != o.Model
}

func (r *Request) content(ev Event, now time.Time) Action {
	a := r.find(ev.Attempt)
	if a == nil || r.committed != nil {
		return Action{Type: Continue}
	}
	a.permit.FirstContent()
	took := now.Sub(a.start)
	if !r.resuming { // how soon it had something new says nothing of the model
		a.Target.recent(r.stream).Add(took)
	}
	a.Target.Pulse.content(r.stream, !r.resuming, a.start, now)
	if m := a.Target.Model; m != nil {
		m.Took(&r.ask, now)
	}
	r.drop(a)
	cancel := r.dropRunning(now, OutcomeSuperseded)
	r.lost(cancel, a)
	r.committed = a
	r.records[a.record].FirstContent = took
	return Action{Type: Commit, Attempt: a, Cancel: cancel}
}

func (r *Request) ended(ev Event, now time.Time) Action {
	a := r.committed
	if a == nil || a.ID != ev.Attempt {
		return Action{Type: Continue}
	}
	p := r.answering()
	p.End(ev.Verdict, ev.Status, now)
	if ev.Resume && blames(ev.Verdict.Scope) && !r.resuming {
		return r.beginResume(a, ev.Verdict, now)
	}
	r.over = true
	return Action{Type: Finish}
}

// abandoned ends everything, the answer that is under way included, and blames nobody (law A9).
func (r *Request) abandoned(now time.Time) Action {
	cancel := r.dropRunning(now, OutcomeCanceled)
	if a := r.committed; a != nil {
		p := r.answering()
		p.Abandon(now)
		cancel = append(cancel, a)
	}
	r.over = true
	return Action{Type: Finish, Cancel: cancel}
}

// suspect hears that an attempt waits too long (law R9): enough of them open the breaker, and
// then the next target is started beside it.
func (r *Request) suspect(ev Event, now time.Time) Action {
	if len(r.running) == 0 || r.committed != nil {
		return Action{Type: Continue}
	}
	if a := r.find(ev.Attempt); a != nil { // else another one hangs yet
		a.silent = true
		a.permit.Waited()
	}
	return r.accompany(now)
}

func (r *Request) woken(ev Event, now time.Time) Action {
	waited := now.Sub(r.pauseFrom)
	kind := r.pausing
	r.pausing = notPausing
	switch kind {
	case notPausing:
		return Action{Type: Continue}
	case resumption:
		r.patience -= waited
		return r.resume(now)
	case patient:
		r.patience -= waited
	case retrying:
		r.waitLeft -= waited
	case inRoom:
		r.waitLeft -= ev.Waited
	case inLine:
		r.queueLeft -= waited
		if !r.called() {
			r.queueLeft = 0 // crowded out
		}
	}
	for i := range r.state {
		r.state[i].tried = false
	}
	if r.picker != nil {
		r.picker.Restart()
	}
	if kind == patient && now.Before(r.Deadline()) {
		// The one that was waited for comes first, whatever the order.
		if a := r.dispatch(r.last, now, usual); a != nil {
			return Action{Type: Dispatch, Attempt: a}
		}
		r.state[r.last].backAt = time.Time{}
		r.state[r.last].tried = true
	}
	return r.next(now)
}
