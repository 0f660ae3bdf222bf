package resilience

import (
	"time"
)

// Key returns the target's names.
func (t *Target) Key() Key { return t.key }

// Engine returns the engine that the target belongs to.
func (t *Target) Engine() *Engine { return t.engine }

// Acquire takes a permit for one attempt, or returns an *ExcludedError. While nothing is known
// against the target it reads no clock and takes no lock.
func (t *Target) Acquire() (Permit, error) { return t.acquire(asUsual) }

// AcquireAlone is Acquire for a request that has no other target: a long exclusion is then
// rechecked more often.
func (t *Target) AcquireAlone() (Permit, error) { return t.acquire(alone) }

// admission is how a request asks for admission.
type admission uint8

const (
	asUsual      admission = iota
	alone                  // it has no other target
	byLastResort           // it has none that is not excluded, and cannot wait
)

func (t *Target) acquire(how admission) (Permit, error) {
	// The date comes before the look at the gates: an exclusion that is set in between is then
	// newer than the attempt.
	begun := t.engine.seq.Load()
	if t.unknown() {
		t.dom.count()
		return newPermit(t, begun), nil
	}
	return t.engine.admit(t, how)
}

// count notes the begin of an attempt where failures are being counted.
func (d *domain) count() {
	if d.word.Load()&bitEvidence != 0 {
		d.sent.Add(1)
	}
}

// sentInRun returns how many attempts began since the present run of failures did; the failure that begins
// one has none beside it.
func (d *domain) sentInRun() int64 {
	if len(d.breaker.run) == 0 {
		return 0
	}
	return d.sent.Load()
}

// Check returns the exclusion that Acquire would meet now, and false where it would admit. It
// changes nothing.
func (t *Target) Check() (Exclusion, bool) {
	x, a := t.check(false)
	return x, a == refused
}

// Standing is Check for one who plans: it also tells whether admission would be as a probe.
func (t *Target) Standing(alone bool) (x Exclusion, out, asProbe bool) {
	x, a := t.check(alone)
	return x, a == refused, a == probe || a == recheck
}

func (t *Target) check(alone bool) (x Exclusion, a answerKind) {
	if t.unknown() {
		return x, free
	}
	e := t.engine
	clock := e.opts.Now()
	e.mu.Lock()
	x, a, _ = e.peek(t).decide(alone, clock)
	e.mu.Unlock()
	return x, a
}

// Sound reports whether there is no doubt about the target: it would be admitted, not as a probe,
// and its breaker is not DEGRADED. It changes nothing.
func (t *Target) Sound() bool {
	if (t.word.Load()|t.conn.word.Load()|t.dom.word.Load())&(bitGated|bitEvidence|bitEvicted) == 0 {
		return true
	}
	e := t.engine
	clock := e.opts.Now()
	e.mu.Lock()
	defer e.mu.Unlock()
	p := e.peek(t)
	_, a, _ := p.decide(false, clock)
	return a == free && p.dom.breaker.breakerView(p.dom.policy, clock.Sub(e.start)) == Closed
}

// unknown reports that nothing is known against the target, without a lock.
func (t *Target) unknown() bool {
	return (t.word.Load()|t.conn.word.Load()|t.dom.word.Load())&(bitGated|bitEvicted) == 0
}

// The gates that decide asks, in the order of the way in.
const (
	atBreaker = iota
	atConnection
	atCool
	atLock
)

// decide is the one decision: traffic, checks and explanations come through here. It changes
// nothing and needs the engine's lock.
func (t *Target) decide(alone bool, clock time.Time) (Exclusion, answerKind, [4]answer) {
	var answers [4]answer
	now := clock.Sub(t.engine.start)
	if x, out := t.byOperator(clock); out {
		return x, refused, answers
	}
	kind := t.ask(alone, now, &answers)
	if kind != refused {
		return Exclusion{}, kind, answers
	}
	return t.strictest(&answers, now, clock), refused, answers
}

func (t *Target) byOperator(clock time.Time) (Exclusion, bool) {
	if len(t.engine.operator) == 0 {
		return Exclusion{}, false
	}
	return t.engine.operatorExclusion(t.key, clock)
}

// ask asks the gates, and returns what their answers come to.
func (t *Target) ask(alone bool, now instant, answers *[4]answer) answerKind {
	p := t.dom.policy
	gates := t.gates()
	if t.dom.breaker.excluded {
		answers[atBreaker] = t.dom.breaker.breakerAsk(t.key.Model, p, alone, now)
	}
	for i := atConnection; i <= atLock; i++ {
		if g := gates[i]; g.excluded {
			answers[i] = g.ask(p, alone, now)
		}
	}
	if t.dom.breaker.excluded {
		// The breaker governs: a transient cooldown does not delay its probe.
		for i := atConnection; i <= atCool; i++ {
			if answers[i].verdict == refused && gates[i].transient() {
				answers[i] = answer{}
			}
		}
	}
	if e := t.engine; e.share.active() {
		e.share.claim(t, answers, now)
	}
	kind := free
	for i := range answers {
		kind = max(kind, answers[i].verdict)
	}
	return kind
}

