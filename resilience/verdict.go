package resilience

import (
	"fmt"
	"time"
)

// Scope says how far the evidence of one finished attempt reaches.
// The zero value is ScopeNone: the attempt was answered well.
type Scope uint8

// The scopes, narrowest first. Client and local failures punish nobody.
const (
	ScopeNone       Scope = iota // a good answer
	ScopeRequest                 // this request fails here, another one would not
	ScopeModel                   // this model on this connection
	ScopeConnection              // this account or key
	ScopeProvider                // the whole upstream service
	ScopeClient                  // the caller's own fault; it fails everywhere
	ScopeLocal                   // our own machine or network
)

var scopeNames = [...]string{"none", "request", "model", "connection", "provider", "client", "local"}

// String returns the scope's name as the config, the store and the API spell it.
func (s Scope) String() string { return nameOf(scopeNames[:], int(s)) }

// MarshalText makes the scope readable in JSON.
func (s Scope) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a scope by its name.
func (s *Scope) UnmarshalText(b []byte) error {
	v, err := ParseScope(string(b))
	*s = v
	return err
}

// ParseScope returns the scope of that name.
func ParseScope(name string) (Scope, error) {
	i, err := parseName(scopeNames[:], "scope", name)
	return Scope(i), err
}

// Kind says what went wrong. The zero value is KindUnknown.
type Kind uint8

// The kinds of failure.
const (
	KindUnknown Kind = iota
	KindRateLimit
	KindQuotaExhausted
	KindBilling
	KindAuth
	KindPermission
	KindModelNotFound
	KindModelOverloaded
	KindServerError
	KindTimeout
	KindNetwork
	KindMalformedResponse
	KindEmptyResponse
	KindContextLength
	KindContentPolicy
	KindInvalidRequest
	KindTooLarge
	KindCanceled
	kindCount
)

var kindNames = [...]string{
	"unknown", "rate_limit", "quota_exhausted", "billing", "auth", "permission", "model_not_found",
	"model_overloaded", "server_error", "timeout", "network", "malformed_response", "empty_response",
	"context_length", "content_policy", "invalid_request", "too_large", "canceled",
}

// String returns the kind's name as the config, the store and the API spell it.
func (k Kind) String() string { return nameOf(kindNames[:], int(k)) }

// MarshalText makes the kind readable in JSON.
func (k Kind) MarshalText() ([]byte, error) { return []byte(k.String()), nil }

// UnmarshalText reads a kind by its name.
func (k *Kind) UnmarshalText(b []byte) error {
	v, err := ParseKind(string(b))
	*k = v
	return err
}

// ParseKind returns the kind of that name.
func ParseKind(name string) (Kind, error) {
	i, err := parseName(kindNames[:], "kind", name)
	return Kind(i), err
}

// Kinds returns every kind, in a fixed order.
func Kinds() []Kind {
	ks := make([]Kind, kindCount)
	for i := range ks {
		ks[i] = Kind(i)
	}
	return ks
}

// Transient reports whether the kind passes by itself within seconds or minutes:
// server_error, timeout, network, malformed_response, empty_response and model_overloaded.
func (k Kind) Transient() bool {
	switch k {
	case KindServerError, KindTimeout, KindNetwork, KindMalformedResponse, KindEmptyResponse, KindModelOverloaded:
		return true
	}
	return false
}

// ofRequest reports whether the kind tells of one request, or of its client, alone.
func (k Kind) ofRequest() bool { return k >= KindContextLength && k < kindCount }

// gravity orders causes: while an exclusion lasts its recorded cause may become graver, never milder.
// A model that does not exist stands with a permission that was not given: nothing passes by itself,
// and as long a wait may be stated.
func (k Kind) gravity() int {
	switch k {
	case KindBilling:
		return 4
	case KindQuotaExhausted:
		return 3
	case KindAuth, KindPermission, KindModelNotFound:
		return 2
	case KindRateLimit:
		return 1
	}
	return 0
}

// quarantineGravity is above that of every kind.
const quarantineGravity = 5

// Verdict is what one finished attempt says about whom to blame and for how long.
// The zero value is a good answer.
type Verdict struct {
	Scope Scope
	Kind  Kind

	// RetryAfter is the upstream's own hint, not yet capped; 0 means none.
	// Until is the same as a point in time; where both are set, the later one counts.
	RetryAfter time.Duration
	Until      time.Time
	// Prose says that the hint was read from human language and is trusted less.
	Prose bool

	// Certain says that repeating cannot help: the model does not exist or is not granted.
	Certain bool
	// Quarantine says that a person must act: key revoked, account closed, credit gone.
	Quarantine bool
	// RetrySame and RetryElsewhere say whether the same request may be sent to this
	// target again after the wait, or to another one.
	RetrySame, RetryElsewhere bool
	// Dial says that no connection came about (DNS, refused, unreachable, dial timeout),
	// so that the request was provably not sent.
	Dial bool

	// Cooldown, when positive, replaces the base of the ladder; Constant keeps it from doubling.
	// Both come from operator rules.
	Cooldown time.Duration
	Constant bool

	// Rule names the rule that fired and Evidence what it read, for people.
	Rule     string
	Evidence string
}

// hint returns the wait that the verdict states, 0 when it states none or one in the past.
func (v Verdict) hint(now time.Time) time.Duration {
	h := v.RetryAfter
	if !v.Until.IsZero() {
		h = max(h, v.Until.Sub(now))
	}
	return max(h, 0)
}

// answered reports whether the failure can only have come as an answer, so that the network
// between us and the upstream was there.
func (v Verdict) answered() bool {
	switch v.Kind {
	case KindNetwork, KindTimeout, KindCanceled:
		return false
	}
	return !v.Dial && v.Scope != ScopeLocal
}

// String is a short form for logs: "connection/rate_limit after 30s (openai.rate_limit)".
func (v Verdict) String() string {
	s := v.Scope.String() + "/" + v.Kind.String()
	if v.RetryAfter > 0 {
		s += " after " + v.RetryAfter.String()
	}
	if v.Rule != "" {
		s += " (" + v.Rule + ")"
	}
	return s
}

func nameOf(names []string, i int) string {
	if i < len(names) {
		return names[i]
	}
	return "invalid"
}

func parseName(names []string, what, name string) (int, error) {
	for i, n := range names {
		if n == name {
			return i, nil
		}
	}
	return 0, fmt.Errorf("unknown %s %q (one of %v)", what, name, names)
}
