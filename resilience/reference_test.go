package resilience

import (
	"slices"
	"time"
)

// The reference is the engine as DESIGN.md tells it, written for slow reading: one struct for
// every gate, a number for every step, no words, no dates, no copies. It knows nothing of the
// engine's own code but its exported types.

const refNever = time.Duration(1<<63 - 1)

type refProbe struct {
	attempt int
	until   time.Duration
	early   bool
}

type refRun struct {
	key   Key
	kind  Kind
	fails int
	waits int
}

type refGate struct {
	out, forever bool
	kind         Kind
	since, until time.Duration
	lastFail     time.Duration
	lastRecheck  time.Duration
	level, fails int
	setAt, endAt int // steps
	probes       []refProbe

	// breaker
	rounds, early, good, waits int
	pausedTo                   time.Duration // an overtaken probe keeps the next one away
	earlyAt                    time.Duration
	suspected                  bool
	run                        []refRun
	runAt                      int
	own                        map[string]time.Duration // models with a run of their own

	// lockout
	locked bool
	lock   time.Duration
	window []time.Duration
}

func (g *refGate) clear(step int) {
	ended := g.endAt
	if g.out {
		ended = step
	}
	*g = refGate{endAt: ended, own: g.own}
}

func (g *refGate) live(now time.Duration) bool { return g.out && now < g.until }

// passing trouble ends by itself.
func (g *refGate) passing() bool { return g.kind.Transient() && !g.forever }

func (g *refGate) inFlight(now time.Duration) (n int, first time.Duration) {
	first = refNever
	for _, p := range g.probes {
		if now < p.until {
			n++
			first = min(first, p.until)
		}
	}
	return n, first
}

func (g *refGate) holder(attempt int, now time.Duration) *refProbe {
	for i := range g.probes {
		if g.probes[i].attempt == attempt && now < g.probes[i].until {
			return &g.probes[i]
		}
	}
	return nil
}

type refAttempt struct {
	key              Key
	began            int
	at               time.Duration
	id               int
	recheck, probing bool
	settled, content bool
	waited           bool
}

type reference struct {
	p        Policy
	now      time.Duration
	step     int
	ids      int
	breakers map[string]*refGate
	conns    map[Key]*refGate
	models   map[Key]*refGate // transient cooldown of one model on a connection (V4)
	locks    map[Key]*refGate
	operator map[Key]time.Duration
}

func newReference(p Policy) *reference {
	return &reference{p: p.Defaults(), breakers: map[string]*refGate{}, conns: map[Key]*refGate{},
		models: map[Key]*refGate{}, locks: map[Key]*refGate{}, operator: map[Key]time.Duration{}}
}

func get[K comparable](m map[K]*refGate, k K) *refGate {
	if m[k] == nil {
		m[k] = &refGate{own: map[string]time.Duration{}}
	}
	return m[k]
}

func (m *reference) gates(k Key) (breaker, conn, cool, lock *refGate) {
	return get(m.breakers, k.Provider), get(m.conns, Key{k.Provider, k.Connection, ""}), get(m.models, k), get(m.locks, k)
}

// forgotten is A8's forget_after.
func (m *reference) forgotten(g *refGate) bool {
	if n, _ := g.inFlight(m.now); n > 0 || g.forever || g.live(m.now) {
		return false
	}
	end := g.lastFail
	if g.out {
		end = max(end, g.until)
	}
	return (g.out || g.fails > 0) && m.now-end >= m.p.Cooldown.ForgetAfter
}

func (m *reference) forget(g *refGate) {
	if m.forgotten(g) {
		g.clear(m.step)
	}
}

// sole is the only model with evidence in a run.
func (g *refGate) sole() (string, bool) {
	failed, waited := map[string]bool{}, map[string]bool{}
	for _, e := range g.run {
		waited[e.key.Model] = true
		if e.fails > 0 {
			failed[e.key.Model] = true
		}
	}
	if len(failed) == 0 { // mere waiting is evidence only where there is no other
		failed = waited
	}
	for model := range failed {
		return model, len(failed) == 1
	}
	return "", false
}

