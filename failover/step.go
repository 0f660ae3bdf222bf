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
	// Window is how long a request the upstream said that it takes, in tokens, for Failed; 0 where
	// it did not say.
	Window int64
	// Waited is how much of a wait in the room counts, for Woken.
	Waited time.Duration
	// Resume, for Ended: the answer broke off, and the driver can have another attempt finish it.
	// It has an effect once in a request.
	Resume bool
	// Again, for Failed while an answer is to be finished: the driver has another way to ask the
	// same target, so that it is not done with.
	Again bool
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
	Slow                       // an attempt's HedgeAfter has passed
	Woken                      // the wait is over: time is up, or the room let the request go
	Called                     // the line has a place for the request, or none in line any more
	RoomFull                   // the room or the line does not take the request in
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
	// Queue: wait for a place with Request.Line, which says when to say Called, or that it is to
	// be RoomFull. At Action.Until say Woken.
	Queue
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
	// the whole answer. SuspectAfter is when to say Suspect, HedgeAfter when to say Slow; 0 means
	// never.
	Timeout, SuspectAfter, HedgeAfter time.Duration
	// Probe says that it decides about an exclusion, Hedge that it was started beside a slow one.
	Probe, Hedge bool
	// Resumes says that it is to finish the answer that an earlier attempt has begun.
	Resumes bool
	// LastResort says that its target was out, and was asked because nothing else was left.
	LastResort bool

	slow   bool // HedgeAfter has passed
	silent bool // SuspectAfter has passed
	permit permit
	start  time.Time
	index  int // its target's place in the plan
	record int // its place among the records
	call   *call
}

// Place returns the place of the attempt's target in the plan.
func (a *Attempt) Place() int { return a.index }

// Start returns when the attempt was dispatched.
func (a *Attempt) Start() time.Time { return a.start }

// Reserved returns what the target's meter has set aside for the attempt, nil where nobody meters
// it. It is safe for concurrent use with the request's steps.
func (a *Attempt) Reserved() Reservation { return a.permit.reserved }
