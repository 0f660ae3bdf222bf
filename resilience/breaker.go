package resilience

import (
	"slices"
	"time"
)

// breakerState is what only layer 1 keeps. It is replaced whole, never changed in place.
type breakerState struct {
	early     int     // index of the next early probe's pause
	earlyAt   instant // when the next early probe may pass
	cycles    int     // rounds that failed: openings since it was last CLOSED
	successes int     // probes that succeeded in this HALF_OPEN
	suspected bool    // opened by attempts that wait too long; any content closes it
	waiting   int     // attempts that waited too long since the last content
	pausedTo  instant // no probe before then, since the last one was overtaken
	// run is where the failures in a row came from, runAt when the first of them came (the first long
	// wait, as long as there are only such).
	run   []evidence
	runAt uint64
	// moved names the models whose present run of failures turned out to be their own (law V4).
	// It outlives the breaker's exclusions: a model's success or forget_after ends it.
	moved []movedModel
}

// evidence counts the failures of one target in a run, and apart from them the attempts that
// waited too long, since those may fail yet.
type evidence struct {
	key    Key
	kind   Kind
	count  int
	waited int
}

// movedModel is a model with a run of its own, and when it last failed.
type movedModel struct {
	model string
	at    instant
}

func newBreaker() gate { return gate{breakerState: &breakerState{}} }

// failed reports whether some of the run's evidence is a failure, not only a long wait.
func (s *breakerState) failed() bool {
	return slices.ContainsFunc(s.run, func(e evidence) bool { return e.count > 0 })
}

// soleModel returns the one model from which all evidence of the run comes. Evidence that names
// no model is the provider's. Beside failures, attempts that only wait long are none: among many
// models one of them always does.
func (s *breakerState) soleModel() (string, bool) {
	failed := s.failed()
	model := ""
	for _, e := range s.run {
		switch {
		case failed && e.count == 0:
		case e.key.Model == "", model != "" && model != e.key.Model:
			return "", false
		default:
			model = e.key.Model
		}
	}
	return model, model != ""
}

// owns reports whether the model's failures are its own, not the provider's.
func (g *gate) owns(model string, p *Policy, now instant) bool {
	return slices.ContainsFunc(g.moved, func(m movedModel) bool {
		return m.model == model && now-m.at < p.Cooldown.ForgetAfter
	})
}

// withMoved notes a failure of a model that is its own; those that are forgotten leave.
func (g gate) withMoved(model string, p *Policy, now instant) gate {
	return g.breaker(func(s *breakerState) {
		s.moved = slices.DeleteFunc(slices.Clone(s.moved), func(m movedModel) bool {
			return m.model == model || now-m.at >= p.Cooldown.ForgetAfter
		})
		s.moved = append(s.moved, movedModel{model, now})
	})
}

// withoutMoved makes the failures of models the provider's again: those for which end says so.
func (g gate) withoutMoved(end func(movedModel) bool) gate {
	if !slices.ContainsFunc(g.moved, end) {
		return g
	}
	return g.breaker(func(s *breakerState) { s.moved = slices.DeleteFunc(slices.Clone(s.moved), end) })
}

// breaker returns a copy to change.
func (g gate) breaker(change func(*breakerState)) gate {
	next := *g.breakerState
	change(&next)
	g.breakerState = &next
	return g
}

// noted adds failures and long waits of one target to the run.
func (g gate) noted(r report, failures, waits int) gate {
	return g.breaker(func(s *breakerState) {
		if len(s.run) == 0 || failures > 0 && !s.failed() {
			s.runAt = r.seq
		}
		s.run = slices.Clone(s.run)
		i := slices.IndexFunc(s.run, func(e evidence) bool { return e.key == r.key })
		if i < 0 {
			i = len(s.run)
			s.run = append(s.run, evidence{key: r.key})
		}
		s.run[i].kind = r.kind
		s.run[i].count += failures
		s.run[i].waited += waits
	})
}