type refAnswer struct {
	no, probe, early, recheck, held bool
	until, next                     time.Duration
}

func (m *reference) recheckDue(g *refGate, alone bool) bool {
	after := m.p.Recheck.After
	if !g.forever && g.until-g.since <= after {
		return false
	}
	if alone {
		after = m.p.Recheck.Alone
	}
	n, _ := g.inFlight(m.now)
	return n == 0 && m.now >= max(g.since, g.lastRecheck)+after
}

func (m *reference) askBreaker(g *refGate, model string, alone bool) refAnswer {
	if !g.out {
		return refAnswer{}
	}
	n, first := g.inFlight(m.now)
	sole, one := g.sole()
	neighbour := one && sole != model
	if m.now >= g.until { // HALF_OPEN
		if n >= m.p.Breaker.HalfOpenRequests {
			return refAnswer{no: true, held: true, until: first, next: first}
		}
		if m.now < g.pausedTo && !neighbour {
			return refAnswer{no: true, until: g.pausedTo, next: g.pausedTo}
		}
		return refAnswer{probe: true}
	}
	if n > 0 {
		return refAnswer{no: true, held: true, until: g.until, next: min(first, g.until)}
	}
	if m.now >= max(g.earlyAt, g.pausedTo) || neighbour {
		return refAnswer{probe: true, early: true}
	}
	if m.recheckDue(g, alone) {
		return refAnswer{recheck: true}
	}
	return refAnswer{no: true, until: g.until, next: max(min(g.until, g.earlyAt), g.pausedTo)}
}

func (m *reference) ask(g *refGate, alone bool) refAnswer {
	switch {
	case !g.out, m.forgotten(g):
		return refAnswer{}
	case g.live(m.now) && m.recheckDue(g, alone):
		return refAnswer{recheck: true}
	case g.live(m.now):
		return refAnswer{no: true, until: g.until, next: g.until}
	}
	if n, first := g.inFlight(m.now); n > 0 {
		return refAnswer{no: true, held: true, until: first, next: first}
	}
	return refAnswer{probe: true}
}

// refView is how a target looks to one who asks.
type refView struct {
	Out, Probe, Recheck, Held bool
	Layer                     Layer
	Kind                      Kind
	Left, RetryAfter          time.Duration // Left -1: no end is known
}

func (m *reference) look(k Key, alone bool) (refView, [4]refAnswer) {
	longest := time.Duration(-1)
	for x, until := range m.operator {
		if x.Contains(k) && m.now < until {
			longest = max(longest, until)
		}
	}
	if longest >= 0 {
		v := refView{Out: true, Layer: LayerOperator, Left: -1}
		if longest != refNever {
			v.Left, v.RetryAfter = longest-m.now, longest-m.now
		}
		return v, [4]refAnswer{}
	}
	b, c, t, l := m.gates(k)
	gates := [4]*refGate{b, c, t, l}
	as := [4]refAnswer{m.askBreaker(b, k.Model, alone), m.ask(c, alone), m.ask(t, alone), m.ask(l, alone)}
	for i := 1; i <= 2; i++ { // V5
		if b.out && as[i].no && gates[i].passing() {
			as[i] = refAnswer{}
		}
	}
	var v refView
	worst, next, held := -1, time.Duration(0), true
	for i, a := range as {
		v.Probe = v.Probe || a.probe
		v.Recheck = v.Recheck || a.recheck
		if !a.no {
			continue
		}
		v.Out = true
		next = max(next, a.next)
		held = held && a.held
		if worst < 0 || a.until > as[worst].until {
			worst = i
		}
	}
	if !v.Out {
		v.Probe = v.Probe && !v.Recheck
		return v, as
	}
	v = refView{Out: true, Held: held, Layer: []Layer{LayerBreaker, LayerConnection, LayerConnection, LayerModel}[worst],
		Kind: gates[worst].kind, Left: as[worst].until - m.now}
	if as[worst].until == refNever {
		v.Left = -1
	}
	if next != refNever {
		v.RetryAfter = next - m.now
	}
	if held {
		v.RetryAfter = min(v.RetryAfter, time.Second)
	}
	return v, as
}

