package resilience

import (
	"context"
	"slices"
	"time"
)

// sendLoop sends what this node learns: the first change at once, more of them a little later
// together.
func (e *Engine) sendLoop(life context.Context) {
	s := e.share
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-pause.C:
		}
		select {
		case <-life.Done():
			return
		case <-s.sendNow:
		}
		wait := time.Duration(0)
		for more := true; more; {
			ctx, cancel := e.bounded(life)
			var sent bool
			sent, more, _ = e.contribute(ctx, life, false)
			cancel()
			if sent {
				wait = flushEvery
			}
		}
		pause.Reset(wait)
	}
}

// contribute sends one batch, if there is one, and reports whether there is more.
func (e *Engine) contribute(ctx, life context.Context, leave bool) (sent, more bool, err error) {
	s := e.share
	e.mu.Lock()
	if err := s.failing; !s.connected {
		e.mu.Unlock()
		return false, false, err // what is there is compared and sent on return
	}
	e.absorbAll()
	var c Contribution
	for id, token := range s.outbox {
		if len(c.Gates) == sharedBatch {
			more = true
			break
		}
		c.Gates = append(c.Gates, Contributed{Known{id, s.views[id]}, token})
		delete(s.outbox, id)
	}
	if !more {
		c.Free, s.free = s.free, nil // after the last of what was found out under them
		c.Leave = leave
	}
	if len(c.Gates)+len(c.Free) == 0 && !leave {
		e.mu.Unlock()
		return false, false, nil
	}
	e.persist.calling = e.opts.Now()
	e.unlock()

	m, err := s.store.Merge(ctx, c)

	e.mu.Lock()
	defer e.unlock()
	if err != nil {
		for _, k := range c.Gates {
			s.outbox[k.Gate] = max(s.outbox[k.Gate], k.Token)
		}
		s.free = append(s.free, c.Free...)
		e.persist.calling = time.Time{}
		e.isolated(life, err)
		return true, false, err
	}
	e.stored(nil)
	s.contact = e.now()
	for _, h := range c.Free {
		delete(s.freeing, h.Gate)
	}
	kick(s.leaseNow)
	for _, k := range m.Fenced {
		// Somebody probes under a newer lease: what a late probe of ours said is void.
		delete(s.changed, k.Gate)
		s.views[k.Gate] = k.View
		r, stands := e.standing(k.Gate, k.View)
		e.install(k.Gate, r, stands)
		s.missed = true // news may have overtaken this answer
		kick(s.beatNow)
	}
	if m.Life != s.life {
		kick(s.beatNow)
	}
	return true, more, nil
}

// leave sends the last changes, gives every lease back and takes this node off the list. Where the store is away and no
// change waits for it nothing is lost: leases and the list's entries end by themselves.
func (e *Engine) leave(ctx context.Context) error {
	e.mu.Lock()
	for id, r := range e.share.rights {
		if r.mine {
			e.share.giveBack(id, r)
		}
	}
	e.unlock()
	for {
		_, more, err := e.contribute(ctx, ctx, true)
		if err != nil && !e.unsent() {
			return nil
		}
		if err != nil || !more {
			return err
		}
	}
}

// unsent reports whether there are changes that the store does not have.
func (e *Engine) unsent() bool {
	e.mu.Lock()
	defer e.unlock()
	return len(e.share.changed)+len(e.share.outbox) > 0
}

func (e *Engine) absorbAll() {
	for id, t := range e.share.changed {
		e.absorb(id, t)
	}
}

// absorb takes the gate's present state into its view: as a clearing and what is left after it where
// what stood is refuted or has ended everywhere, else as a fact beside what stands.
func (e *Engine) absorb(id RecordID, t transition) {
	s := e.share
	delete(s.changed, id)
	v := s.views[id]
	now := e.now()
	x := s.edge(now)
	if id.Layer == LayerNone { // a reset
		s.tell(id, v.Join(View{Cleared: s.stamp(t.at), KeepMs: x.ms(now + resetsKept)}), 0)
		return
	}
	if !e.concerns(id) {
		delete(s.views, id) // the others may have it configured yet
		return
	}
	old, stands := e.standing(id, v)
	whole, _ := v.Standing(id) // what was said of another credential included
	r, d, keep, ok := e.sharedRecord(id, x)
	// What this gate knew is refuted, and what others said up to the date of the evidence.
	cleared := max(v.latest(), s.stamp(t.provenAt))
	switch at := max(s.stamp(t.at), cleared+1); {
	case !ok && !stands:
		return
	case !ok && x.clock.UnixMilli()+1000 >= v.KeepMs:
		delete(s.views, id) // it has ended by itself, everywhere
		return
	case !ok && !t.refuted && id.Layer != LayerOperator:
		return // forgotten by this node's policy; others may have to heed it for longer
	case !ok:
		v = v.Join(View{Cleared: cleared, KeepMs: v.KeepMs})
	default:
		f := weigh(r, d, at)
		switch {
		case stands && adds(&r, d, old):
			f = weigh(r, d, at)
		case !t.refuted && id.Layer != LayerOperator && lasts(whole, x): // elsewhere, by other policies or another credential
		case len(v.Facts) > 0:
			v = v.Join(View{Cleared: cleared})
		}
		v = v.Join(View{KeepMs: keep, Facts: []Fact{f}})
	}
	s.tell(id, v, t.token)
}

