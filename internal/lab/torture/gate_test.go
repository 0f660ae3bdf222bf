package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"omniroute/resilience"
)

const never = time.Duration(1<<63 - 1)

// gate is one gate as the store was told of it, with what the world remembers of it.
type gate struct {
	resilience.Record
	detail
	out         bool // an exclusion stands, though it may be due
	until       time.Duration
	since, last time.Duration // of the exclusion, of the last failure
	rechecked   time.Duration
	early       time.Duration   // when the next early probe may pass
	paused      time.Duration   // no probe before then, since the last one was overtaken
	movedAt     []time.Duration // when the models in Moved last failed

	setOrd, endOrd int // when the exclusion was set, when the last one ended
	runOrd         int // when the run of failures began
	proofs         int // probes of this round that have succeeded
	dial           *gate
	dialFresh      bool // there was nothing before
}

// detail is what the columns of a record do not say, as far as the laws ask.
type detail struct {
	Quarantined bool   `json:"quarantined"`
	BaseMs      int64  `json:"base_ms"`
	Credential  string `json:"credential"`
	FailedMs    int64  `json:"failed_ms"`
	Broken      int    `json:"broken"`
	RecheckedMs int64  `json:"rechecked_ms"`
	EarlyMs     int64  `json:"early_ms"`
	PausedMs    int64  `json:"paused_ms"`
	Suspected   bool   `json:"suspected"`
	Cycles      int    `json:"cycles"`
	Run         []struct {
		resilience.Key
		Count  int `json:"count"`
		Waited int `json:"waited"`
	} `json:"run"`
	Moved []struct {
		Model    string `json:"model"`
		FailedMs int64  `json:"failed_ms"`
	} `json:"moved"`
	Successes int     `json:"successes"`
	RecentMs  []int64 `json:"recent_ms"`
}

// live reports whether the exclusion still runs.
func (g *gate) live(now time.Duration) bool { return g != nil && g.out && now < g.until }

func (g *gate) transient() bool {
	return !g.Quarantined && (g.Kind.Transient() || g.Kind == resilience.KindUnknown)
}

// failed reports whether there are failures in the run, beside long waits.
func (g *gate) failed() bool {
	for _, e := range g.Run {
		if e.Count > 0 {
			return true
		}
	}
	return false
}

// sole is the one model from which all evidence of the run comes.
func (g *gate) sole() (string, bool) {
	failed := g.failed()
	model := ""
	for _, e := range g.Run {
		switch {
		case failed && e.Count == 0:
		case e.Model == "", model != "" && e.Model != model:
			return "", false
		default:
			model = e.Model
		}
	}
	return model, model != ""
}

func (g *gate) String() string {
	if g == nil {
		return "clean"
	}
	s := fmt.Sprintf("%s %v level %d failures %d", g.State, g.Kind, g.Level, g.Failures)
	if g.out && g.until == never {
		return s + " without an end"
	}
	if g.out {
		s += fmt.Sprintf(" from %v until %v", g.since, g.until)
	}
	return s
}

// change is what a moment has done to one gate. Either side is nil where nothing is known.
type change struct {
	id            resilience.RecordID
	before, after *gate
}

// read turns a record into a gate. Times come off the wall clock, and are those of the monotonic one here.
func (w *world) read(r resilience.Record) *gate {
	g := &gate{Record: r}
	if r.Detail != "" {
		if err := json.Unmarshal([]byte(r.Detail), &g.detail); err != nil {
			w.broke("P1 what is stored can be read", "%v: %v", r, err)
		}
	}
	g.since, g.last = w.instant(r.SinceMs), w.instant(g.FailedMs)
	g.out = r.SinceMs != 0 || r.UntilMs != 0
	if g.until = w.instant(r.UntilMs); g.out && r.UntilMs == 0 {
		g.until = never
	}
	if g.FailedMs == 0 {
		g.last = g.since
	}
	g.rechecked = max(g.since, w.instant(g.RecheckedMs))
	g.early, g.paused = w.instant(g.EarlyMs), w.instant(g.PausedMs)
	for _, x := range g.Moved {
		g.movedAt = append(g.movedAt, min(w.instant(x.FailedMs), w.mono)) // a jump of the wall clock may have put it ahead
	}
	return g
}

// instant is a stored time on the monotonic clock.
func (w *world) instant(ms int64) time.Duration {
	if ms == 0 {
		return -1 << 60
	}
	return w.mono + time.Duration(ms-w.wall())*time.Millisecond
}

