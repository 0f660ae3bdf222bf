package resilience

import (
	"slices"
	"time"
)

// lockoutState is what only layer 3 keeps. It is replaced whole, never changed in place.
type lockoutState struct {
	locked bool          // as opposed to the ladder before the lock
	lock   time.Duration // the last lock without an upstream hint; the next one doubles it
	recent []instant     // the last failures, oldest first, for attempt_window
}

func newLockout() gate { return gate{lockoutState: &lockoutState{}} }

// minStatedLock is the least that a stated reset time locks a model for.
const minStatedLock = time.Second

// lockoutFail is one model-scope failure.
func (g gate) lockoutFail(r report, p *Policy, now instant) gate {
	g = g.aged(p, now, r.seq)
	if g.late(r, now) {
		if r.hint > 0 {
			r.hint = max(r.hint, minStatedLock)
		}
		g = g.worsen(r, now)
		if g.excluded && !g.locked && (r.certain || r.hint > 0) {
			// Certainty locks whenever it was learned; the level stays.
			g = g.locking(func(s *lockoutState) { s.locked = true })
		}
		return g
	}
	relock := g.locked
	g = g.failed(now, p)
	if relock || r.certain || r.hint > 0 || len(g.recent) >= p.Lockout.MaxAttempts {
		return g.lockFor(r, p, now)
	}
	d := g.ladder(r, p)
	failures := len(g.recent)
	g = g.exclude(r, d, now).raised(p)
	g.failures = failures
	return g
}

// lockoutMoved takes over a run of n transient failures that turned out to be this model's.
// The connection's own cooldown excludes the model meanwhile, so only the lock is set here.
func (g gate) lockoutMoved(n int, r report, p *Policy, now instant) gate {
	g = g.aged(p, now, r.seq)
	if g.late(r, now) {
		return g.worsen(r, now)
	}
	relock := g.locked
	for range n {
		g = g.failed(now, p)
	}
	g.kind, g.rule, g.lastFailure, g.touched = r.kind, r.rule, now, r.seq
	g.failures = len(g.recent)
	if relock || len(g.recent) >= p.Lockout.MaxAttempts {
		return g.lockFor(r, p, now)
	}
	return g
}

// lockFor locks for the stated time, or else for the kind's own.
func (g gate) lockFor(r report, p *Policy, now instant) gate {
	d := max(r.hint, minStatedLock)
	lock := g.lock
	if r.hint <= 0 {
		lock = nextLock(g.lock, r, p)
		d = lock
	}
	failures := max(len(g.recent), g.failures, 1)
	g = g.exclude(r, d, now).raised(p).locking(func(s *lockoutState) { s.locked, s.lock = true, lock })
	g.failures = failures
	return g
}

// nextLock is the length of a lock that no upstream stated: doubled with each relock, flat for
// transient kinds.
func nextLock(last time.Duration, r report, p *Policy) time.Duration {
	l := p.Lockout
	base, ceiling := l.LockoutDuration, l.MaxLockout
	own := l.CooldownByKind[r.kind]
	flat := r.kind.Transient() || r.kind == KindUnknown
	if flat && own == 0 {
		own = l.CooldownByKind[KindServerError]
	}
	if own > 0 {
		base = own
	}
	if r.base > 0 {
		base = r.base
	}
	if flat || r.constant {
		return base
	}
	return min(max(2*last, base), max(ceiling, base))
}

// failed adds one failure and drops those that left the window.
func (g gate) failed(now instant, p *Policy) gate {
	return g.locking(func(s *lockoutState) {
		s.recent = slices.DeleteFunc(slices.Clone(s.recent), func(t instant) bool { return now-t > p.Lockout.AttemptWindow })
		s.recent = append(s.recent, now)
		if n := len(s.recent) - p.Lockout.MaxAttempts; n > 0 {
			s.recent = s.recent[n:]
		}
	})
}

// locking returns a copy to change.
func (g gate) locking(change func(*lockoutState)) gate {
	next := *g.lockoutState
	change(&next)
	g.lockoutState = &next
	return g
}
