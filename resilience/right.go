package resilience

import (
	"context"
	"time"
)

const (
	// idleRight is for how long beyond a probe's own lease the right to probe is taken, and renewed
	// while no request has used it: a lease that is asked for only when a request comes would come
	// too late for traffic that is thin.
	idleRight = 3 * time.Second
	// idleFor bounds the renewals.
	idleFor = 10 * time.Minute
	// takenFor is how long nobody asks for a right that was just given to another node: most probes
	// are over by then.
	takenFor = 1500 * time.Millisecond
	// askAgain is how soon a refused right is asked for again, if a request wants it and nobody says
	// that it is free.
	askAgain = 10 * time.Second
	// handOverAfter is how long a right is kept for this node's own next request though others want it.
	handOverAfter = time.Second
	// guarded marks the lease of a permit that was given under a right.
	guarded = 1 << 63
)

// right is what this node knows of the right to probe one gate (law K2): it is asked for, ours, or
// another node's.
type right struct {
	asked  bool
	mine   bool
	token  int64
	until  instant    // ours: when it ends; another's: when to ask again
	since  instant    // ours: when it was given
	probes int        // ours: probes in flight under it
	wanted bool       // ours: by another node
	group  []RecordID // another's: what was asked for with it
}

// guard is what a probe in flight was let through under.
type guard struct {
	begun, until instant
	rights       map[RecordID]*right // as they were then: one that was given back is another
	done         bool                // it has reported; what its answer's end says is news like any other
}

type rightState uint8

const (
	rightUnknown rightState = iota
	rightHeld               // by another node, or asked for
	rightOurs
)

// right says who may probe a gate whose probe's lease lasts for need.
func (s *sharing) right(id RecordID, need time.Duration, now instant) rightState {
	switch r := s.rights[id]; {
	case r == nil:
		return rightUnknown
	case r.asked, !r.mine && now < r.until:
		return rightHeld
	case r.mine && r.until-now >= need:
		return rightOurs
	}
	return rightUnknown
}

// claim turns the offers of a probe that is not this node's to make into refusals.
func (s *sharing) claim(t *Target, answers *[4]answer, now instant) {
	for i, id := range t.ids() {
		a := &answers[i]
		if a.verdict != probe && a.verdict != recheck || s.right(id, t.dom.policy.Breaker.ProbeLease, now) != rightHeld {
			continue
		}
		g := [4]*gate{&t.dom.breaker, &t.conn.cool, &t.cool, &t.lock}[i]
		*a = answer{verdict: refused, until: g.until, next: g.until, held: a.verdict == probe}
		if a.held {
			a.next = now + heldRetry
			a.until = max(g.until, a.next)
		}
	}
}

// unclaimed lists the gates for which a probe needs a right that this node does not have.
func (s *sharing) unclaimed(t *Target, answers [4]answer, now instant) (ids []RecordID) {
	for i, id := range t.ids() {
		if v := answers[i].verdict; (v == probe || v == recheck) && s.right(id, t.dom.policy.Breaker.ProbeLease, now) != rightOurs {
			ids = append(ids, id)
		}
	}
	return ids
}

// elsewhere reports whether another node probes one of the gates, or a right to it is asked for.
func (s *sharing) elsewhere(t *Target, answers [4]answer, now instant) bool {
	for i, id := range t.ids() {
		if answers[i].verdict != free && s.right(id, t.dom.policy.Breaker.ProbeLease, now) == rightHeld {
			return true
		}
	}
	return false
}

// want asks for rights in the background.
func (s *sharing) want(ids []RecordID) {
	for _, id := range ids {
		r := s.rights[id]
		if r == nil {
			r = &right{}
			s.rights[id] = r
		}
		r.asked = true
	}
	s.wants = append(s.wants, ids)
	kick(s.leaseNow)
}

// guard notes a probe that is let through.
func (s *sharing) guard(lease uint64, t *Target, answers [4]answer, now instant) {
	g := &guard{begun: now, until: after(now, t.dom.policy.Breaker.ProbeLease), rights: map[RecordID]*right{}}
	for i, id := range t.ids() {
		if v := answers[i].verdict; v == probe || v == recheck {
			r := s.rights[id]
			r.probes++
			r.until = g.until // from now on it lasts as long as the probe may, and the next beat says so
			g.rights[id] = r
		}
	}
	s.guards[lease] = g
	kick(s.beatNow)
}

// heed returns what a permit's report is evidence of, and false where it comes too late to count:
// its lease has ended, or another node has a newer one.
func (s *sharing) heed(lease uint64, now instant) (*guard, bool) {
	if s == nil || lease&guarded == 0 {
		return nil, true
	}
	g := s.guards[lease]
	if g == nil || g.done {
		return nil, g != nil
	}
	if now >= g.until {
		return nil, false
	}
	for id, r := range g.rights {
		if s.rights[id] != r || !r.mine {
			return nil, false
		}
	}
	return g, true
}

// evidence makes the transitions until the returned function is called a probe's.
func (s *sharing) evidence(g *guard) (end func()) {
	if g == nil {
		return func() {}
	}
	tokens := make(map[RecordID]int64, len(g.rights))
	for id, r := range g.rights {
		tokens[id] = r.token
	}
	return s.proving(g.begun, tokens)
}

