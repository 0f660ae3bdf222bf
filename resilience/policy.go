package resilience

import (
	"fmt"
	"maps"
	"time"
)

// Policy holds the numbers of the three layers. Every zero field means its default, so the
// zero Policy is the default policy; Defaults fills them in.
type Policy struct {
	Breaker  BreakerPolicy
	Cooldown CooldownPolicy
	Lockout  LockoutPolicy
	Recheck  RecheckPolicy
	Hints    HintPolicy
}

// BreakerPolicy is layer 1: one gate a provider (failure domain).
type BreakerPolicy struct {
	// FailureThreshold is how many provider-scope failures in a row open the breaker. Defaults to 5.
	FailureThreshold int
	// DegradedThreshold is the count from which the breaker reports DEGRADED.
	// Defaults to 60% of FailureThreshold, rounded up.
	DegradedThreshold int
	// ResetTimeout is how long the breaker stays OPEN before it is HALF_OPEN. Defaults to 30s.
	ResetTimeout time.Duration
	// EarlyProbes are the pauses before the single probes that pass while OPEN: the first after
	// the opening, each next after the failed one before, the last repeated. Nil means
	// 2s, 4s, 8s, 10s; an empty, non-nil slice means none.
	EarlyProbes []time.Duration
	// MaxBackoffMultiplier bounds by how much ResetTimeout may grow: it doubles from the fourth
	// failed round on. Defaults to 1, which is off.
	MaxBackoffMultiplier float64
	// HalfOpenRequests is how many probes may run at once in HALF_OPEN. Defaults to 1.
	HalfOpenRequests int
	// SuccessThreshold is how many successful probes close the breaker. Defaults to 1.
	SuccessThreshold int
	// ProbeLease is how long a probe may hold its slot, in every layer. Defaults to 75s, the
	// default first-token timeout and 15s.
	ProbeLease time.Duration
	// CooldownByKind lengthens the OPEN time by the last failure's kind: the longer of it and
	// ResetTimeout holds. Rate limits never count here. A zero duration means none.
	CooldownByKind map[Kind]time.Duration
}

// CooldownPolicy is layer 2: one gate a connection.
type CooldownPolicy struct {
	// Base, Max and MaxLevel are the backoff ladder: Base x 2^level, at most Max. Default to 1s,
	// 120s and 15.
	Base, Max time.Duration
	MaxLevel  int
	// MaxTransient bounds the ladder of transient kinds. Defaults to 30s.
	MaxTransient time.Duration
	// TransientAfter is which transient failure in a row of one model cools it here. Defaults
	// to 2; 1 means at once.
	TransientAfter int
	// ForgetAfter is how long after its expiry an exclusion's level is forgotten, if nothing
	// failed meanwhile. Defaults to 5m.
	ForgetAfter time.Duration
	// Jitter lengthens a cooldown by up to this share of it (0 to 1). Defaults to 0.
	Jitter float64
	// CooldownByKind replaces Base for a kind, and Max where it is above it. Nil means
	// quota_exhausted 5m and auth 2m. A zero duration means none.
	CooldownByKind map[Kind]time.Duration
}

// LockoutPolicy is layer 3: one gate a model on a connection.
type LockoutPolicy struct {
	// MaxAttempts model-scope failures in a row inside AttemptWindow lock the model.
	// Default to 3 and 60s.
	MaxAttempts   int
	AttemptWindow time.Duration
	// LockoutDuration is the first lock, doubled with each relock up to MaxLockout.
	// Default to 2m and 30m.
	LockoutDuration, MaxLockout time.Duration
	// CooldownByKind replaces LockoutDuration for a kind, and MaxLockout where it is above it.
	// Transient kinds are flat and, where they have no entry, last as long as server_error's.
	// Nil means server_error and model_overloaded 15s, model_not_found 10m.
	CooldownByKind map[Kind]time.Duration
}

