package resilience

// succeed hears the first content (or the whole answer) of a permit's attempt. While nothing is
// known against the target that is a few atomic loads.
func (t *Target) succeed(p Permit) {
	e := t.engine
	if (t.word.Load()|t.conn.word.Load()|t.dom.word.Load()) == 0 && !e.watch.Load() {
		return
	}
	e.mu.Lock()
	defer e.unlock()
	e.succeedLocked(p)
}

func (e *Engine) succeedLocked(p Permit) {
	seq := e.tick()
	t, d, begun, lease := e.resolve(p.t), e.called(p), p.begun, p.lease
	now := e.now()
	e.local.success(e, d.endpoint, seq)
	guard, counts := e.share.heed(lease, now)
	if !counts {
		e.releaseLocked(p)
		return
	}
	end := e.share.evidence(guard)
	defer end()
	cause := "success"
	if lease != 0 {
		cause = "probe_success"
	}

	failed := d.breaker.lastFailure
	moved := e.refute(t, d, begun, seq, cause)
	e.releaseLocked(p)
	// A neighbour was answered: what failed meanwhile is the failing models' own trouble.
	for _, m := range moved {
		if m.key.Model == "" || !e.known(m.key) {
			continue
		}
		e.setBreaker(d, d.breaker.withMoved(m.key.Model, d.policy, now), "contrast")
		if now-failed > d.policy.Lockout.AttemptWindow {
			continue // a run that old says whose the failures are, but locks nothing today
		}
		o := e.target(m.key)
		r := report{key: m.key, kind: m.kind, rule: "contrast", begun: seq, seq: seq}
		e.setLock(o, o.lock.lockoutMoved(max(m.count, m.waited), r, d.policy, now), "contrast")
	}
}

// refute ends what a success is evidence against, and returns the evidence that turned out to belong
// to other models.
func (e *Engine) refute(t *Target, d *domain, begun, seq uint64, cause string) (moved []evidence) {
	end := e.share.refutes()
	defer end()
	if !d.breaker.clean() {
		next, closed, others := d.breaker.breakerSuccess(t.key.Model, begun, seq, d.policy)
		e.setBreaker(d, next, cause)
		moved = others
		if closed {
			e.clearTransient(d, seq, moved)
		}
	}
	c := t.conn
	if g := c.cool; !g.clean() {
		e.setConn(c, g.success(begun, seq), cause)
	}
	if g := t.cool; !g.clean() {
		e.setCool(t, g.success(begun, seq), cause)
	}
	if g := t.lock; !g.clean() {
		e.setLock(t, g.success(begun, seq), cause)
	}
	return moved
}

// mend hears that an answer has ended well: only that refutes a run of answers that broke off.
func (t *Target) mend(p Permit) {
	if (t.word.Load()|t.dom.word.Load())&bitEvidence == 0 {
		return
	}
	e := t.engine
	e.mu.Lock()
	defer e.unlock()
	end := e.share.refutes()
	defer end()
	t = e.resolve(t)
	if d := e.called(p); d.breaker.broken > 0 {
		e.setBreaker(d, d.breaker.mended(e.tick()), "success")
	}
	if t.cool.broken > 0 {
		e.setCool(t, t.cool.mended(e.tick()), "success")
	}
}

// clearTransient ends the transient cooldowns below a breaker that a probe has closed (law V5),
// but for those of models that keep their trouble.
func (e *Engine) clearTransient(d *domain, seq uint64, but []evidence) {
	keep := map[Key]bool{}
	for _, m := range but {
		keep[m.key] = true
	}
	for _, c := range e.conns {
		if c.dom != d {
			continue
		}
		if c.cool.excluded && c.cool.transient() {
			e.setConn(c, c.cool.cleared(seq), "breaker closed")
		}
		for _, t := range c.targets {
			if !t.cool.clean() && !keep[t.key] {
				e.setCool(t, t.cool.cleared(seq), "breaker closed")
			}
		}
	}
}

