package resilience

import (
	"encoding/json"
	"time"
)

// detail is what a record's columns do not say. Times are unix milliseconds.
type detail struct {
	Rule        string     `json:"rule,omitempty"`
	Quarantined bool       `json:"quarantined,omitempty"`
	FailedMs    int64      `json:"failed_ms,omitempty"`
	RecheckedMs int64      `json:"rechecked_ms,omitempty"`
	Early       int        `json:"early,omitempty"`
	EarlyMs     int64      `json:"early_ms,omitempty"`
	Cycles      int        `json:"cycles,omitempty"`
	Successes   int        `json:"successes,omitempty"`
	Suspected   bool       `json:"suspected,omitempty"`
	Run         []runEntry `json:"run,omitempty"`
	Locked      bool       `json:"locked,omitempty"`
	RecentMs    []int64    `json:"recent_ms,omitempty"`
	Reason      string     `json:"reason,omitempty"`
}

type runEntry struct {
	Key
	Kind  Kind `json:"kind"`
	Count int  `json:"count"`
}

// edge converts between the engine's instants and the wall clock of store and API.
type edge struct {
	clock time.Time
	now   instant
}

func (x edge) ms(t instant) int64 {
	if t == never {
		return 0
	}
	return x.clock.Add(t - x.now).UnixMilli()
}

// instant reads a stored time. One in the future, where there can be none, is now: the wall
// clock has gone back since it was written.
func (x edge) instant(ms int64) instant {
	if ms == 0 {
		return longAgo
	}
	return x.now + min(time.UnixMilli(ms).Sub(x.clock.Round(0)), 0)
}

// deadline reads a stored deadline, at most limit from now: a jump of the wall clock must not
// make an exclusion longer than it may be.
func (x edge) deadline(ms int64, limit time.Duration) instant {
	return x.now + min(time.UnixMilli(ms).Sub(x.clock.Round(0)), limit)
}

// record returns the row of one gate, and false where there is nothing to keep.
func (e *Engine) record(id RecordID, clock time.Time) (Record, bool) {
	x := edge{clock, clock.Sub(e.start)}
	switch id.Layer {
	case LayerBreaker:
		if d := e.domains[id.Key]; d != nil {
			return x.record(id, d.breaker, string(d.breaker.breakerView(d.policy, x.now)))
		}
	case LayerConnection:
		if id.Key.Model == "" {
			if c := e.conns[id.Key]; c != nil {
				return x.record(id, c.cool, c.cool.word())
			}
		} else if t := e.targets[id.Key]; t != nil {
			return x.record(id, t.cool, t.cool.word())
		}
	case LayerModel:
		if t := e.targets[id.Key]; t != nil && id.Key.Model != "" {
			return x.record(id, t.lock, t.lock.word())
		}
	case LayerOperator:
		if o := e.operator[id.Key]; !o.zero() {
			d, _ := json.Marshal(detail{Reason: o.reason})
			return Record{Layer: id.Layer, Key: id.Key, State: "excluded", SinceMs: x.ms(o.since),
				UntilMs: x.ms(o.until), UpdatedMs: clock.UnixMilli(), Detail: string(d)}, true
		}
	}
	return Record{}, false
}

// word is the gate's state for those who query the tables.
func (g gate) word() string {
	switch {
	case g.quarantined:
		return "quarantined"
	case g.lockoutState != nil && g.locked:
		return "locked"
	case g.excluded:
		return "cooling"
	}
	return "counting"
}

func (x edge) record(id RecordID, g gate, state string) (Record, bool) {
	g.leases = nil // a probe does not survive its process
	if g.clean() {
		return Record{}, false
	}
	r := Record{Layer: id.Layer, Key: id.Key, State: state, Kind: g.kind, Level: g.level, Failures: g.failures,
		UpdatedMs: x.clock.UnixMilli()}
	d := detail{Rule: g.rule, Quarantined: g.quarantined}
	if g.failures > 0 || g.excluded {
		d.FailedMs = x.ms(g.lastFailure)
	}
	if g.excluded {
		r.SinceMs, r.UntilMs = x.ms(g.since), x.ms(g.until)
		if g.rechecked > g.since {
			d.RecheckedMs = x.ms(g.rechecked)
		}
	}
	if b := g.breakerState; b != nil {
		d.Early, d.Cycles, d.Successes, d.Suspected = b.early, b.cycles, b.successes, b.suspected
		if g.excluded {
			d.EarlyMs = x.ms(b.earlyAt)
		}
		for _, v := range b.run {
			d.Run = append(d.Run, runEntry{v.key, v.kind, v.count})
		}
	}
	if l := g.lockoutState; l != nil {
		r.LockoutMs, d.Locked = l.lock.Milliseconds(), l.locked
		for _, t := range l.recent {
			d.RecentMs = append(d.RecentMs, x.ms(t))
		}
	}
	b, _ := json.Marshal(d)
	r.Detail = string(b)
	return r, true
}

