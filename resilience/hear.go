package resilience

import "slices"

// hearNews takes in what a node has just done.
func (e *Engine) hearNews(n News) {
	s := e.share
	e.mu.Lock()
	defer e.unlock()
	if n.Life != s.life {
		kick(s.beatNow) // the store began anew, or this node did; the beat finds out
		return
	}
	for _, k := range n.Gates {
		e.hearKnown(k)
	}
	switch {
	case n.From == s.revision:
		s.revision = n.To
	case n.To > s.revision:
		kick(s.beatNow) // something was missed
	}
	now := e.now()
	for _, id := range n.Taken {
		if s.rights[id] == nil {
			s.rights[id] = &right{until: now + takenFor}
		}
	}
	for _, id := range n.Freed {
		r := s.rights[id]
		if r == nil || r.mine || r.asked {
			continue
		}
		delete(s.rights, id)
		e.opened(id.Key.Provider)
		if undecided := !slices.ContainsFunc(n.Gates, func(k Known) bool { return k.Gate == id }); undecided && r.group != nil && now < r.until {
			s.want(r.group) // a request was refused for it a moment ago
		}
	}
	for _, id := range n.Wanted {
		s.handOver(id, now)
	}
}

// hearKnown joins what is said of a gate, and has the gate follow.
func (e *Engine) hearKnown(k Known) {
	s := e.share
	if t, ok := s.changed[k.Gate]; ok {
		e.absorb(k.Gate, t)
	}
	old := s.views[k.Gate]
	if s.over(k.Gate, old, s.edge(e.now()).clock.UnixMilli()) {
		old = View{} // the store has forgotten it: its clearing must not keep out what others bring along
	}
	v := old.Join(k.View)
	if v.equal(old) {
		return
	}
	s.views[k.Gate] = v
	if k.Gate.Layer == LayerNone {
		e.hearReset(k.Gate.Key, v.Cleared)
		return
	}
	before, stood := e.standing(k.Gate, old)
	after, stands := e.standing(k.Gate, v)
	if stood != stands || before != after {
		e.install(k.Gate, after, stands)
	}
}

// hearReset ends what is known of a key up to the date of an operator's reset elsewhere.
func (e *Engine) hearReset(key Key, at Stamp) {
	s := e.share
	e.absorbAll()
	seq := e.tick()
	proven, refuted := s.proving(s.instantOf(at), nil), s.refutes()
	defer proven()
	defer refuted()
	each := func(id RecordID) {
		if g, set := e.gateOf(id); key.Contains(id.Key) && set != nil && !g.clean() && s.views[id].latest() <= at {
			set(g.cleared(seq), "reset")
		}
	}
	for k := range e.domains {
		each(RecordID{LayerBreaker, k})
	}
	for k, c := range e.conns {
		each(RecordID{LayerConnection, k})
		for _, t := range c.targets {
			each(RecordID{LayerConnection, t.key})
			each(RecordID{LayerModel, t.key})
		}
	}
}

// install makes a gate what its view says.
func (e *Engine) install(id RecordID, r Record, stands bool) {
	s := e.share
	if !e.concerns(id) {
		return
	}
	s.installing = true
	defer func() { s.installing = false }()
	x := s.edge(e.now())
	if id.Layer == LayerOperator {
		e.installOperator(id.Key, r, stands, x)
		return
	}
	const cause = "cluster"
	if !stands {
		if g, set := e.gateOf(id); set != nil {
			set(g.cleared(e.tick()), cause)
		}
		return
	}
	d, err := parseDetail(r.Detail)
	next, ok := gateFrom(r, d, e.policyAt(r.Key), x)
	if err != nil || !ok {
		return
	}
	e.makeCell(id)
	if g, set := e.gateOf(id); set != nil {
		if next.excluded && !next.quarantined { // counted from the last word, so that to hear it again moves nothing
			next.until = min(next.until, s.instantOf(s.views[id].latest())+longest(e.policyAt(r.Key), r, next.base))
		}
		if said := x.deadline(r.UntilMs, maxDuration); g.excluded && !next.quarantined && g.until <= said {
			next.until = max(next.until, g.until) // this node's caps bound what it hears, not what stands here
		}
		set(g.follow(next, e.tick()), cause)
	}
	if c := e.conns[id.Key]; c != nil && id.Layer == LayerConnection {
		c.lastError = &LastError{Kind: next.kind, Rule: next.rule, At: Timestamp{wall(next.lastFailure, x.now, e.opts.Now())}}
	}
}

