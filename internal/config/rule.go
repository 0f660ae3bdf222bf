package config

import (
	"time"

	"omniroute/resilience"
)

// ErrorRule is one of the operator's rules: what an upstream's refusal looks like, and what it means. It is plain data;
// whoever compiles it reports what is wrong with it by At.
type ErrorRule struct {
	// At is where the rule stands.
	At Position
	// Index is its place among the rules, from 0.
	Index int
	// ID names the rule in verdicts. Empty means "error_rules[Index]".
	ID string

	// Conditions: all that are set must hold. Provider and Dialect are empty for any.
	Provider, Dialect, Model string
	// Status are the HTTP statuses, one of which must hold; empty for any.
	Status []int
	// Code is the error's code or type in the envelope; Text is contained in its message, in any case.
	Code, Text string
	// Header must be present; HeaderValue, when set, must be contained in it.
	Header, HeaderValue string

	// The verdict. HasScope and HasKind say what the rule states; what it does not state stays as it was judged.
	HasScope, HasKind bool
	Scope             resilience.Scope
	Kind              resilience.Kind
	// Cooldown replaces the base of the ladder; 0 means that the rule states none.
	Cooldown time.Duration
	// Backoff says whether the cooldown doubles. Nil means that the rule does not say, which is true.
	Backoff *bool
}
