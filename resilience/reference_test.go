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
	broken       int // failures after content, which only a good end refutes
	setAt, endAt int // steps
	probes       []refProbe

	// breaker
	rounds, early, good, waits int
	pausedTo                   time.Duration // an overtaken probe keeps the next one away
	earlyAt                    time.Duration
	suspected                  bool
	run                        []refRun
	runAt                      int
	sent                       int                      // attempts since the run began
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

// begin is clear by a first content: it says nothing of answers that break off later.
func (g *refGate) begin(step int) {
	old := *g
	g.clear(step)
	if old.broken > 0 {
		g.fails, g.broken, g.level, g.kind, g.lastFail = old.broken, old.broken, old.level, old.kind, old.lastFail
	}
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
	if len(b.run) > 0 {
		b.sent++
	}
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

// refReport is a failure with its hint capped.
type refReport struct {
	Verdict
	hint time.Duration
	a    *refAttempt
}

// restart forgets what dies with the process: attempts in flight and what they hold.
func (m *reference) restart() {
	m.step = 0
	for _, g := range m.breakers {
		if !g.out && g.fails == 0 {
			*g = refGate{own: g.own}
		}
		g.setAt, g.endAt, g.runAt, g.probes, g.waits, g.sent = 0, 0, 0, nil, 0, 0
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