// RecheckPolicy bounds the trust in long exclusions, quarantine included.
type RecheckPolicy struct {
	// After is the length from which an exclusion is rechecked, and how often one live request
	// is let through. Defaults to 15m; negative turns rechecks off.
	After time.Duration
	// Alone replaces After for a request that has no other target. Defaults to 60s.
	Alone time.Duration
}

// HintPolicy caps the waits that upstreams state.
type HintPolicy struct {
	// Max caps structured hints of transient kinds and rate limits. Defaults to 10m.
	Max time.Duration
	// MaxQuota caps hints of quota, billing and the other lasting kinds. Defaults to 744h (31 days).
	MaxQuota time.Duration
	// MaxProse further caps hints read from human language. Defaults to 1h.
	MaxProse time.Duration
}

// of returns the cap of a kind's hints: nothing that passes by itself is believed to last for days.
func (p HintPolicy) of(k Kind) time.Duration {
	if k.gravity() >= KindAuth.gravity() {
		return p.MaxQuota
	}
	return p.Max
}

// Defaults returns p with every zero field replaced by its default.
func (p Policy) Defaults() Policy {
	b := &p.Breaker
	def(&b.FailureThreshold, 5)
	def(&b.DegradedThreshold, (b.FailureThreshold*6+9)/10)
	def(&b.ResetTimeout, 30*time.Second)
	if b.EarlyProbes == nil {
		b.EarlyProbes = []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second, 10 * time.Second}
	}
	def(&b.MaxBackoffMultiplier, 1)
	def(&b.HalfOpenRequests, 1)
	def(&b.SuccessThreshold, 1)
	def(&b.ProbeLease, 75*time.Second)

	c := &p.Cooldown
	def(&c.Base, time.Second)
	def(&c.Max, 120*time.Second)
	def(&c.MaxLevel, 15)
	def(&c.MaxTransient, 30*time.Second)
	def(&c.TransientAfter, 2)
	def(&c.ForgetAfter, 5*time.Minute)
	if c.CooldownByKind == nil {
		c.CooldownByKind = map[Kind]time.Duration{KindQuotaExhausted: 5 * time.Minute, KindAuth: 2 * time.Minute}
	}

	l := &p.Lockout
	def(&l.MaxAttempts, 3)
	def(&l.AttemptWindow, 60*time.Second)
	def(&l.LockoutDuration, 2*time.Minute)
	def(&l.MaxLockout, 30*time.Minute)
	if l.CooldownByKind == nil {
		l.CooldownByKind = map[Kind]time.Duration{
			KindServerError: 15 * time.Second, KindModelOverloaded: 15 * time.Second, KindModelNotFound: 10 * time.Minute,
		}
	}

	def(&p.Recheck.After, 15*time.Minute)
	def(&p.Recheck.Alone, 60*time.Second)
	def(&p.Hints.Max, 10*time.Minute)
	def(&p.Hints.MaxQuota, 744*time.Hour)
	def(&p.Hints.MaxProse, time.Hour)

	b.CooldownByKind = maps.Clone(b.CooldownByKind)
	c.CooldownByKind = maps.Clone(c.CooldownByKind)
	l.CooldownByKind = maps.Clone(l.CooldownByKind)
	return p
}

