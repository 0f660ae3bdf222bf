package resilience

import (
	"slices"
	"time"
)

// good is the first content of an attempt.
func (m *reference) good(a *refAttempt) {
	m.step++
	b, c, t, l := m.gates(a.key)
	delete(b.own, a.key.Model)
	var moved []refRun
	last := b.lastFail
	contrast := len(b.run) > 0 && a.began >= b.runAt
	if !b.out {
		if contrast {
			for _, e := range b.run {
				if e.key.Model != a.key.Model && e.fails > 0 {
					moved = append(moved, e)
				}
			}
		}
		if b.fails > 0 || b.waits > 0 {
			if len(moved) > 0 {
				b.clear(m.step)
			} else {
				b.begin(m.step)
			}
		}
	} else {
		closed := b.suspected
		if sole, one := b.sole(); one && sole != a.key.Model && contrast {
			closed = true
			for _, e := range b.run {
				if e.key.Model == sole {
					moved = append(moved, e)
				}
			}
		}
		if !closed && a.began >= b.setAt {
			b.good++
			closed = b.good >= m.p.Breaker.SuccessThreshold
		}
		if closed {
			if len(moved) > 0 {
				b.clear(m.step)
			} else {
				b.begin(m.step)
			}
			for k, g := range m.conns {
				if k.Provider == a.key.Provider && g.out && g.passing() {
					g.clear(m.step)
				}
			}
			for k, g := range m.models {
				if k.Provider == a.key.Provider && !slices.ContainsFunc(moved, func(e refRun) bool { return e.key == k }) {
					g.clear(m.step)
				}
			}
		}
	}
	for _, g := range []*refGate{c, t, l} {
		if !g.out || g.passing() || a.began >= g.setAt {
			g.begin(m.step)
		}
	}
	m.release(a)
	for _, e := range moved {
		b.own[e.key.Model] = m.now
		if m.now-last <= m.p.Lockout.AttemptWindow {
			m.lockMoved(e.key, e.kind, max(e.fails, e.waits))
		}
	}
}

// over is the good end of an answer.
func (m *reference) over(a *refAttempt) {
	b, _, t, _ := m.gates(a.key)
	for _, g := range []*refGate{b, t} {
		if g.broken == 0 {
			continue
		}
		m.step++
		switch {
		case g.out:
			g.broken = 0
		case g.fails <= g.broken:
			g.clear(m.step)
		default:
			g.fails -= g.broken
			g.broken = 0
		}
	}
}

func (m *reference) bad(a *refAttempt, v Verdict) {
	m.step++
	defer m.release(a)
	if a.recheck && !a.content { // a failed recheck changes nothing; its first content has ended the exclusion
		return
	}
	if v.Kind == KindUnknown {
		v.Kind = KindServerError
	}
	if v.Kind == KindCanceled {
		return
	}
	most := m.p.Hints.MaxQuota
	if refGravity(v.Kind) < 2 { // nothing that passes by itself lasts for days
		most = m.p.Hints.Max
	}
	if v.Prose {
		most = min(most, m.p.Hints.MaxProse)
	}
	r := refReport{v, min(v.RetryAfter, most), a}
	b, c, t, l := m.gates(a.key)
	account := v.Scope == ScopeConnection || v.Scope == ScopeProvider &&
		(v.Kind == KindRateLimit || v.Kind == KindQuotaExhausted || v.Kind == KindBilling || v.Kind == KindAuth)
	if !account {
		r.Quarantine = false
	}
	switch {
	case v.Scope == ScopeModel:
		if v.Quarantine {
			r.Certain = true
		}
		m.failLock(l, r)
	case account:
		m.forget(c)
		if m.late(c, r) {
			m.worsen(c, r)
			return
		}
		c.fails++
		m.exclude(c, r, m.ladder(c, r))
		c.level = min(c.level+1, 15)
	case v.Scope == ScopeProvider && v.Kind == KindPermission:
		m.failBreaker(b, r)
	case v.Scope == ScopeProvider && v.Kind.Transient():
		own := false
		if at, ok := b.own[a.key.Model]; ok && m.now-at < m.p.Cooldown.ForgetAfter {
			own = true
			b.own[a.key.Model] = m.now
			m.failMoved(l, r)
		} else {
			m.failBreaker(b, r)
		}
		m.failModel(t, r)
		if !own && t.out {
			m.widen(a.key, t, c, r)
		}
	}
}

func (m *reference) late(g *refGate, r refReport) bool {
	return r.a.began < g.endAt && !(r.a.content && (r.a.probing || r.a.recheck)) || g.out && (g.live(m.now) || g.holder(r.a.id, m.now) == nil)
}

func refGravity(k Kind) int {
	return map[Kind]int{KindBilling: 4, KindQuotaExhausted: 3, KindAuth: 2, KindPermission: 2, KindModelNotFound: 2, KindRateLimit: 1}[k]
}

// worsen is A5 and A6.
func (m *reference) worsen(g *refGate, r refReport) {
	if !g.out {
		if r.hint > 0 || r.Quarantine {
			m.exclude(g, r, r.hint)
		}
		return
	}
	if g.forever {
		return
	}
	if refGravity(r.Kind) > refGravity(g.kind) {
		g.kind = r.Kind
	}
	if r.Quarantine {
		g.forever, g.until, g.kind, g.setAt = true, refNever, r.Kind, m.step
	}
	if r.hint > 0 {
		g.until = max(g.until, m.now+r.hint)
	}
}