// breakerAsk says whether the breaker admits a request for model.
func (g *gate) breakerAsk(model string, p *Policy, alone bool, now instant) answer {
	if !g.excluded {
		return answer{}
	}
	n, first := g.running(now)
	sole, one := g.soleModel()
	paused := now < g.pausedTo && !(one && sole != model)
	if now >= g.until { // HALF_OPEN
		switch {
		case n >= p.Breaker.HalfOpenRequests:
			return answer{verdict: refused, until: first, next: first, held: true}
		case paused:
			return answer{verdict: refused, until: g.pausedTo, next: g.pausedTo}
		}
		return answer{verdict: probe}
	}
	if n > 0 {
		return answer{verdict: refused, until: g.until, next: min(first, g.until), held: true}
	}
	if now >= g.earlyAt && !paused || one && sole != model {
		return answer{verdict: probe, early: true}
	}
	if g.recheckDue(p, alone, now) {
		return answer{verdict: recheck, until: g.until}
	}
	return answer{verdict: refused, until: g.until, next: max(min(g.until, g.earlyAt), g.pausedTo)}
}

// overtakenPause is how long after the beginning of a probe that was overtaken the next one may
// pass. Each of them delays a request. With less a hanging provider would delay one every second,
// with more it would be out for long after it is well again.
const overtakenPause = 4 * time.Second

// overtaken ends the hold of a probe that waited too long and then was not needed any more: it
// decides nothing.
func (g gate) overtaken(id uint64, p *Policy, now instant) gate {
	for _, l := range g.leases {
		if l.id == id {
			begun := min(l.until-p.Breaker.ProbeLease, now)
			g = g.breaker(func(s *breakerState) { s.pausedTo = max(s.pausedTo, begun+overtakenPause) })
		}
	}
	return g.release(id)
}

// breakerFail is one provider-scope failure.
func (g gate) breakerFail(r report, p *Policy, now instant) gate {
	switch {
	case g.excluded && !g.holds(r.lease, now):
		return g.worsen(r, now).heed(r, now)
	case r.begun < g.endedAt && !r.ownEnd():
		return g // of before the breaker closed: a closed one opens by its count alone
	case g.live(now): // an early probe, or one under which a later report has prolonged the round
		g = g.release(r.lease).noted(r, 1, 0).breaker(func(s *breakerState) {
			s.early++
			s.earlyAt = earlyProbe(p, s.early, now)
		})
		if r.kind.gravity() >= g.kind.gravity() {
			g.kind, g.rule = r.kind, r.rule
		}
		g.lastFailure = now
		g.failures++
		g.touched = r.seq
		return g.worsen(r, now).heed(r, now)
	case g.excluded: // HALF_OPEN
		return g.noted(r, 1, 0).open(r, p, now)
	}
	g.failures++
	g.broken += one(r.after)
	g.kind, g.rule = r.kind, r.rule
	g.lastFailure, g.touched = now, r.seq
	g = g.noted(r, 1, 0)
	if g.failures < p.Breaker.FailureThreshold || g.doubtful(r.sent) {
		return g
	}
	return g.open(r, p, now)
}

// fewest is what share of the attempts begun since its first failure a run must make up to open
// the breaker: one in three.
const fewest = 3

// doubtful reports whether a run of failures is too small a part of what was sent to mean
// anything. Failures are quicker than answers: at the start of heavy traffic, or right after a
// gate has opened, the few that fail are all that is known of the many that are on their way, and
// five of them in a row are no outage.
func (g gate) doubtful(sent int64) bool { return sent > int64(g.failures)*fewest }

// breakerWait is one attempt that has waited suspiciously long for its first content.
func (g gate) breakerWait(r report, p *Policy, now instant) gate {
	if g.excluded || r.begun < g.endedAt {
		return g
	}
	g = g.breaker(func(s *breakerState) { s.waiting++ }).noted(r, 0, 1)
	g.touched = r.seq
	if g.waiting < p.Breaker.FailureThreshold {
		return g
	}
	return g.open(r, p, now).breaker(func(s *breakerState) { s.suspected = true })
}