// lasts reports whether an exclusion has not ended yet.
func lasts(r Record, x edge) bool {
	return r.SinceMs != 0 && (r.UntilMs == 0 || r.UntilMs > x.clock.UnixMilli()+sameWithin)
}

const (
	// sameWithin is by how much the same deadline may differ between nodes, and is put right.
	sameWithin = 1000 // ms
	// beganWithin is by how much the beginning of the same exclusion may.
	beganWithin = 20 // ms
)

// adds reports whether a record only adds to what stands. The same deadline, converted there and
// back, is put right, and so is one that this node's policy has cut: it binds this node alone.
func adds(r *Record, d detail, old Record) bool {
	od, err := parseDetail(old.Detail)
	if err != nil {
		return false
	}
	if r.UntilMs != 0 && r.UntilMs < old.UntilMs {
		began := r.SinceMs - old.SinceMs
		if old.UntilMs-r.UntilMs <= sameWithin || -beganWithin <= began && began <= beganWithin {
			r.UntilMs = old.UntilMs
		}
	}
	a, b := weigh(*r, d, 0), weigh(old, od, 0)
	return b.outweighed(a)
}

func (s *sharing) tell(id RecordID, v View, token int64) {
	s.views[id] = v
	s.outbox[id] = max(s.outbox[id], token)
	kick(s.sendNow)
}

// sharedRecord returns what the others should know of a gate, and until when: exclusions and
// levels. Failures that have excluded nobody yet are this node's own affair.
func (e *Engine) sharedRecord(id RecordID, x edge) (r Record, d detail, keepMs int64, ok bool) {
	r, ok = e.record(id, x)
	if !ok || r.SinceMs == 0 && r.UntilMs == 0 && r.Level == 0 {
		return r, d, 0, false
	}
	d, _ = parseDetail(r.Detail)
	p := e.policyAt(id.Key)
	end := max(r.UntilMs, d.FailedMs)
	switch {
	case id.Layer == LayerOperator && r.UntilMs == 0, d.Quarantined:
		end = x.ms(x.now + maxDuration) // neither has an end
	case id.Layer == LayerBreaker:
		// An open breaker closes by a probe alone, so it is kept for as long as a long exclusion.
		end = max(end, x.ms(x.now+p.Recheck.trusted()))
	}
	if id.Layer != LayerOperator {
		end += p.Cooldown.ForgetAfter.Milliseconds()
	}
	return r, d, end, true
}

// trusted is for how long an open breaker that nobody probes is worth being kept.
func (r RecheckPolicy) trusted() time.Duration { return max(24*time.Hour, r.After) }

// concerns reports whether this node's configuration has the gate.
func (e *Engine) concerns(id RecordID) bool {
	if e.alone(id) {
		return true
	}
	if id.Layer == LayerBreaker && (id.Key != e.domainKey(id.Key) || e.barren(id.Key.Provider)) {
		return false
	}
	return id.Key.Provider != "" && e.known(id.Key)
}

// standing is what a view says of this node: what was said of another credential does not concern it.
func (e *Engine) standing(id RecordID, v View) (Record, bool) {
	if c := e.conns[id.Key]; id.Layer == LayerConnection && c != nil && c.credential != "" {
		v.Facts = slices.DeleteFunc(slices.Clone(v.Facts), func(f Fact) bool {
			r, err := DecodeRecord(id, f.Text)
			return err == nil && !e.ofOurs(id, r)
		})
	}
	return v.Standing(id)
}

// ofOurs reports whether a record tells of the credential that this node uses.
func (e *Engine) ofOurs(id RecordID, r Record) bool {
	c := e.conns[id.Key]
	if id.Layer != LayerConnection || c == nil || c.credential == "" {
		return true
	}
	d, err := parseDetail(r.Detail)
	return err != nil || d.Credential == "" || d.Credential == c.credential
}