// makeCell makes the cell of a gate where there is none yet.
func (e *Engine) makeCell(id RecordID) {
	switch {
	case id.Layer == LayerBreaker:
		e.domain(id.Key)
	case id.Key.Model != "":
		e.target(id.Key)
	default:
		e.connection(id.Key)
	}
}

// newRound is by how much the beginnings of two exclusions differ at least.
const newRound = 500 * 1e6 // ns

// follow is the gate as another node says that it is, dated on this node's sequence: an attempt
// that began here before the news knew nothing of it.
func (g gate) follow(next gate, seq uint64) gate {
	next.touched = seq
	fresh := next.excluded && (!g.excluded || next.level != g.level || (next.since-g.since).Abs() > newRound)
	next.setAt, next.endedAt = g.setAt, g.endedAt
	if fresh {
		next.setAt = seq
	} else {
		next.leases = g.leases
		next.rechecked = max(next.rechecked, g.rechecked)
	}
	if next.breakerState != nil && g.breakerState != nil {
		next.runAt = g.runAt
		if fresh {
			next.runAt = seq
		}
		next.moved = g.moved
	}
	return next
}

func (e *Engine) installOperator(key Key, r Record, stands bool, x edge) {
	if !stands {
		e.include(key, "operator")
		return
	}
	d, _ := parseDetail(r.Detail)
	o := operatorExclusion{set: true, since: x.instant(r.SinceMs), until: never, reason: d.Reason}
	if r.UntilMs != 0 {
		o.until = x.deadline(r.UntilMs, lengthOf(r, maxDuration))
	}
	if x.now >= o.until {
		return
	}
	e.operator[key] = o
	e.operatorChanged(key)
	e.emit(Event{Type: EventOperatorExcluded, Layer: LayerOperator, Key: key, Cause: o.reason, until: o.until})
}

// dropEnded forgets views of which nothing matters any more.
func (e *Engine) dropEnded() {
	s := e.share
	clock := s.edge(e.now()).clock.UnixMilli()
	for id, v := range s.views {
		if s.over(id, v, clock) {
			delete(s.views, id)
		}
	}
}

// over reports whether nothing of a gate's view matters any more.
func (s *sharing) over(id RecordID, v View, clock int64) bool {
	_, waits := s.outbox[id]
	return v.KeepMs <= clock && !waits
}

// sweepShared cleans up what has ended.
func (e *Engine) sweepShared() {
	e.mu.Lock()
	defer e.unlock()
	e.dropEnded()
	e.sweepRights(e.now())
}

// installKnown has gates that the configuration has just named, or for which it allows more, follow what is known of
// them.
func (e *Engine) installKnown() {
	if e.share == nil {
		return
	}
	x := e.share.edge(e.now())
	for id, v := range e.share.views {
		r, stands := e.standing(id, v)
		if g, _ := e.gateOf(id); !stands || g.excluded && !outlasts(r, g, x) || id.Layer == LayerOperator && !e.operator[id.Key].zero() {
			continue
		}
		e.install(id, r, true)
	}
}

// outlasts reports whether others say that an exclusion ends later than this node has it.
func outlasts(r Record, g gate, x edge) bool {
	return lasts(r, x) && g.until != never && (r.UntilMs == 0 || r.UntilMs > x.ms(g.until)+sameWithin)
}