// settled gives back the rights of a probe that has reported.
func (s *sharing) settled(lease uint64) {
	if s == nil || lease&guarded == 0 {
		return
	}
	g := s.guards[lease]
	if g == nil || g.done {
		return
	}
	g.done = true
	for id, r := range g.rights {
		if r.probes--; r.probes <= 0 && s.rights[id] == r && r.mine {
			s.giveBack(id, r)
		}
	}
}

func (s *sharing) giveBack(id RecordID, r *right) {
	delete(s.rights, id)
	s.free = append(s.free, Held{Gate: id, Token: r.token})
	s.freeing[id] = true
	kick(s.sendNow)
}

// forget ends a permit: nothing more will come of it.
func (s *sharing) forget(lease uint64) {
	if s != nil && lease&guarded != 0 {
		s.settled(lease)
		delete(s.guards, lease)
	}
}

// handOver gives back a right that no request here has used for a while, since another node wants it.
func (s *sharing) handOver(id RecordID, now instant) {
	r := s.rights[id]
	switch {
	case r == nil || !r.mine:
		s.disown(id, now)
	case !r.asked && r.probes == 0 && now-r.since >= handOverAfter:
		s.giveBack(id, r)
	default:
		r.wanted = true // the next beat looks again
	}
}

// keepRights lists the rights to keep alive with the next beat. One that is used lasts as long as
// its probe may, and no longer.
func (e *Engine) keepRights(now instant) (keep []Held) {
	s := e.share
	for id, r := range s.rights {
		if !r.mine || r.asked || now >= r.until {
			continue
		}
		g, _ := e.gateOf(id)
		switch {
		case r.probes > 0:
			keep = append(keep, Held{id, r.token, r.until - now})
		case !g.excluded, now-r.since > idleFor, r.wanted && now-r.since >= handOverAfter:
			s.giveBack(id, r)
		default:
			keep = append(keep, Held{id, r.token, e.rightFor(id)})
		}
	}
	return keep
}

// rightFor is for how long the right to probe a gate is taken.
func (e *Engine) rightFor(id RecordID) time.Duration {
	return e.policyAt(id.Key).Breaker.ProbeLease + idleRight
}

// lose forgets a right that another node has by now, unless this node has a newer one.
func (s *sharing) lose(h Held) {
	if r := s.rights[h.Gate]; r != nil && r.mine && r.token == h.Token {
		delete(s.rights, h.Gate)
	}
}

func (s *sharing) prolong(h Held, asked instant) {
	if r := s.rights[h.Gate]; r != nil && r.mine && r.token == h.Token && r.probes == 0 {
		r.until = max(r.until, asked+h.For)
	}
}

// leaseLoop asks for the rights that requests want.
func (e *Engine) leaseLoop(life context.Context) {
	s := e.share
	for {
		select {
		case <-life.Done():
			return
		case <-s.leaseNow:
		}
		e.leases(life)
	}
}

// leases asks for the rights that are wanted just now.
func (e *Engine) leases(life context.Context) {
	s := e.share
	e.mu.Lock()
	wants := s.wants
	s.wants = nil
	e.mu.Unlock()
	for _, ids := range wants {
		e.lease(life, ids)
	}
}

// lease asks for the rights to probe all these gates.
func (e *Engine) lease(life context.Context, ids []RecordID) {
	s := e.share
	e.mu.Lock()
	asked := e.now()
	var d time.Duration
	wait, wanted := false, false
	for _, id := range ids {
		d = max(d, e.rightFor(id))
		wait = wait || s.freeing[id]
		wanted = wanted || s.rights[id] != nil && s.rights[id].asked
	}
	if !wanted { // any more: the store was away meanwhile
		e.mu.Unlock()
		return
	}
	if wait && s.connected {
		s.wants = append(s.wants, ids) // what goes on to be given back must not be taken back by that
		e.mu.Unlock()
		return
	}
	e.mu.Unlock()

	ctx, cancel := e.bounded(life)
	grant, err := s.store.Lease(ctx, ids, d)
	cancel()

	e.mu.Lock()
	defer e.unlock()
	now := e.now()
	if err != nil {
		s.doubt(ids, now+2*d)
		e.isolated(life, err)
	} else {
		s.contact = now
	}
	for _, id := range ids {
		r := s.rights[id]
		if err == nil {
			delete(s.unsure, id)
		}
		switch {
		case r == nil && grant.Token != 0: // isolated while it was under way
			s.giveBack(id, &right{token: grant.Token})
			continue
		case r == nil:
			continue
		case err != nil && r.probes == 0:
			delete(s.rights, id)
			continue
		case err != nil:
			r.asked = false
		case grant.Token != 0:
			probes := r.probes
			*r = right{mine: true, token: grant.Token, until: asked + d, since: now, probes: probes}
		case r.mine && now < r.until: // a longer one was asked for
			r.asked = false
		default:
			*r = right{until: now + min(grant.Wait, askAgain), group: ids}
		}
		e.opened(id.Key.Provider)
	}
}

// sweepRights forgets rights that have ended and permits that were lost.
func (e *Engine) sweepRights(now instant) {
	s := e.share
	for id, r := range s.rights {
		if !r.asked && now >= r.until {
			delete(s.rights, id)
		}
	}
	for lease, g := range s.guards {
		if now-g.until > time.Hour {
			delete(s.guards, lease)
		}
	}
}