// open starts the next round.
func (g gate) open(r report, p *Policy, now instant) gate {
	failures, first := g.failures, !g.excluded
	cycles := g.cycles + 1
	if first {
		cycles = 1
	} else {
		failures++
	}
	d := max(p.Breaker.ResetTimeout, p.Breaker.CooldownByKind[r.kind])
	factor := 1.0
	for range cycles - 3 {
		factor = min(factor*2, p.Breaker.MaxBackoffMultiplier)
	}
	d = max(time.Duration(float64(d)*factor), r.hint)
	g = g.exclude(r, d, now)
	g.failures = failures
	return g.breaker(func(s *breakerState) {
		s.cycles, s.successes, s.waiting, s.suspected = cycles, 0, 0, false
		if first {
			s.early = 0
		}
		s.earlyAt = earlyProbe(p, s.early, now)
	}).heed(r, now)
}

// heed keeps early probes away before the time that the upstream itself named.
func (g gate) heed(r report, now instant) gate {
	if r.hint <= 0 {
		return g
	}
	return g.breaker(func(s *breakerState) { s.earlyAt = max(s.earlyAt, after(now, r.hint)) })
}

// earlyProbe says when the n-th early probe may pass, counted from now.
func earlyProbe(p *Policy, n int, now instant) instant {
	pauses := p.Breaker.EarlyProbes
	if len(pauses) == 0 {
		return never
	}
	return after(now, pauses[min(n, len(pauses)-1)])
}

// breakerSuccess is the first content of an attempt for model. closed tells whether it ended
// the exclusion; moved is the evidence that turned out to belong to other models (law V4).
func (g gate) breakerSuccess(model string, begun, seq uint64, p *Policy) (next gate, closed bool, moved []evidence) {
	g = g.withoutMoved(func(m movedModel) bool { return m.model == model })
	contrast := begun >= g.runAt && len(g.run) > 0
	if !g.excluded {
		if g.failures == 0 && g.waiting == 0 {
			return g, false, nil
		}
		if contrast {
			moved = others(g.run, model)
		}
		next = g.cleared(seq).withEnd(g.endedAt)
		if len(moved) == 0 {
			next = next.unrefuted(g)
		}
		return next, false, moved
	}
	if sole, one := g.soleModel(); one && sole != model && contrast {
		moved = slices.DeleteFunc(slices.Clone(g.run), func(e evidence) bool { return e.key.Model != sole })
	}
	switch {
	case g.suspected, moved != nil:
	case begun >= g.setAt: // whoever began while it was set came by as a probe
		if g.successes+1 < p.Breaker.SuccessThreshold {
			g.touched = seq
			return g.breaker(func(s *breakerState) { s.successes++ }), false, nil
		}
	default:
		return g, false, nil
	}
	next = g.cleared(seq)
	if len(moved) == 0 {
		next = next.unrefuted(g)
	}
	return next, true, moved
}

// withEnd keeps the date of an earlier end: emptying a count is not the end of an exclusion.
func (g gate) withEnd(endedAt uint64) gate {
	g.endedAt = endedAt
	return g
}

// others returns the failures of other models. Attempts that only waited are none yet.
func others(run []evidence, model string) []evidence {
	var out []evidence
	for _, e := range run {
		if e.key.Model != model && e.count > 0 {
			out = append(out, e)
		}
	}
	return out
}

// BreakerState is how a circuit breaker looks from outside.
type BreakerState string

// The states of a circuit breaker.
const (
	Closed   BreakerState = "CLOSED"
	Degraded BreakerState = "DEGRADED"
	Open     BreakerState = "OPEN"
	HalfOpen BreakerState = "HALF_OPEN"
)

func (g *gate) breakerView(p *Policy, now instant) BreakerState {
	switch {
	case g.excluded && now >= g.until:
		return HalfOpen
	case g.excluded:
		return Open
	case g.failures >= p.Breaker.DegradedThreshold:
		return Degraded
	}
	return Closed
}
