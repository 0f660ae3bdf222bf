package resilience

import "time"

// restore takes over one stored row. What no longer exists or counts is deleted, what cannot be
// is repaired.
func (e *Engine) restore(r Record, clock time.Time) {
	x := edge{clock, clock.Sub(e.start)}
	d, unread := parseDetail(r.Detail)
	if r.Key.Provider == "" || !e.known(r.Key) && !e.alone(r.ID()) || r.Layer == LayerBreaker && e.barren(r.Key.Provider) {
		e.dirty(r.ID())
		return
	}
	if r.Layer == LayerOperator {
		e.restoreOperator(r, d, x)
		return
	}
	p := e.policyAt(r.Key)
	g, ok := gateFrom(r, d, p, x)
	ok = ok && unread == nil
	if !ok {
		e.emit(Event{Type: EventRepaired, Layer: r.Layer, Key: r.Key, Cause: "a stored exclusion without a time"})
		e.dirty(r.ID())
		return
	}
	e.place(r, g, d, p, x)
}

// gateFrom reads a stored gate. It is false for an exclusion without a time.
func gateFrom(r Record, d detail, p *Policy, x edge) (g gate, ok bool) {
	excluded := r.SinceMs != 0 || r.UntilMs != 0
	named := r.State == string(Open) || r.State == string(HalfOpen) || r.State == "cooling" || r.State == "locked" || r.State == "quarantined"
	if named && !excluded || excluded && r.UntilMs == 0 && !d.Quarantined {
		return g, false
	}
	if r.Kind >= kindCount {
		r.Kind = KindUnknown
	}
	g = gate{excluded: excluded, quarantined: d.Quarantined, kind: r.Kind, rule: d.Rule, failures: max(r.Failures, 0),
		level: min(max(r.Level, 0), p.Cooldown.MaxLevel), lastFailure: x.instant(d.FailedMs), broken: min(max(d.Broken, 0), max(r.Failures, 0)),
		base: time.Duration(d.BaseMs) * time.Millisecond}
	if excluded {
		g.since = x.instant(r.SinceMs)
		g.rechecked = max(g.since, x.instant(d.RecheckedMs))
		g.until = never
		if !d.Quarantined {
			g.until = x.deadline(r.UntilMs, longest(p, r, g.base))
		}
		if d.FailedMs == 0 {
			g.lastFailure = g.since
		}
	}
	switch r.Layer {
	case LayerBreaker:
		g.breakerState = breakerFrom(g, d, x)
	case LayerModel:
		g.lockoutState = lockoutFrom(g, r, d, x)
	}
	return g, true
}

// alone reports whether the record is that of a breaker that is used without a configuration.
func (e *Engine) alone(id RecordID) bool {
	d := e.domains[id.Key]
	return id.Layer == LayerBreaker && d != nil && d.own != nil
}

// policyAt returns the policy that holds for a key.
func (e *Engine) policyAt(key Key) *Policy {
	if d := e.domains[e.domainKey(key)]; d != nil {
		return d.policy
	}
	return e.policyOf(key.Provider)
}

func (e *Engine) restoreOperator(r Record, d detail, x edge) {
	o := operatorExclusion{set: true, since: x.instant(r.SinceMs), until: never, reason: d.Reason}
	if r.UntilMs != 0 {
		o.until = x.deadline(r.UntilMs, lengthOf(r, maxDuration))
	}
	switch {
	case x.now >= o.until:
		e.dirty(r.ID())
	case e.operator[r.Key].zero():
		e.operator[r.Key] = o
		e.operatorChanged(r.Key)
	}
}

// place puts a restored gate where it belongs.
func (e *Engine) place(r Record, g gate, d detail, p *Policy, x edge) {
	if r.Layer != LayerBreaker && g.forgotten(p, x.now) && !g.live(x.now) {
		e.dirty(r.ID())
		return
	}
	switch r.Layer {
	case LayerBreaker:
		e.placeBreaker(r, g)
	case LayerConnection:
		if r.Key.Model != "" {
			t := e.target(r.Key)
			t.cool = merged(t.cool, g)
			e.refreshTarget(t)
			return
		}
		c := e.connection(r.Key)
		c.credential = cmpOr(c.credential, d.Credential)
		if d.Credential != "" && d.Credential != c.credential && g.ofCredential() {
			e.emit(Event{Type: EventCleared, Layer: r.Layer, Key: r.Key, Kind: g.kind, Cause: "credential changed"})
			e.dirty(r.ID())
			return
		}
		c.cool = merged(c.cool, g)
		if c.lastError == nil {
			c.lastError = &LastError{Kind: g.kind, Rule: g.rule, At: Timestamp{wall(g.lastFailure, x.now, x.clock)}}
		}
		e.refreshConn(c)
	case LayerModel:
		t := e.target(r.Key)
		t.lock = merged(t.lock, g)
		e.refreshTarget(t)
	}
}

