package failover

import (
	"time"

	"omniroute/resilience"
)

// Event is what a driver tells a request.
type Event struct {
	Type EventType
	// Attempt is the id of the attempt that it is about.
	Attempt int
	// Verdict says how the attempt ended, for Failed and Ended.
	Verdict resilience.Verdict
	// Status is the upstream's HTTP status, for people; 0 where there was none.
	Status int
	// Waited is how much of a wait in the room counts, for Woken.
	Waited time.Duration
}

// EventType says what happened.
type EventType uint8

// The events of a request.
const (
	Begin     EventType = iota // the request has come
	Failed                     // an attempt failed before its first content
	Content                    // an attempt's first content has come: it is the answer
	Ended                      // the answering attempt is over; a Verdict of ScopeNone is a good end
	Suspect                    // an attempt's SuspectAfter has passed, or its breaker has opened since
	Woken                      // the wait is over: time is up, or the room let the request go
	RoomFull                   // the room does not take the request in
	Abandoned                  // the client has left, or the program stops
	TimedOut                   // the deadline has passed
)

// ActionType says what a driver has to do.
type ActionType uint8

// The actions.
const (
	// Continue: nothing new; wait for the next event of what is running.
	Continue ActionType = iota
	// Dispatch: start Action.Attempt, beside one that may be running already.
	Dispatch
	// Pause: wait until Action.Until, then say Woken.
	Pause
	// Enter: wait in the plan's room for at most Action.Budget, then say Woken (or RoomFull).
	Enter
	// Commit: the attempt's answer goes to the client.
	Commit
	// GiveUp: answer with Request.Report.
	GiveUp
	// Finish: nothing is left to do.
	Finish
)

// Action is what a driver has to do after a step. Cancel names attempts to cancel first; they
// are settled already and nothing more need be told of them.
type Action struct {
	Type    ActionType
	Attempt *Attempt
	Cancel  []*Attempt
	Until   time.Time
	Budget  time.Duration
}

// Attempt is one dispatched upstream call.
type Attempt struct {
	ID     int
	Target *Target
	// Timeout is how long it may take from its dispatch to its first content (a stream) or to
	// the whole answer. SuspectAfter is when to say Suspect.
	Timeout, SuspectAfter time.Duration
	// Probe says that it decides about an exclusion.
	Probe bool

	permit resilience.Permit
	start  time.Time
	slow   bool // SuspectAfter has passed
	record int  // its place among the records
	handle *Handle
}

// Start returns when the attempt was dispatched.
func (a *Attempt) Start() time.Time { return a.start }

// Request is one request on its way over a plan. It is a state machine for one driver: its
// methods must not be called at the same time.
type Request struct {
	plan   *Plan
	order  []int
	stream bool
	start  time.Time

	tried   []bool // since the last wait
	unfit   []bool // could do no better than one that refused the request
	backAt  []time.Time
	running []*Attempt
	records []Record
	nextID  int

	dispatched int
	waitLeft   time.Duration
	patience   time.Duration
	retries    int
	last       int // index of the target that failed last, -1 before that
	pausing    pauseKind
	pauseFrom  time.Time
	firstWait  time.Time // when it first went to the room: its age there
	committed  *Attempt
	stop       *Record // the first failure that is the request's or the client's own
	over       bool
	cause      Cause
}

type pauseKind uint8

const (
	notPausing pauseKind = iota
	patient
	retrying
	inRoom
)

// NewRequest begins a request on a plan. order lists the indexes of the plan's targets in the
// order in which this request should try them; nil means the plan's own. stream says whether
// the client asked for a stream.
func NewRequest(p *Plan, order []int, stream bool) *Request {
	if order == nil {
		order = p.order()
	}
	n := len(p.Targets)
	flags := make([]bool, 2*n)
	return &Request{
		plan: p, order: order, stream: stream, tried: flags[:n:n], unfit: flags[n:],
		waitLeft: p.Limits.MaxWait, patience: p.Limits.Patience, last: -1,
	}
}

// Dispatched returns how many attempts were sent so far.
func (r *Request) Dispatched() int { return r.dispatched }

// Deadline returns when the request must be over.
func (r *Request) Deadline() time.Time { return r.start.Add(r.plan.Limits.Deadline) }