// fail hears the failure of a permit's attempt and passes it to the gates that law V11 names.
func (e *Engine) fail(p Permit, v Verdict, after bool) {
	clock := e.opts.Now()
	e.mu.Lock()
	defer e.unlock()
	t, d := e.resolve(p.t), e.called(p)
	if v.Scope >= ScopeModel && v.Scope <= ScopeProvider {
		t.conn.lastError = &LastError{Kind: v.Kind, Rule: v.Rule, At: Timestamp{clock}}
	}
	now := clock.Sub(e.start)
	guard, counts := e.share.heed(p.lease, now)
	if (p.mode != rechecking || after) && counts { // a failed recheck changes nothing
		end := e.share.evidence(guard)
		defer end()
		hint, clamped := honoured(v, t.dom.policy, clock)
		v.Scope = bounded(v.Scope, t.key)
		r := report{
			key: t.key, kind: v.Kind, rule: v.Rule, hint: hint, certain: v.Certain, quarantine: v.Quarantine,
			base: v.Cooldown, constant: v.Constant, begun: p.begun, lease: p.lease, seq: e.tick(), sent: d.sentInRun(), after: after,
			random: e.random(t.dom.policy),
		}
		if p.mode == desperate && !after {
			r.lease = 0 // it decides nothing: to a gate that is shut it tells of what is known
		}
		if v.answered() {
			e.local.success(e, d.endpoint, r.seq) // whatever it said, the network is there
		}
		e.bus.clamped = clamped
		e.hear(t, d, v, r, now)
		e.bus.clamped = false
	}
	e.releaseLocked(p)
	e.share.forget(p.lease)
}

// hear applies law V11: which gate hears which verdict. d is the failure domain that the attempt went to.
func (e *Engine) hear(t *Target, d *domain, v Verdict, r report, now instant) {
	switch r.kind {
	case KindUnknown:
		r.kind = KindServerError
	case KindCanceled:
		return // whoever cancelled, it tells nothing of the upstream
	}
	c := t.conn
	account := v.Scope == ScopeConnection || v.Scope == ScopeProvider && lasting(r.kind)
	if account && r.begun < c.credentialAt {
		return // said of a credential that is no longer there
	}
	r.quarantine = r.quarantine && account // only an account needs a person
	switch scope := v.Scope; {
	case account:
		e.setConn(c, c.cool.cooldownFail(r, t.dom.policy, now), "failure")
	case scope == ScopeModel:
		r.certain = r.certain || v.Quarantine // a model is locked, and that is certain
		e.setLock(t, t.lock.lockoutFail(r, t.dom.policy, now), "failure")
	case scope == ScopeProvider && r.kind.Transient():
		e.hearTransient(t, d, v.Dial, r, now)
	case scope == ScopeProvider && r.kind == KindPermission:
		e.setBreaker(d, d.breaker.breakerFail(r, d.policy, now), "failure")
	}
}

// lasting names the kinds that, said of a provider, still only tell of the account used.
func lasting(k Kind) bool {
	switch k {
	case KindRateLimit, KindQuotaExhausted, KindBilling, KindAuth:
		return true
	}
	return false
}

// hearTransient is a transient provider-scope failure: it counts for the breaker, or for the
// model where contrast has shown that the run is the model's, and for the connection's cooldown.
func (e *Engine) hearTransient(t *Target, d *domain, dial bool, r report, now instant) {
	p := t.dom.policy
	before := [4]gate{d.breaker, t.conn.cool, t.cool, t.lock}
	if dial && e.local.hear(e, d.endpoint, r.seq, now) {
		return
	}
	own := d.breaker.owns(t.key.Model, p, now)
	if own {
		e.setBreaker(d, d.breaker.withMoved(t.key.Model, p, now), "contrast")
		e.setLock(t, t.lock.lockoutMoved(1, r, p, now), "failure")
	} else {
		e.setBreaker(d, d.breaker.breakerFail(r, p, now), "failure")
	}
	if t.key.Model == "" {
		// Who names no model tells of the connection.
		e.setConn(t.conn, t.conn.cool.transientFail(r, p, now), "failure")
	} else {
		e.setCool(t, t.cool.transientFail(r, p, now), "failure")
	}
	if !own && t.cool.excluded {
		e.widen(t, r, now)
	}
	if dial {
		e.local.note(t, d, r.seq, before)
	}
}