func (e *Engine) placeBreaker(r Record, g gate) {
	if r.Key != e.domainKey(r.Key) {
		e.dirty(r.ID()) // the connection shares its provider's breaker now
		return
	}
	dom := e.domain(r.Key)
	dom.breaker = merged(dom.breaker, g)
	e.refreshDomain(dom)
}

func lockoutFrom(g gate, r Record, d detail, x edge) *lockoutState {
	s := &lockoutState{locked: r.State == "locked", lock: max(time.Duration(r.LockoutMs)*time.Millisecond, 0)}
	if len(d.RecentMs) == 0 && g.failures == 1 {
		s.recent = []instant{g.lastFailure}
	}
	if len(d.RecentMs) > 0 {
		s.recent = make([]instant, 0, len(d.RecentMs))
	}
	for _, ms := range d.RecentMs {
		s.recent = append(s.recent, x.instant(ms))
	}
	return s
}

func breakerFrom(g gate, d detail, x edge) *breakerState {
	s := &breakerState{early: max(d.Early, 0), cycles: max(d.Cycles, 0), successes: max(d.Successes, 0),
		suspected: d.Suspected, earlyAt: never}
	if g.excluded && d.EarlyMs != 0 {
		s.earlyAt = x.deadline(d.EarlyMs, max(g.until-x.now, 0)) // from the deadline on it makes no difference
	}
	if d.PausedMs != 0 {
		s.pausedTo = x.deadline(d.PausedMs, overtakenPause)
	}
	for _, v := range d.Run {
		s.run = append(s.run, evidence{v.Key, v.Kind, v.Count, v.Waited})
	}
	for _, m := range d.Moved {
		s.moved = append(s.moved, movedModel{m.Model, x.instant(m.FailedMs)})
	}
	return s
}

// merged joins what this process learned while the store could not be read with what was stored
// (law A5): the later deadline, the higher level and the graver cause win.
func merged(own, stored gate) gate {
	first, second := own, stored
	if own.touched == 0 || !own.excluded || stored.excluded && stored.until > own.until {
		first, second = stored, own
		first.endedAt, first.touched = own.endedAt, own.touched
	}
	first.level = max(first.level, second.level)
	first.failures = max(first.failures, second.failures)
	if first.excluded && second.excluded && second.kind.gravity() > first.kind.gravity() && !first.quarantined {
		first.kind, first.rule = second.kind, second.rule
	}
	return first
}

// longest is the longest that the stored exclusion may last from now on: never more than its kind
// allows, nor than it was set for. A jump of the wall clock cannot make it longer. A graver cause than
// the one that set it may have been learned since, so that what milder kinds allow counts too.
func longest(p *Policy, r Record, base time.Duration) time.Duration {
	hint := max(p.Hints.Max, p.Hints.of(r.Kind))
	if d := lengthOf(r, hint); d < hint {
		return d
	}
	gravity := r.Kind.gravity()
	own := func(byKind map[Kind]time.Duration) (most time.Duration) {
		for k, d := range byKind {
			if k.gravity() <= gravity {
				most = max(most, d)
			}
		}
		return most
	}
	limit := max(hint, time.Duration(float64(max(p.Cooldown.Max, own(p.Cooldown.CooldownByKind), base))*(1+p.Cooldown.Jitter)))
	switch r.Layer {
	case LayerBreaker:
		d := max(p.Breaker.ResetTimeout, own(p.Breaker.CooldownByKind))
		limit = max(hint, time.Duration(float64(d)*p.Breaker.MaxBackoffMultiplier))
	case LayerModel:
		limit = max(limit, p.Lockout.MaxLockout, own(p.Lockout.CooldownByKind), base)
	}
	return lengthOf(r, limit)
}

// lengthOf is the stored length of the exclusion where it is known, at most limit.
func lengthOf(r Record, limit time.Duration) time.Duration {
	if n := r.UntilMs - r.SinceMs; r.SinceMs != 0 && n > 0 && n < limit.Milliseconds() {
		return time.Duration(n) * time.Millisecond
	}
	return limit
}