// Step takes in one event and says what to do.
func (r *Request) Step(ev Event, now time.Time) Action {
	if r.over && ev.Type != Ended {
		return Action{Type: Finish}
	}
	switch ev.Type {
	case Begin:
		r.start = now
		return r.next(now)
	case Failed:
		return r.failed(ev, now)
	case Content:
		return r.content(ev, now)
	case Ended:
		return r.ended(ev, now)
	case Suspect:
		return r.suspect(ev, now)
	case Woken:
		return r.woken(ev, now)
	case RoomFull:
		return r.giveUp(CauseQueueFull, now)
	case Abandoned:
		cancel := r.dropRunning(now, OutcomeCanceled)
		r.over = true
		return Action{Type: Finish, Cancel: cancel}
	case TimedOut:
		if r.committed != nil {
			return Action{Type: Continue}
		}
		cancel := r.dropRunning(now, OutcomeDeadline)
		a := r.giveUp(CauseDeadline, now)
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
	for i, x := range r.running {
		if x == a {
			r.running = append(r.running[:i:i], r.running[i+1:]...)
			return
		}
	}
}

// dropRunning settles every running attempt as neutral: nobody is to blame.
func (r *Request) dropRunning(now time.Time, why Outcome) []*Attempt {
	cancel := r.running
	for _, a := range cancel {
		a.permit.Neutral()
		r.records[a.record].end(why, resilience.Verdict{}, 0, now)
	}
	r.running = nil
	return cancel
}

func (r *Request) failed(ev Event, now time.Time) Action {
	a := r.find(ev.Attempt)
	if a == nil || r.committed != nil {
		return Action{Type: Continue}
	}
	r.drop(a)
	a.permit.Failure(ev.Verdict)
	rec := &r.records[a.record]
	rec.end(OutcomeFailed, ev.Verdict, ev.Status, now)
	i := r.indexOf(a)
	r.last = i
	r.backAt[i] = back(ev.Verdict, now)

	switch ev.Verdict.Scope {
	case resilience.ScopeClient:
		r.stop = rec
		cancel := r.dropRunning(now, OutcomeSuperseded)
		act := r.giveUp(CauseRequest, now)
		act.Cancel = cancel
		return act
	case resilience.ScopeRequest:
		if r.stop == nil {
			keep := *rec
			r.stop = &keep
		}
		r.markUnfit(a, ev.Verdict.Kind)
	}
	if len(r.running) > 0 {
		// The other one may still answer; a slow one gets its next companion.
		if r.running[0].slow && r.running[0].Target.Suspected() {
			if b := r.dispatchNext(now); b != nil {
				return Action{Type: Dispatch, Attempt: b}
			}
		}
		return Action{Type: Continue}
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
func (r *Request) markUnfit(a *Attempt, kind resilience.Kind) {
	for i := range r.plan.Targets {
		t := &r.plan.Targets[i]
		same := t.Key().Model == a.Target.Key().Model && (t.Entry == a.Target.Entry || t.Key().Provider == a.Target.Key().Provider)
		small := kind == resilience.KindContextLength && t.Window > 0 && a.Target.Window > 0 && t.Window <= a.Target.Window
		if same || small {
			r.unfit[i] = true
		}
	}
}

func (r *Request) content(ev Event, now time.Time) Action {
	a := r.find(ev.Attempt)
	if a == nil || r.committed != nil {
		return Action{Type: Continue}
	}
	a.permit.FirstContent()
	took := now.Sub(a.start)
	if r.stream {
		a.Target.Streamed.Add(took)
	} else {
		a.Target.Whole.Add(took)
	}
	r.drop(a)
	cancel := r.dropRunning(now, OutcomeSuperseded)
	r.committed = a
	r.records[a.record].FirstContent = took
	return Action{Type: Commit, Attempt: a, Cancel: cancel}
}

func (r *Request) ended(ev Event, now time.Time) Action {
	a := r.committed
	if a == nil || a.ID != ev.Attempt || r.over {
		return Action{Type: Finish}
	}
	r.over = true
	out := OutcomeFailed
	switch ev.Verdict.Scope {
	case resilience.ScopeNone:
		out = OutcomeAnswered
		a.permit.Success()
	case resilience.ScopeClient, resilience.ScopeLocal:
		out = OutcomeCanceled
		a.permit.Neutral()
	default:
		a.permit.Failure(ev.Verdict)
	}
	r.records[a.record].end(out, ev.Verdict, ev.Status, now)
	return Action{Type: Finish}
}

// suspect hears that an attempt waits too long (law R9): enough of them open the breaker, and
// then the next target is started beside it.
func (r *Request) suspect(ev Event, now time.Time) Action {
	a := r.find(ev.Attempt)
	if a == nil || r.committed != nil {
		return Action{Type: Continue}
	}
	a.slow = true
	a.permit.Waited()
	if len(r.running) > 1 || !a.Probe && !a.Target.Suspected() {
		return Action{Type: Continue}
	}
	if b := r.dispatchNext(now); b != nil {
		return Action{Type: Dispatch, Attempt: b}
	}
	return Action{Type: Continue}
}

func (r *Request) woken(ev Event, now time.Time) Action {
	waited := now.Sub(r.pauseFrom)
	switch r.pausing {
	case patient:
		r.patience -= waited
	case retrying:
		r.waitLeft -= waited
	case inRoom:
		r.waitLeft -= ev.Waited
	case notPausing:
		return Action{Type: Continue}
	}
	kind := r.pausing
	r.pausing = notPausing
	clear(r.tried)
	if kind == patient {
		// The one that was waited for comes first, whatever the order.
		if a := r.dispatch(r.last, now, false); a != nil {
			return Action{Type: Dispatch, Attempt: a}
		}
		r.backAt[r.last] = time.Time{}
		r.tried[r.last] = true
	}
	return r.next(now)
}

func (r *Request) indexOf(a *Attempt) int {
	for i := range r.plan.Targets {
		if &r.plan.Targets[i] == a.Target {
			return i
		}
	}
	return -1
}
