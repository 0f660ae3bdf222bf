// Package classify turns what an upstream sent, or failed to send, into a verdict: whom to
// blame, for what, for how long, and where the same request may be tried again.
//
// It is the only judge. Classify is a pure function of its Input (Noting lets a program listen in):
// it keeps no state, reads no clock, and costs no more for a large body than for its first 64 KiB. Structure is read first
// (the error envelopes of every dialect, pages of proxies, events of streams), then codes, then
// words, and words only where an error envelope holds them: never in model output, never in an
// echoed prompt. Rules are data (see Rule); an operator's rules come before the built-in ones.
//
// The package never decides what to do about a verdict, never caps a hint (the engine does) and
// never keeps a secret: evidence is bounded and made of rule words, codes and numbers.
package classify

import (
	"net/http"
	"slices"
	"time"

	"omniroute/resilience"
)

// Phase says how far an attempt had come when it ended.
type Phase uint8

// The phases of an attempt.
const (
	// PhaseBody is the zero value: a complete answer that is not a stream, or an error answer.
	// With Err set: the body was being read when it failed.
	PhaseBody Phase = iota
	// PhaseDial is before there was a connection: DNS, TCP, proxy, TLS.
	PhaseDial
	// PhaseHeaders is between sending the request and the first byte of the answer.
	PhaseHeaders
	// PhaseFirstEvent is inside a 200 stream before any content. Comments, pings, message_start
	// and the like are not content.
	PhaseFirstEvent
	// PhaseMidStream is inside a 200 stream after content went to the client, so that neither
	// retry flag is ever set.
	PhaseMidStream
)

var phaseNames = [...]string{"body", "dial", "headers", "first-event", "mid-stream"}

// String returns the phase's name as evidence spells it.
func (p Phase) String() string {
	if int(p) < len(phaseNames) {
		return phaseNames[p]
	}
	return "invalid"
}

// Input is one finished attempt. Only Now is always needed; every other zero value means
// unknown or absent.
type Input struct {
	// Provider is the provider's name in the configuration; known names ("openai", "groq", …)
	// bring rules of their own. Dialect is openai, responses, anthropic or gemini; Model the
	// model that was asked for.
	Provider, Dialect, Model string
	// RateLimitScope is what a rate limit means that names neither a model nor an account:
	// ScopeModel or ScopeConnection. Zero means what is known of the provider, else connection.
	RateLimitScope resilience.Scope
	Phase          Phase
	Status         int
	Header         http.Header
	// Body is the answer as it came, compressed or not. For a stream it is what the stream said
	// until it ended or showed an error: Classify is asked about streams that are over, never
	// about one that goes on. Only the first 64 KiB are read.
	Body []byte
	// Err is the transport's error, or a *TimeoutError, *CutError or *LocalError of the caller.
	// An error status outranks it.
	Err error
	// Now is the wall clock that dates are read against.
	Now time.Time
}

// Classifier holds a checked set of rules. It is immutable and safe for concurrent use.
type Classifier struct {
	operator []*compiled
	generic  []*compiled
	// known has the rules that apply to a provider with rules of its own: those and the generic
	// ones, in order.
	known map[string][]*compiled

	note func(Input, resilience.Verdict)
}

// Noting returns a classifier by the same rules that tells note of every failure that it has judged,
// in the goroutine of its caller: for counting and for Samples. It replaces the note of before.
// note must be quick, safe for concurrent use, and not keep the input's header and body.
func (c *Classifier) Noting(note func(Input, resilience.Verdict)) *Classifier {
	noting := *c
	noting.note = note
	return &noting
}

// New returns a classifier that tries the operator's rules before the built-in ones. The error
// is a *RuleError that names the first rule which is contradictory, could never match, has no
// effect, or is hidden by an earlier one.
func New(operator ...Rule) (*Classifier, error) {
	c := &Classifier{}
	for i := range operator {
		r := operator[i]
		if r.ID == "" {
			r.ID = operatorID(i)
		}
		if err := validate(i, r, operator[:i]); err != nil {
			return nil, err
		}
		c.operator = append(c.operator, compile(r))
	}
	c.generic, c.known = builtinIndex()
	return c, nil
}

// Classify returns the verdict on one attempt. The zero verdict but for Rule is a good answer.
func (c *Classifier) Classify(in Input) resilience.Verdict {
	v := c.judge(in)
	if c.note != nil && v.Scope != resilience.ScopeNone {
		c.note(in, v)
	}
	return v
}

func (c *Classifier) judge(in Input) resilience.Verdict {
	if in.Err != nil && in.Status < 400 {
		return settle(transport(in), in)
	}
	if in.Status >= 200 && in.Status < 300 && in.Status != 204 && quickHealthy(in) {
		return resilience.Verdict{Rule: ruleHealthy}
	}
	a := read(in)
	if a.healthy {
		return resilience.Verdict{Rule: ruleHealthy}
	}
	for _, r := range c.operator {
		if m, ok := r.match(a); ok {
			return conclude(a, r, m, false)
		}
	}
	rules := c.rulesFor(in.Provider)
	r, m := first(rules, a)
	if a.saysTooMuch(r, m, rules) {
		a.set(isShape)
		a.text = ""
		r, m = first(rules, a)
	}
	return conclude(a, r, m, true)
}

// first returns the first rule that matches; the last built-in one always does.
func first(rules []*compiled, a *answer) (*compiled, matched) {
	for _, r := range rules {
		if m, ok := r.match(a); ok {
			return r, m
		}
	}
	return rules[len(rules)-1], matched{}
}

// saysTooMuch reports whether a refused request's words fit too many different causes to be the
// upstream's own: then they are a prompt that it repeats. A real complaint has one cause.
func (a *answer) saysTooMuch(r *compiled, m matched, rules []*compiled) bool {
	if m.text == nil || m.code != nil || r.harmless || !refusesRequest(a.status) || len(a.text) < 80 {
		return false
	}
	var kinds uint32
	n := 0
	for _, r := range rules {
		if r.harmless || len(r.texts) == 0 || len(r.codes) > 0 || kinds&(1<<r.Kind) != 0 {
			continue
		}
		if slices.ContainsFunc(r.texts, a.matches) {
			kinds |= 1 << r.Kind
			n++
		}
	}
	return n > 3
}

// refusesRequest reports whether the status complains about the request itself.
func refusesRequest(status int) bool {
	return status == 400 || status == 413 || status == 415 || status == 422
}

func (c *Classifier) rulesFor(provider string) []*compiled {
	if rs, ok := c.known[canonicalProvider(provider)]; ok {
		return rs
	}
	return c.generic
}
