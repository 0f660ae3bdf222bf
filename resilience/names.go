package resilience

import "fmt"

// RecordFailure reports a failure for which there was no permit. It counts as begun now: while
// an exclusion lasts it can only extend it, and once the exclusion is due it decides like a
// probe. The key's width bounds the scope: a verdict of model scope on a key without a model is
// the connection's, one of connection scope on a key without a connection the provider's.
func (e *Engine) RecordFailure(key Key, v Verdict) {
	if v.Scope == ScopeNone {
		e.RecordSuccess(key)
		return
	}
	p := e.unpermitted(key)
	e.fail(p, v, false)
}

// RecordSuccess reports a success for which there was no permit. It counts as begun now, so that
// it clears at once.
func (e *Engine) RecordSuccess(key Key) {
	p := e.unpermitted(key)
	e.mu.Lock()
	defer e.unlock()
	e.succeedLocked(p)
}

// unpermitted makes the permit of an attempt that had none: where an exclusion is due, it holds
// the probe's slot.
func (e *Engine) unpermitted(key Key) Permit {
	clock := e.opts.Now()
	e.mu.Lock()
	defer e.unlock()
	t := e.resolve(e.handle(key))
	now := clock.Sub(e.start)
	e.forgetStale(t, now)
	e.lastID++
	p := Permit{t: t, begun: e.date, lease: e.lastID}
	policy := t.dom.policy
	due := answer{verdict: probe}
	if a := t.dom.breaker.breakerAsk(key.Model, policy, false, now); a.verdict == probe {
		e.setBreaker(t.dom, t.dom.breaker.admit(a, p.lease, policy, now), "report")
	}
	if g := t.conn.cool; g.excluded && !g.live(now) {
		e.setConn(t.conn, g.admit(due, p.lease, policy, now), "report")
	}
	if g := t.cool; g.excluded && !g.live(now) {
		e.setCool(t, g.admit(due, p.lease, policy, now), "report")
	}
	if g := t.lock; g.excluded && !g.live(now) {
		e.setLock(t, g.admit(due, p.lease, policy, now), "report")
	}
	return p
}

func bounded(s Scope, key Key) Scope {
	if s == ScopeModel && key.Model == "" {
		s = ScopeConnection
	}
	if s == ScopeConnection && key.Connection == "" {
		s = ScopeProvider
	}
	return s
}

// MarkAccountUnavailable reports a failure of that kind on a connection or, with a model in the
// key, on one model of it, ladder included.
func (e *Engine) MarkAccountUnavailable(key Key, kind Kind) {
	v := Verdict{Scope: ScopeConnection, Kind: kind, Rule: "marked"}
	if key.Model != "" {
		v.Scope = ScopeModel
	}
	e.RecordFailure(key, v)
}

// MarkAccountAvailable ends every exclusion of the key's connection, or of one model of it.
func (e *Engine) MarkAccountAvailable(key Key) { e.Reset(key, false) }

// ForceUnlock ends every exclusion that the key names or that is nested below it, and returns
// how many there were.
func (e *Engine) ForceUnlock(key Key) ResetCount { return e.Reset(key, false) }

// IsReady reports whether a request for the key would be admitted now. It changes nothing.
func (e *Engine) IsReady(key Key) bool {
	clock := e.opts.Now()
	e.mu.Lock()
	_, verdict, _ := e.glimpse(key).decide(false, clock)
	e.mu.Unlock()
	return verdict != refused
}

// SelectConnection returns the target for a model on the provider's next ready connection, round
// robin in the order of the configuration. When none is ready, the error is the *ExcludedError of
// the one that will be back first.
func (e *Engine) SelectConnection(provider, model string) (*Target, error) {
	e.mu.Lock()
	ids := e.connectionIDs(provider)
	k := Key{Provider: provider, Model: model}
	first := e.rotation[k]
	e.rotation[k]++
	e.mu.Unlock()
	var soonest *ExcludedError
	for i := range ids {
		t := e.Target(Key{provider, ids[(first+i)%len(ids)], model})
		x, out := t.Check()
		if !out {
			return t, nil
		}
		if soonest == nil || x.RetryAfter > 0 && (soonest.RetryAfter == 0 || x.RetryAfter < soonest.RetryAfter) {
			soonest = &ExcludedError{Key: t.key, Exclusion: x}
		}
	}
	if soonest == nil {
		return nil, fmt.Errorf("provider %q has no connection", provider)
	}
	return nil, soonest
}

// ResolveComboTargets returns the targets of a configured combo that would be admitted now, in
// its order, or nil for an unknown name. It changes nothing.
func (e *Engine) ResolveComboTargets(name string) []*Target {
	e.mu.Lock()
	keys := e.config.Combos[name]
	e.mu.Unlock()
	var out []*Target
	for _, k := range keys {
		t := e.Target(k)
		if _, excluded := t.Check(); !excluded {
			out = append(out, t)
		}
	}
	return out
}

// AllCircuitBreakerStatuses returns every breaker by its name: "provider", or
// "provider/connection" for a connection that is a failure domain of its own.
func (e *Engine) AllCircuitBreakerStatuses() map[string]BreakerStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	clock := e.opts.Now()
	v := view{e, clock, clock.Sub(e.start)}
	out := map[string]BreakerStatus{}
	for k, d := range e.domains {
		out[k.String()] = v.breaker(d)
	}
	return out
}

// AllModelLockouts returns every model that is out on a connection now.
func (e *Engine) AllModelLockouts() []LockoutStatus { return e.Status().Lockouts }