// widen turns the transient cooldowns of two models into the whole connection's (law V4).
func (e *Engine) widen(t *Target, r report, now instant) {
	c := t.conn
	until, level, second := t.cool.until, t.cool.level, false
	for _, o := range c.targets {
		if o != t && o.cool.excluded && !o.dom.breaker.owns(o.key.Model, o.dom.policy, now) && !o.cool.forgotten(o.dom.policy, now) {
			second = true
			until, level = max(until, o.cool.until), max(level, o.cool.level)
		}
	}
	g := c.cool.aged(t.dom.policy, now, r.seq)
	if !second || g.excluded && (!g.transient() || g.until >= until) {
		return
	}
	g.level = max(g.level, level) // its own level survives too (law A8)
	e.setConn(c, g.exclude(r, until-now, now), "second model")
}

// release ends the hold of a permit that was settled without a verdict.
// waited tells that it had waited too long for its first content.
func (e *Engine) release(p Permit, waited bool) {
	e.mu.Lock()
	defer e.unlock()
	if d := e.called(p); waited && d.breaker.knows(p.lease) {
		e.setBreaker(d, d.breaker.overtaken(p.lease, d.policy, e.now()), "overtaken")
	}
	e.releaseLocked(p)
	e.share.forget(p.lease)
}

// ended hears that a probe's answer has ended well.
func (e *Engine) ended(p Permit) {
	if p.lease&guarded == 0 {
		return
	}
	e.mu.Lock()
	defer e.unlock()
	e.share.forget(p.lease)
}

func (e *Engine) releaseLocked(p Permit) {
	lease := p.lease
	if lease == 0 {
		return
	}
	e.share.settled(lease)
	t := e.resolve(p.t)
	if d := e.called(p); d.breaker.knows(lease) {
		e.setBreaker(d, d.breaker.release(lease), "released")
	}
	if t.conn.cool.knows(lease) {
		e.setConn(t.conn, t.conn.cool.release(lease), "released")
	}
	if t.cool.knows(lease) {
		e.setCool(t, t.cool.release(lease), "released")
	}
	if t.lock.knows(lease) {
		e.setLock(t, t.lock.release(lease), "released")
	}
}

// waited hears that an attempt waits suspiciously long (law R9).
func (e *Engine) waited(p Permit) {
	clock := e.opts.Now()
	e.mu.Lock()
	defer e.unlock()
	d := e.called(p)
	r := report{key: p.t.key, kind: KindTimeout, rule: "suspicion", begun: p.begun, seq: e.tick()}
	e.setBreaker(d, d.breaker.breakerWait(r, d.policy, clock.Sub(e.start)), "suspicion")
}

// resolve returns the cell that stands for the target now. A target that no configuration names
// any more is its own cell: requests that are under way still use it, and nothing is kept of it.
func (e *Engine) resolve(t *Target) *Target {
	if t.word.Load()&bitEvicted != 0 && e.known(t.key) {
		return e.target(t.key)
	}
	return t
}

// called returns the failure domain that a permit's attempt went to. A reload may have given the connection an
// address of its own meanwhile, or taken it away: what the attempt tells of a provider, and the slot that it holds
// there, belong to the one that was called. Where nobody has that any more nobody hears of it; only a target that is
// its own cell keeps its own.
func (e *Engine) called(p Permit) *domain {
	d := p.t.dom
	switch now := e.domains[d.key]; {
	case now != nil:
		return now
	case e.known(p.t.key):
		return &domain{key: d.key, endpoint: d.endpoint, policy: d.policy, breaker: newBreaker(), gone: true}
	}
	return d
}
