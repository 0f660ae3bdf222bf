package resilience

import "time"

// ladder is the cooldown of a failure at the gate's level, jitter and hint included.
func (g gate) ladder(r report, p *Policy) time.Duration {
	c := p.Cooldown
	ceiling := c.Max
	if r.kind.Transient() || r.kind == KindUnknown {
		ceiling = min(ceiling, c.MaxTransient)
	}
	base := c.Base
	switch {
	case r.base > 0:
		base = r.base
	case c.CooldownByKind[r.kind] > 0:
		base = c.CooldownByKind[r.kind]
	}
	if base != c.Base {
		ceiling = max(ceiling, base)
	}
	level := g.level
	if r.constant {
		level = 0
	}
	d := Backoff{Base: base, Max: ceiling, MaxLevel: c.MaxLevel}.at(level)
	d += time.Duration(float64(d) * c.Jitter * r.random)
	return max(d, r.hint)
}

// raised is the gate one level up.
func (g gate) raised(p *Policy) gate {
	g.level = min(g.level+1, p.Cooldown.MaxLevel)
	return g
}

// cooldownFail is one connection-scope failure: it excludes at once.
func (g gate) cooldownFail(r report, p *Policy, now instant) gate {
	g = g.aged(p, now, r.seq)
	if g.late(r, now) {
		return g.worsen(r, now)
	}
	d := g.ladder(r, p)
	failures := g.failures + 1
	g = g.exclude(r, d, now).raised(p)
	g.failures = failures
	return g
}

// transientFail is one transient provider-scope failure of one model on one connection: the
// transient_after-th in a row excludes, and so does an upstream's own word.
func (g gate) transientFail(r report, p *Policy, now instant) gate {
	g = g.aged(p, now, r.seq)
	if g.late(r, now) {
		return g.worsen(r, now)
	}
	g.failures++
	g.broken += one(r.after)
	g.kind, g.rule = r.kind, r.rule
	g.lastFailure, g.touched = now, r.seq
	switch {
	case g.failures >= p.Cooldown.TransientAfter || g.excluded:
		return g.exclude(r, g.ladder(r, p), now).raised(p)
	case r.hint > 0:
		return g.exclude(r, r.hint, now)
	}
	return g
}

// success is the first content of an attempt: transient trouble is over, lasting trouble only for
// an attempt that began after it was set, which every probe did.
func (g gate) success(begun, seq uint64) gate {
	switch {
	case !g.excluded:
		return g.cleared(seq).withEnd(g.endedAt).unrefuted(g)
	case g.transient(), begun >= g.setAt:
		return g.cleared(seq).unrefuted(g)
	}
	return g
}
