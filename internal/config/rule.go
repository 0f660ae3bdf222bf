package config

import (
	"time"

	"omniroute/resilience"
)

// ErrorRule is one of the operator's rules: what an upstream's refusal looks like, and what it means. It is plain data;
// whoever compiles it reports what is wrong with it by Errorf.
type ErrorRule struct {
	// Index is its place among the rules, from 0.
	Index int
	// ID names the rule in verdicts. Empty means "error_rules[Index]".
	ID string

	// Conditions: all that are set must hold, of a list one entry. Providers and Dialects are empty for all.
	Providers, Dialects []string
	// Status are HTTP statuses as the file spells them: "429", "5xx" or "500-504".
	Status []string
	// Codes and Texts are patterns of the error's code and message; Not are texts that veto.
	Codes, Texts, Not []string
	// Header is "name" (present) or "name: value" (contained).
	Header string

	// Scope and Kind are the verdict. KindUnknown, the default, counts as server_error.
	Scope resilience.Scope
	Kind  resilience.Kind
	// Certain locks a model at once, Quarantine takes a connection out until a person acts.
	Certain, Quarantine bool
	// Cooldown replaces the base of the ladder, 0 means that it stays; Constant keeps it from doubling.
	Cooldown time.Duration
	Constant bool

	at     Position
	fields map[string]Position // by key
}

// At returns where the rule stands.
func (r *ErrorRule) At() Position { return r.at }

// Errorf makes an error about one key of the rule, or about the rule when the key is "" or not written.
func (r *ErrorRule) Errorf(key, format string, args ...any) *Error {
	at, ok := r.fields[key]
	if !ok {
		at = r.at
	}
	e := at.Errorf(format, args...)
	e.Path = pathOfRule(r.Index)
	if ok {
		e.Path = join(e.Path, key)
	}
	return e
}