func (m *reference) exclude(g *refGate, r refReport, d time.Duration) {
	g.out, g.forever, g.kind = true, r.Quarantine, r.Kind
	g.since, g.until, g.lastFail, g.lastRecheck = m.now, m.now+d, m.now, m.now
	if g.forever {
		g.until = refNever
	}
	g.setAt, g.probes = m.step, nil
}

func (m *reference) ladder(g *refGate, r refReport) time.Duration {
	base, most := m.p.Cooldown.Base, m.p.Cooldown.Max
	if r.Kind.Transient() {
		most = m.p.Cooldown.MaxTransient
	}
	if own := m.p.Cooldown.CooldownByKind[r.Kind]; own > 0 {
		base, most = own, max(most, own)
	}
	d := base
	for range g.level {
		d = min(2*d, most)
	}
	return max(min(d, most), r.hint)
}

func (m *reference) failModel(t *refGate, r refReport) {
	m.forget(t)
	if m.late(t, r) {
		m.worsen(t, r)
		return
	}
	t.fails++
	if r.a.content {
		t.broken++
	}
	t.kind, t.lastFail = r.Kind, m.now
	if t.out || t.fails >= m.p.Cooldown.TransientAfter {
		m.exclude(t, r, m.ladder(t, r))
		t.level = min(t.level+1, 15)
	} else if r.hint > 0 {
		m.exclude(t, r, r.hint)
	}
}

func (m *reference) widen(k Key, t, c *refGate, r refReport) {
	until, level, others := t.until, t.level, 0
	for x, g := range m.models {
		at, own := m.breakers[k.Provider].own[x.Model]
		own = own && m.now-at < m.p.Cooldown.ForgetAfter
		if x != k && x.Provider == k.Provider && x.Connection == k.Connection && g.out && !own && !m.forgotten(g) {
			others++
			until, level = max(until, g.until), max(level, g.level)
		}
	}
	if others == 0 {
		return
	}
	m.forget(c)
	if !c.out || c.passing() && c.until < until {
		c.level = max(c.level, level)
		m.exclude(c, r, until-m.now)
	}
}

func (m *reference) note(b *refGate, k Key, kind Kind, fails, waits int) {
	if len(b.run) == 0 {
		b.sent = 0
	}
	if len(b.run) == 0 || fails > 0 && !slices.ContainsFunc(b.run, func(e refRun) bool { return e.fails > 0 }) {
		b.runAt = m.step // a wait is no failure (law V4)
	}
	i := slices.IndexFunc(b.run, func(e refRun) bool { return e.key == k })
	if i < 0 {
		b.run = append(b.run, refRun{key: k})
		i = len(b.run) - 1
	}
	b.run[i].kind = kind
	b.run[i].fails += fails
	b.run[i].waits += waits
}

func (m *reference) pause(n int) time.Duration {
	ps := m.p.Breaker.EarlyProbes
	if len(ps) == 0 {
		return refNever
	}
	return m.now + ps[min(n, len(ps)-1)]
}

func (m *reference) failBreaker(b *refGate, r refReport) {
	p := b.holder(r.a.id, m.now)
	switch {
	case b.out && p == nil:
		m.worsen(b, r)
		if r.hint > 0 {
			b.earlyAt = max(b.earlyAt, m.now+r.hint)
		}
		return
	case r.a.began < b.endAt && !(r.a.content && (r.a.probing || r.a.recheck)):
		return
	case b.live(m.now):
		m.note(b, r.a.key, r.Kind, 1, 0)
		b.early++
		b.earlyAt = m.pause(b.early)
		b.fails++
		if b.lastFail = m.now; refGravity(r.Kind) >= refGravity(b.kind) {
			b.kind = r.Kind
		}
		if r.hint > 0 {
			b.until = max(b.until, m.now+r.hint)
			b.earlyAt = max(b.earlyAt, m.now+r.hint)
		}
	default:
		m.note(b, r.a.key, r.Kind, 1, 0)
		b.fails++
		if r.a.content && !b.out {
			b.broken++
		}
		b.kind, b.lastFail = r.Kind, m.now
		if b.out || b.fails >= m.p.Breaker.FailureThreshold && b.sent <= 3*b.fails {
			m.open(b, r)
		}
	}
}

func (m *reference) open(b *refGate, r refReport) {
	b.rounds++
	if !b.out {
		b.rounds, b.early = 1, 0
	}
	d := max(m.p.Breaker.ResetTimeout, m.p.Breaker.CooldownByKind[r.Kind])
	factor := 1.0
	for i := 4; i <= b.rounds; i++ {
		factor *= 2
	}
	factor = min(factor, m.p.Breaker.MaxBackoffMultiplier)
	m.exclude(b, r, max(time.Duration(float64(d)*factor), r.hint))
	b.good, b.waits, b.suspected = 0, 0, false
	b.earlyAt = m.pause(b.early)
	if r.hint > 0 {
		b.earlyAt = max(b.earlyAt, m.now+r.hint)
	}
}

func (m *reference) waited(a *refAttempt) {
	m.step++
	b, _, _, _ := m.gates(a.key)
	if b.out || a.began < b.endAt {
		return
	}
	b.waits++
	m.note(b, a.key, KindTimeout, 0, 1)
	if b.waits >= m.p.Breaker.FailureThreshold {
		m.open(b, refReport{Verdict: Verdict{Kind: KindTimeout}, a: a})
		b.suspected = true
	}
}