func (m *reference) take(k Key, alone bool) (refView, *refAttempt) {
	v, as := m.look(k, alone)
	if v.Out {
		return v, nil
	}
	b, c, t, l := m.gates(k)
	m.step++
	m.ids++
	for _, g := range []*refGate{c, t, l} {
		m.forget(g)
	}
	a := &refAttempt{key: k, began: m.step, at: m.now, id: m.ids, recheck: v.Recheck, probing: v.Probe}
	for i, g := range []*refGate{b, c, t, l} {
		if as[i].probe || as[i].recheck {
			g.probes = append(g.probes, refProbe{a.id, m.now + m.p.Breaker.ProbeLease, as[i].early})
		}
		if as[i].recheck {
			g.lastRecheck = m.now
		}
	}
	return v, a
}

// neutral is an end without a verdict.
func (m *reference) neutral(a *refAttempt) {
	b, _, _, _ := m.gates(a.key)
	for _, p := range b.probes {
		if p.attempt == a.id && a.waited {
			b.pausedTo = max(b.pausedTo, a.at+4*time.Second)
		}
	}
	m.release(a)
}

func (m *reference) release(a *refAttempt) {
	for _, g := range m.all(a.key) {
		g.probes = slices.DeleteFunc(g.probes, func(p refProbe) bool { return p.attempt == a.id })
	}
}

func (m *reference) all(k Key) []*refGate {
	b, c, t, l := m.gates(k)
	return []*refGate{b, c, t, l}
}

// good is the first content of an attempt.
func (m *reference) good(a *refAttempt) {
	m.step++
	b, c, t, l := m.gates(a.key)
	delete(b.own, a.key.Model)
	var moved []refRun
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
			b.clear(m.step)
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
			b.clear(m.step)
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
			g.clear(m.step)
		}
	}
	m.release(a)
	for _, e := range moved {
		b.own[e.key.Model] = m.now
		m.lockMoved(e.key, e.kind, max(e.fails, e.waits))
	}
}

// refReport is a failure with its hint capped.
type refReport struct {
	Verdict
	hint time.Duration
	a    *refAttempt
}

