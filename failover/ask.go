package failover

import (
	"time"

	"omniroute/resilience"
)

// Ask is what a request asks for, as far as the limits of targets depend on it. Its driver makes
// it; the zero value asks for nothing in particular.
type Ask struct {
	// Caller is whose request it is. Those who wait for a place on a connection are served
	// caller by caller.
	Caller uint64
	// Bytes is the length of the request's body. It bounds the tokens that it can come to.
	Bytes int64
	// Estimate reads what the request needs. It is called at most once, when a target's limits
	// make it matter. Nil: nothing is known.
	Estimate func() Needs
	// Look looks at the request without reading it: what it does not see is not there, what it sees may
	// be only mentioned. It is called at most once. Nil: Estimate tells.
	Look func() Needs

	needs, glance Needs
	read, glanced bool
}

// Needs are what a request needs of a model. Tokens are estimates.
type Needs struct {
	// Input is how many tokens the prompt comes to, Output how many tokens of an answer the
	// request allows, 0 where it does not say.
	Input, Output int64
	// Images, Tools and Schema: it holds images, offers tools, wants JSON of a schema.
	Images, Tools, Schema bool
}

// Needs returns what the request needs.
func (a *Ask) Needs() Needs {
	if !a.read {
		a.read = true
		if a.Estimate != nil {
			a.needs = a.Estimate()
		}
	}
	return a.needs
}

// Glance returns what the request may need at most, but for Input.
func (a *Ask) Glance() Needs {
	if a.read || a.Look == nil {
		return a.Needs()
	}
	if !a.glanced {
		a.glance, a.glanced = a.Look(), true
	}
	return a.glance
}

// Rough returns what the request needs as far as that is known without reading it.
func (a *Ask) Rough() (n Needs, exact bool) {
	if a.read || a.Estimate == nil {
		return a.Needs(), true
	}
	return Needs{Input: a.Bytes / 4}, false
}

// Model knows what a model can do. Implementations are safe for concurrent use.
type Model interface {
	// Window returns the context window in tokens, 0 where it is not known.
	Window(now time.Time) int64
	// Lacks says in a few words what the request needs and the model has not, "" where nothing
	// is known against it, and which kind of refusal the model would answer.
	Lacks(a *Ask, now time.Time) (string, resilience.Kind)
	// Refused hears that the model found the request too long, Took that it took it. said is
	// what it said its window is, 0 where it did not.
	Refused(a *Ask, said int64, now time.Time)
	Took(a *Ask, now time.Time)
}

// Meter knows what an upstream will still take from a connection and model. Implementations are
// safe for concurrent use.
type Meter interface {
	// Hold reports whether the request is better not sent now, and until when. It changes nothing.
	Hold(a *Ask, now time.Time) (Hold, bool)
	// Reason says in a few words why it would be held.
	Reason(a *Ask, now time.Time) string
	// Reserve counts a request that is sent now.
	Reserve(a *Ask, now time.Time) Reservation
}

// Hold is why a target is better not asked now.
type Hold struct {
	// Until is when it will take the request.
	Until time.Time
	// Guess says that the upstream has not said so: it was learned from refusals.
	Guess bool
}

// Reservation is what a meter has set aside for one attempt.
type Reservation interface {
	// Done ends it: the attempt is over, with that verdict; of ScopeNone where the end is good or
	// says nothing. Saying it again is harmless, and so is a report of the answer that comes later or at
	// the same time: whoever reads the answer may not know yet that the attempt is over.
	Done(v resilience.Verdict, now time.Time)
}

// permit is the right to make one attempt, with what was set aside for it: a gate's permit, a
// place on the connection, and a share of what the upstream has left. However it is settled,
// all of it is given back, once.
type permit struct {
	resilience.Permit
	places   *Places
	reserved Reservation // the attempt's from its dispatch on, so that it can be had without a lock
}

// Success settles the permit: the answer is complete.
func (p *permit) Success(now time.Time) {
	p.Permit.Success()
	p.giveBack(resilience.Verdict{}, now)
}

// Failure settles the permit with what the attempt's end says.
func (p *permit) Failure(v resilience.Verdict, now time.Time) {
	p.Permit.Failure(v)
	p.giveBack(v, now)
}

// Neutral settles the permit without a verdict.
func (p *permit) Neutral(now time.Time) {
	p.Permit.Neutral()
	p.giveBack(resilience.Verdict{}, now)
}

func (p *permit) giveBack(v resilience.Verdict, now time.Time) {
	if p.reserved != nil {
		p.reserved.Done(v, now)
	}
	if places := p.places; places != nil {
		p.places = nil
		places.free()
	}
}