// gates are those that ask asks, in its order.
func (t *Target) gates() [4]*gate {
	return [4]*gate{&t.dom.breaker, &t.conn.cool, &t.cool, &t.lock}
}

// strictest makes the exclusion of those that refuse.
func (t *Target) strictest(answers *[4]answer, now instant, clock time.Time) Exclusion {
	strictest := -1
	var next instant
	held := true
	for i := range answers {
		if a := &answers[i]; a.verdict == refused {
			next = max(next, a.next)
			held = held && a.held
			if strictest < 0 || a.until > answers[strictest].until {
				strictest = i
			}
		}
	}
	g := t.gates()[strictest]
	x := Exclusion{
		Layer: [4]Layer{LayerBreaker, LayerConnection, LayerConnection, LayerModel}[strictest],
		Kind:  g.kind, Until: wall(answers[strictest].until, now, clock), Held: held, Reason: g.rule,
	}
	if next != never {
		x.RetryAfter = next - now
	}
	if held {
		x.RetryAfter = min(x.RetryAfter, heldRetry)
	}
	return x
}

// peek is resolve for those who change nothing: what has no cell gets none.
func (e *Engine) peek(t *Target) *Target {
	if t.word.Load()&bitEvicted == 0 || !e.known(t.key) {
		return t
	}
	return e.glimpse(t.key)
}

// glimpse returns the key's cell or, where there is none, a stand-in on the wider cells.
func (e *Engine) glimpse(key Key) *Target {
	if t := e.targets[key]; t != nil {
		return t
	}
	ck := Key{Provider: key.Provider, Connection: key.Connection}
	c := e.conns[ck]
	if c == nil {
		dk := e.domainKey(key)
		d := e.domains[dk]
		if d == nil {
			d = &domain{key: dk, policy: e.policyOf(key.Provider), breaker: newBreaker()}
		}
		c = &connection{key: ck, dom: d}
	}
	return &Target{key: key, engine: e, dom: c.dom, conn: c, lock: newLockout()}
}

// heldRetry is the time that we tell a client to stay away while a probe decides.
const heldRetry = time.Second

// admit is Acquire's slow path: something is known against the target.
func (e *Engine) admit(t *Target, how admission) (Permit, error) {
	clock := e.opts.Now()
	e.mu.Lock()
	defer e.unlock()
	t = e.resolve(t)
	now := clock.Sub(e.start)
	x, kind, answers := t.decide(how == alone, clock)
	overruled := kind == refused && how == byLastResort && x.Layer != LayerOperator && t.overrule(&answers, now)
	if kind == refused && !overruled {
		return Permit{}, &ExcludedError{Key: t.key, Exclusion: x}
	}
	lent := kind != free && e.share.active()
	if lent {
		if overruled && e.share.elsewhere(t, answers, now) {
			return Permit{}, &ExcludedError{Key: t.key, Exclusion: x}
		}
		if ids := e.share.unclaimed(t, answers, now); ids != nil {
			e.share.want(ids) // nobody waits for the network: until it has answered, somebody probes
			x, _, _ = t.decide(how == alone, clock)
			return Permit{}, &ExcludedError{Key: t.key, Exclusion: x}
		}
	}
	e.forgetStale(t, now)
	t.dom.count()
	permit := newPermit(t, e.date)
	if kind == free {
		return permit, nil
	}
	permit.mode = probing
	switch {
	case overruled:
		permit.mode = desperate
	case kind == recheck:
		permit.mode = rechecking
	}
	e.lastID++
	permit.lease = e.lastID
	if lent {
		permit.lease |= guarded
		e.share.guard(permit.lease, t, answers, now)
	}
	p := t.dom.policy
	if a := answers[atBreaker]; a.verdict != free {
		e.setBreaker(t.dom, t.dom.breaker.admit(a, permit.lease, p, now), "probe")
	}
	if a := answers[atConnection]; a.verdict != free {
		e.setConn(t.conn, t.conn.cool.admit(a, permit.lease, p, now), "probe")
	}
	if a := answers[atCool]; a.verdict != free {
		e.setCool(t, t.cool.admit(a, permit.lease, p, now), "probe")
	}
	if a := answers[atLock]; a.verdict != free {
		e.setLock(t, t.lock.admit(a, permit.lease, p, now), "probe")
	}
	return permit, nil
}

// forgetStale cleans gates whose trouble is so old that it no longer counts.
func (e *Engine) forgetStale(t *Target, now instant) {
	p := t.dom.policy
	if g := t.conn.cool; g.excluded && g.forgotten(p, now) {
		e.setConn(t.conn, g.cleared(e.tick()), "forgotten")
	}
	if g := t.cool; g.excluded && g.forgotten(p, now) {
		e.setCool(t, g.cleared(e.tick()), "forgotten")
	}
	if g := t.lock; g.excluded && g.forgotten(p, now) {
		e.setLock(t, g.cleared(e.tick()), "forgotten")
	}
}