func (m *reference) bad(a *refAttempt, v Verdict) {
	m.step++
	defer m.release(a)
	if a.recheck {
		return
	}
	if v.Kind == KindUnknown {
		v.Kind = KindServerError
	}
	if v.Kind == KindCanceled {
		return
	}
	most := m.p.Hints.MaxQuota
	if v.Kind.Transient() || v.Kind == KindRateLimit {
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
	return r.a.began < g.endAt || g.out && g.holder(r.a.id, m.now) == nil
}

func refGravity(k Kind) int {
	return map[Kind]int{KindBilling: 4, KindQuotaExhausted: 3, KindAuth: 2, KindPermission: 2, KindRateLimit: 1, KindModelNotFound: 1}[k]
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
	if others > 0 && (!c.out || c.passing() && c.until < until) {
		m.exclude(c, r, until-m.now)
		c.level = level
	}
}

func (m *reference) note(b *refGate, k Key, kind Kind, fails, waits int) {
	if len(b.run) == 0 {
		b.runAt = m.step
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
	case r.a.began < b.endAt:
		return
	case b.out && p.early && m.now < b.until:
		m.note(b, r.a.key, r.Kind, 1, 0)
		b.early++
		b.earlyAt = m.pause(b.early)
		b.fails++
		b.kind, b.lastFail = r.Kind, m.now
		if r.hint > 0 {
			b.until = max(b.until, m.now+r.hint)
			b.earlyAt = max(b.earlyAt, m.now+r.hint)
		}
	default:
		m.note(b, r.a.key, r.Kind, 1, 0)
		b.fails++
		b.kind, b.lastFail = r.Kind, m.now
		if b.out || b.fails >= m.p.Breaker.FailureThreshold {
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

// attempts is the row of failures inside attempt_window.
func (m *reference) attempts(l *refGate, n int) {
	for range n {
		l.window = slices.DeleteFunc(l.window, func(t time.Duration) bool { return m.now-t > m.p.Lockout.AttemptWindow })
		l.window = append(l.window, m.now)
		if over := len(l.window) - m.p.Lockout.MaxAttempts; over > 0 {
			l.window = l.window[over:]
		}
	}
}

func (m *reference) failLock(l *refGate, r refReport) {
	m.forget(l)
	if m.late(l, r) {
		if r.hint > 0 {
			r.hint = max(r.hint, time.Second)
		}
		m.worsen(l, r)
		l.locked = l.locked || l.out && (r.Certain || r.hint > 0)
		return
	}
	m.attempts(l, 1)
	if l.locked || r.Certain || r.hint > 0 || len(l.window) >= m.p.Lockout.MaxAttempts {
		m.lockIt(l, r)
		return
	}
	m.exclude(l, r, m.ladder(l, r))
	l.level = min(l.level+1, 15)
	l.fails = len(l.window)
}

func (m *reference) lockMoved(k Key, kind Kind, n int) {
	l := get(m.locks, k)
	m.forget(l)
	if l.out { // nothing is told that the exclusion does not know
		return
	}
	m.moved(l, refReport{Verdict: Verdict{Kind: kind}}, n)
}

func (m *reference) failMoved(l *refGate, r refReport) {
	m.forget(l)
	if m.late(l, r) {
		m.worsen(l, r)
		return
	}
	m.moved(l, r, 1)
}

func (m *reference) moved(l *refGate, r refReport, n int) {
	m.attempts(l, n)
	l.kind, l.lastFail, l.fails = r.Kind, m.now, len(l.window)
	if l.locked || len(l.window) >= m.p.Lockout.MaxAttempts {
		m.lockIt(l, r)
	}
}

func (m *reference) lockIt(l *refGate, r refReport) {
	d := max(r.hint, time.Second)
	if r.hint == 0 {
		base, most := m.p.Lockout.LockoutDuration, m.p.Lockout.MaxLockout
		own := m.p.Lockout.CooldownByKind[r.Kind]
		if r.Kind.Transient() && own == 0 {
			own = m.p.Lockout.CooldownByKind[KindServerError]
		}
		if own > 0 {
			base, most = own, max(most, own)
		}
		d = base
		if !r.Kind.Transient() {
			d = min(max(base, 2*l.lock), most)
		}
		l.lock = d
	}
	fails := max(len(l.window), l.fails, 1)
	m.exclude(l, r, d)
	l.level = min(l.level+1, 15)
	l.locked, l.fails = true, fails
}

// restart forgets what dies with the process: attempts in flight and what they hold.
func (m *reference) restart() {
	m.step = 0
	for _, g := range m.breakers {
		if !g.out && g.fails == 0 {
			*g = refGate{own: g.own}
		}
		g.setAt, g.endAt, g.runAt, g.probes, g.waits = 0, 0, 0, nil, 0
	}
	for _, gates := range []map[Key]*refGate{m.conns, m.models, m.locks} {
		for _, g := range gates {
			g.probes = nil
			if m.forgotten(g) {
				*g = refGate{own: g.own}
			}
			g.setAt, g.endAt = 0, 0
		}
	}
}

func (m *reference) reset(k Key, operator bool) {
	m.step++
	end := func(g *refGate) {
		g.clear(m.step)
		g.endAt = m.step // what began before an operator's word is of before
		clear(g.own)
	}
	for p, g := range m.breakers {
		if k.Contains(Key{Provider: p}) {
			end(g)
		}
	}
	for _, gates := range []map[Key]*refGate{m.conns, m.models, m.locks} {
		for x, g := range gates {
			if k.Contains(x) {
				end(g)
			}
		}
	}
	for x := range m.operator {
		if operator && k.Contains(x) {
			delete(m.operator, x)
		}
	}
}