func def[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// maxDuration bounds every configured time: a year is a typing error.
const maxDuration = 366 * 24 * time.Hour

// Validate reports the first value that cannot be meant, in a sentence that names it.
// Zero values are defaults and always valid.
func (p Policy) Validate() error {
	b, c, l := p.Breaker, p.Cooldown, p.Lockout
	d := p.Defaults()
	for _, err := range []error{
		notNegative("breaker failure threshold", b.FailureThreshold),
		notNegative("breaker degraded threshold", b.DegradedThreshold),
		notNegative("breaker half-open requests", b.HalfOpenRequests),
		notNegative("breaker success threshold", b.SuccessThreshold),
		within("breaker reset timeout", b.ResetTimeout),
		within("breaker probe lease", b.ProbeLease),
		within("cooldown base", c.Base),
		within("cooldown max", c.Max),
		within("cooldown max transient", c.MaxTransient),
		within("cooldown forget-after", c.ForgetAfter),
		notNegative("cooldown max level", c.MaxLevel),
		notNegative("cooldown transient-after", c.TransientAfter),
		notNegative("lockout max attempts", l.MaxAttempts),
		within("lockout attempt window", l.AttemptWindow),
		within("lockout duration", l.LockoutDuration),
		within("lockout max", l.MaxLockout),
		within("recheck alone", p.Recheck.Alone),
		within("hints max", p.Hints.Max),
		within("hints max quota", p.Hints.MaxQuota),
		within("hints max prose", p.Hints.MaxProse),
		byKind("breaker", b.CooldownByKind),
		byKind("cooldown", c.CooldownByKind),
		byKind("lockout", l.CooldownByKind),
	} {
		if err != nil {
			return err
		}
	}
	for _, e := range b.EarlyProbes {
		if e <= 0 {
			return fmt.Errorf("breaker early probe %v: it must be positive", e)
		}
	}
	switch {
	case d.Breaker.DegradedThreshold > d.Breaker.FailureThreshold:
		return fmt.Errorf("breaker degraded threshold %d: it must not be above the failure threshold %d", b.DegradedThreshold, d.Breaker.FailureThreshold)
	case b.MaxBackoffMultiplier != 0 && !(b.MaxBackoffMultiplier >= 1 && b.MaxBackoffMultiplier <= 1000):
		return fmt.Errorf("breaker max backoff multiplier %v: it must be from 1 (off) to 1000", b.MaxBackoffMultiplier)
	case d.Cooldown.Base > d.Cooldown.Max:
		return fmt.Errorf("cooldown base %v: it must not be above the max %v", d.Cooldown.Base, d.Cooldown.Max)
	case !(c.Jitter >= 0 && c.Jitter <= 1):
		return fmt.Errorf("cooldown jitter %v: it must be from 0 to 1", c.Jitter)
	case d.Lockout.LockoutDuration > d.Lockout.MaxLockout:
		return fmt.Errorf("lockout duration %v: it must not be above the max %v", d.Lockout.LockoutDuration, d.Lockout.MaxLockout)
	}
	return neverTrips(p)
}

// neverTrips finds a cooldown for a kind that cannot trip that layer (law V3), which would have
// no effect.
func neverTrips(p Policy) error {
	for _, k := range Kinds() {
		switch {
		case k.ofRequest():
			if p.Breaker.CooldownByKind[k]+p.Cooldown.CooldownByKind[k]+p.Lockout.CooldownByKind[k] > 0 {
				return fmt.Errorf("cooldown for %v: that kind tells of the request and excludes nobody; remove it", k)
			}
		case p.Breaker.CooldownByKind[k] == 0 || k.Transient() || k == KindUnknown || k == KindPermission:
		case k == KindModelNotFound:
			return fmt.Errorf("breaker cooldown for %v: that kind never opens a breaker; set it under the lockout instead", k)
		default:
			return fmt.Errorf("breaker cooldown for %v: that kind never opens a breaker; set it under the cooldown instead", k)
		}
	}
	return nil
}

func notNegative(what string, v int) error {
	if v < 0 {
		return fmt.Errorf("%s %d: it must not be below 0", what, v)
	}
	return nil
}

func within(what string, d time.Duration) error {
	if d < 0 || d > maxDuration {
		return fmt.Errorf("%s %v: it must be between 0 and %v", what, d, maxDuration)
	}
	return nil
}

func byKind(what string, m map[Kind]time.Duration) error {
	for k, d := range m {
		if err := within(fmt.Sprintf("%s cooldown for %v", what, k), d); err != nil {
			return err
		}
	}
	return nil
}