// learn takes in what the store was told in a moment.
func (n *node) learn(m *moment, err error) {
	if err != nil {
		n.blind = true
		return
	}
	last := map[resilience.RecordID]resilience.Change{}
	var order []resilience.RecordID
	for _, c := range n.journal.news {
		id := c.Record.ID()
		if _, known := last[id]; !known {
			order = append(order, id)
		}
		last[id] = c
	}
	n.journal.news = nil
	if n.blind {
		// What happened meanwhile is not known step by step.
		n.blind, m.hazy = false, true
		for _, p := range n.permits {
			p.hazy = true
		}
		for id, c := range last {
			if n.gone[id] = n.w.ord; c.Delete || id.Layer == resilience.LayerOperator {
				delete(n.gates, id)
				continue
			}
			g := n.w.read(c.Record)
			g.setOrd, g.endOrd, g.runOrd, g.proofs = n.w.ord, n.w.ord, n.w.ord, g.Successes
			n.gates[id] = g
		}
		return
	}
	slices.SortFunc(order, byID)
	for _, id := range order {
		if id.Layer == resilience.LayerOperator {
			continue
		}
		before := n.gates[id]
		var after *gate
		if c := last[id]; !c.Delete {
			after = n.w.read(c.Record)
		}
		n.date(m, id, before, after)
		m.changes = append(m.changes, change{id, before, after})
	}
}

func byID(a, b resilience.RecordID) int {
	if a.Layer != b.Layer {
		return int(a.Layer) - int(b.Layer)
	}
	as, bs := a.Key.String(), b.Key.String()
	switch {
	case as < bs:
		return -1
	case as > bs:
		return 1
	}
	return 0
}

// date notes when what is new was set, and when what is gone ended.
func (n *node) date(m *moment, id resilience.RecordID, before, after *gate) {
	if after == nil {
		return
	}
	ord := n.w.ord
	after.setOrd, after.endOrd, after.runOrd = ord, n.gone[id], ord
	if before == nil {
		return
	}
	if m.had(resilience.EventLocalOutage) {
		after.proofs = after.Successes // of the round that it has brought back
	}
	if before.dial != nil && m.had(resilience.EventLocalOutage) { // what was set is undone, its dates too
		after.setOrd, after.endOrd, after.runOrd = before.dial.setOrd, before.dial.endOrd, before.dial.runOrd
		return
	}
	if before.out && after.out && sameStart(before, after) && before.Quarantined == after.Quarantined {
		after.setOrd = before.setOrd
	}
	if before.out && after.out && sameStart(before, after) {
		after.rechecked = max(after.rechecked, before.rechecked)
	}
	if after.endOrd = max(before.endOrd, after.endOrd); before.out && !after.out {
		after.endOrd = ord
	}
	if len(before.Run) > 0 && len(after.Run) > 0 && before.failed() == after.failed() {
		after.runOrd = before.runOrd
	}
}

func sameStart(a, b *gate) bool { return (a.since - b.since).Abs() <= 2*time.Millisecond }

// remember takes over what a moment has changed.
func (n *node) remember(m *moment) {
	for _, k := range m.resets {
		n.wiped[k] = n.w.ord
	}
	if n.unsure && m.had(resilience.EventLocalOutage) { // what it has undone, and since when, is not known
		for _, p := range n.permits {
			p.hazy = true
		}
	}
	for i := range m.changes {
		c := &m.changes[i]
		n.rememberDial(m, c)
		if c.after == nil {
			if delete(n.gates, c.id); c.before != nil && c.before.dialFresh && m.had(resilience.EventLocalOutage) {
				continue
			}
			if c.before != nil && (c.before.out || c.id.Layer == resilience.LayerConnection && n.closes(m, c.id.Key)) {
				n.gone[c.id] = n.w.ord
			} else if c.before != nil {
				n.gone[c.id] = max(n.gone[c.id], c.before.endOrd)
			}
			continue
		}
		n.gates[c.id] = c.after
	}
	n.permits = slices.DeleteFunc(n.permits, func(p *permit) bool { return p.settled })
}

// ended returns when the last exclusion of a gate ended.
func (n *node) ended(id resilience.RecordID) int {
	at := n.gone[id]
	if g := n.gates[id]; g != nil {
		at = max(at, g.endOrd)
	}
	for k, ord := range n.wiped {
		if k.Contains(id.Key) {
			at = max(at, ord)
		}
	}
	return at
}

// idsOf names the gates on the way to a target, in their order.
func (n *node) idsOf(k resilience.Key) [4]resilience.RecordID {
	return [4]resilience.RecordID{
		{Layer: resilience.LayerBreaker, Key: n.variant.domainOf(k)},
		{Layer: resilience.LayerConnection, Key: resilience.Key{Provider: k.Provider, Connection: k.Connection}},
		{Layer: resilience.LayerConnection, Key: k},
		{Layer: resilience.LayerModel, Key: k},
	}
}

// state tells of every gate, for the story.
func (n *node) state() (lines []string) {
	ids := slices.SortedFunc(maps.Keys(n.gates), byID)
	for _, id := range ids {
		lines = append(lines, fmt.Sprintf("node %d %v %v: %v", n.id, id.Layer, id.Key, n.gates[id]))
	}
	return lines
}
