package resilience

import (
	"encoding/json"
	"time"
)

// detail is what a record's columns do not say. Times are unix milliseconds; an absent FailedMs is
// the exclusion's start, an absent RecentMs the last failure alone.
type detail struct {
	Rule        string      `json:"rule,omitempty"`
	Quarantined bool        `json:"quarantined,omitempty"`
	BaseMs      int64       `json:"base_ms,omitempty"`
	FailedMs    int64       `json:"failed_ms,omitempty"`
	Broken      int         `json:"broken,omitempty"`
	RecheckedMs int64       `json:"rechecked_ms,omitempty"`
	Early       int         `json:"early,omitempty"`
	EarlyMs     int64       `json:"early_ms,omitempty"`
	PausedMs    int64       `json:"paused_ms,omitempty"`
	Cycles      int         `json:"cycles,omitempty"`
	Successes   int         `json:"successes,omitempty"`
	Suspected   bool        `json:"suspected,omitempty"`
	Moved       []moveEntry `json:"moved,omitempty"`
	Run         []runEntry  `json:"run,omitempty"`
	RecentMs    []int64     `json:"recent_ms,omitempty"`
	Credential  string      `json:"credential,omitempty"`
	Reason      string      `json:"reason,omitempty"`
}

// empty reports whether the columns say it all.
func (d *detail) empty() bool {
	return d.Rule == "" && !d.Quarantined && d.BaseMs == 0 && d.FailedMs == 0 && d.Broken == 0 && d.RecheckedMs == 0 && d.Early == 0 &&
		d.EarlyMs == 0 && d.PausedMs == 0 && d.Cycles == 0 && d.Successes == 0 && !d.Suspected && len(d.Run) == 0 && len(d.Moved) == 0 &&
		len(d.RecentMs) == 0 && d.Credential == "" && d.Reason == ""
}

// moveEntry is a model whose run of failures is its own.
type moveEntry struct {
	Model    string `json:"model"`
	FailedMs int64  `json:"failed_ms"`
}

type runEntry struct {
	Key
	Kind   Kind `json:"kind"`
	Count  int  `json:"count"`
	Waited int  `json:"waited,omitempty"`
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

// deadlineMs is ms for the end of an exclusion, which may not end early by being rounded.
func (x edge) deadlineMs(t instant) int64 {
	if t == never {
		return 0
	}
	return x.ms(t + time.Millisecond - 1)
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
func (e *Engine) record(id RecordID, x edge) (Record, bool) {
	switch id.Layer {
	case LayerBreaker:
		if d := e.domains[id.Key]; d != nil {
			return x.record(id, d.breaker, string(d.breaker.breakerView(d.policy, x.now)), "")
		}
	case LayerConnection:
		if id.Key.Model == "" {
			if c := e.conns[id.Key]; c != nil {
				return x.record(id, c.cool, c.cool.word(), c.credential)
			}
		} else if t := e.targets[id.Key]; t != nil {
			return x.record(id, t.cool, t.cool.word(), "")
		}
	case LayerModel:
		if t := e.targets[id.Key]; t != nil && id.Key.Model != "" {
			return x.record(id, t.lock, t.lock.word(), "")
		}
	case LayerOperator:
		if o := e.operator[id.Key]; !o.zero() {
			d, _ := json.Marshal(detail{Reason: o.reason})
			return Record{Layer: id.Layer, Key: id.Key, State: "excluded", SinceMs: x.ms(o.since),
				UntilMs: x.deadlineMs(o.until), UpdatedMs: x.clock.UnixMilli(), Detail: string(d)}, true
		}
	}
	return Record{}, false
}

// word is the gate's state for those who query the tables.
func (g *gate) word() string {
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

func (x edge) record(id RecordID, g gate, state, credential string) (Record, bool) {
	g.leases = nil // a probe does not survive its process
	if !g.worthKeeping() {
		return Record{}, false
	}
	r := Record{Layer: id.Layer, Key: id.Key, State: state, Kind: g.kind, Level: g.level, Failures: g.failures,
		UpdatedMs: x.clock.UnixMilli()}
	d := detail{Rule: g.rule, Quarantined: g.quarantined, BaseMs: g.base.Milliseconds()}
	if g.ofCredential() {
		d.Credential = credential
	}
	if g.failures > 0 || g.excluded {
		d.FailedMs = x.ms(g.lastFailure)
	}
	d.Broken = g.broken
	if g.excluded {
		if g.lastFailure == g.since {
			d.FailedMs = 0
		}
		r.SinceMs, r.UntilMs = x.ms(g.since), x.deadlineMs(g.until)
		if g.rechecked > g.since {
			d.RecheckedMs = x.ms(g.rechecked)
		}
	}
	if b := g.breakerState; b != nil {
		d.Early, d.Cycles, d.Successes, d.Suspected = b.early, b.cycles, b.successes, b.suspected
		if g.excluded {
			d.EarlyMs = x.deadlineMs(b.earlyAt)
			if b.pausedTo > x.now {
				d.PausedMs = x.deadlineMs(b.pausedTo)
			}
		}
		for _, v := range b.run {
			d.Run = append(d.Run, runEntry{v.key, v.kind, v.count, v.waited})
		}
		for _, m := range b.moved {
			d.Moved = append(d.Moved, moveEntry{m.model, x.ms(m.at)})
		}
	}
	if l := g.lockoutState; l != nil {
		r.LockoutMs = l.lock.Milliseconds()
		if len(l.recent) != 1 || l.recent[0] != g.lastFailure || g.failures != 1 {
			for _, t := range l.recent {
				d.RecentMs = append(d.RecentMs, x.ms(t))
			}
		}
	}
	if !d.empty() {
		b, _ := json.Marshal(d)
		r.Detail = string(b)
	}
	return r, true
}