// restore takes over one stored row. What no longer exists or counts is deleted, what cannot be
// is repaired.
func (e *Engine) restore(r Record, clock time.Time) {
	x := edge{clock, clock.Sub(e.start)}
	var d detail
	bad := r.Detail != "" && json.Unmarshal([]byte(r.Detail), &d) != nil
	if r.Key.Provider == "" || !e.known(r.Key) {
		e.dirty(r.ID())
		return
	}
	if r.Layer == LayerOperator {
		o := operatorExclusion{set: true, since: x.instant(r.SinceMs), until: never, reason: d.Reason}
		if r.UntilMs != 0 {
			o.until = x.deadline(r.UntilMs, maxDuration)
		}
		if now := x.now; now >= o.until {
			e.dirty(r.ID())
			return
		}
		if e.operator[r.Key].zero() {
			e.operator[r.Key] = o
			e.operatorChanged(r.Key)
		}
		return
	}
	p := e.policyOf(r.Key.Provider)
	excluded := r.SinceMs != 0 || r.UntilMs != 0
	named := r.State == string(Open) || r.State == string(HalfOpen) || r.State == "cooling" || r.State == "locked" || r.State == "quarantined"
	if bad || named && !excluded || excluded && r.UntilMs == 0 && !d.Quarantined {
		e.emit(Event{Type: EventRepaired, Layer: r.Layer, Key: r.Key, Cause: "a stored exclusion without a time"})
		e.dirty(r.ID())
		return
	}
	g := gate{excluded: excluded, quarantined: d.Quarantined, kind: r.Kind, rule: d.Rule, failures: r.Failures,
		level: r.Level, lastFailure: x.instant(d.FailedMs)}
	if excluded {
		g.since = x.instant(r.SinceMs)
		g.rechecked = max(g.since, x.instant(d.RecheckedMs))
		g.until = never
		if !d.Quarantined {
			g.until = x.deadline(r.UntilMs, longest(p, r.Layer, r.Kind))
		}
		if d.FailedMs == 0 {
			g.lastFailure = g.since
		}
	}
	e.place(r, g, d, p, x)
}

// place puts a restored gate where it belongs.
func (e *Engine) place(r Record, g gate, d detail, p *Policy, x edge) {
	switch r.Layer {
	case LayerBreaker:
		g.breakerState = &breakerState{early: d.Early, cycles: d.Cycles, successes: d.Successes, suspected: d.Suspected, earlyAt: never}
		if g.excluded && d.EarlyMs != 0 {
			g.earlyAt = x.deadline(d.EarlyMs, p.Breaker.ResetTimeout)
		}
		for _, v := range d.Run {
			g.run = append(g.run, evidence{v.Key, v.Kind, v.Count})
		}
		if r.Key != e.domainKey(r.Key) {
			e.dirty(r.ID()) // the connection shares its provider's breaker now
			return
		}
		dom := e.domain(r.Key)
		dom.breaker = merged(dom.breaker, g)
		e.refreshDomain(dom)
	case LayerConnection:
		if g.forgotten(p, x.now) && !g.live(x.now) {
			e.dirty(r.ID())
			return
		}
		if r.Key.Model == "" {
			c := e.connection(r.Key)
			c.cool = merged(c.cool, g)
			e.refreshConn(c)
			return
		}
		t := e.target(r.Key)
		t.cool = merged(t.cool, g)
		e.refreshTarget(t)
	case LayerModel:
		if g.forgotten(p, x.now) && !g.live(x.now) {
			e.dirty(r.ID())
			return
		}
		g.lockoutState = &lockoutState{locked: d.Locked, lock: time.Duration(r.LockoutMs) * time.Millisecond}
		for _, ms := range d.RecentMs {
			g.recent = append(g.recent, x.instant(ms))
		}
		t := e.target(r.Key)
		t.lock = merged(t.lock, g)
		e.refreshTarget(t)
	}
}

// merged joins what this process learned while the store could not be read with what was stored:
// the later deadline and the higher level win.
func merged(own, stored gate) gate {
	if own.touched == 0 || !own.excluded || stored.excluded && stored.until > own.until {
		stored.level = max(stored.level, own.level)
		stored.failures = max(stored.failures, own.failures)
		stored.endedAt = own.endedAt
		return stored
	}
	own.level = max(own.level, stored.level)
	return own
}

// longest is the longest that an exclusion of that kind may last.
func longest(p *Policy, layer Layer, k Kind) time.Duration {
	hint := p.Hints.MaxQuota
	if k.Transient() || k == KindRateLimit || k == KindUnknown {
		hint = p.Hints.Max
	}
	switch layer {
	case LayerBreaker:
		d := max(p.Breaker.ResetTimeout, p.Breaker.CooldownByKind[k])
		return max(hint, time.Duration(float64(d)*p.Breaker.MaxBackoffMultiplier))
	case LayerModel:
		return max(hint, p.Lockout.MaxLockout, p.Lockout.CooldownByKind[k], p.Cooldown.Max)
	}
	return max(hint, time.Duration(float64(max(p.Cooldown.Max, p.Cooldown.CooldownByKind[k]))*(1+p.Cooldown.Jitter)))
}
