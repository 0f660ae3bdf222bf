package resilience

import (
	"math"
	"slices"
	"time"
)

// Instant is a point on the engine's monotonic clock, counted from the engine's start.
// Instants of state loaded from a store may be negative.
type instant = time.Duration

const (
	never = instant(math.MaxInt64)
	// longAgo stands for "at some time before this process".
	longAgo = instant(math.MinInt64 / 4)
)

// gate is the state machine that every layer shares, as a plain value: transitions are pure
// functions of (gate, event, policy, now) that return the next gate. What trips it, and for how
// long, is in breaker.go, cooldown.go and lockout.go.
//
// A gate is clean, or counting (failures, no exclusion), or excluded. An exclusion is live
// before until and due after it: then single probes pass until one of them decides.
type gate struct {
	excluded    bool
	quarantined bool // without a deadline: a person must act
	kind        Kind
	rule        string
	base        time.Duration // of the operator rule that set it, 0 for none

	failures int // failures in a row that count towards a trip
	broken   int // those of them that broke off an answer after its first content
	level    int // the level that the next failure will use

	since, until instant
	lastFailure  instant
	rechecked    instant // when the last recheck was let through

	// setAt and endedAt date the exclusion on the engine's sequence, beside which attempts are
	// dated too: an attempt with begun >= setAt began after the exclusion was set, one with
	// begun < endedAt before the last one ended. touched dates the last change.
	setAt, endedAt, touched uint64

	leases []lease // probes in flight; copied on write

	*breakerState
	*lockoutState
}

// lease is a probe's hold on a slot.
type lease struct {
	id    uint64
	until instant
	early bool // an OPEN breaker's probe: its failure does not move the deadline
}

// report is one failure as a gate hears it: the verdict with its hint already capped.
type report struct {
	key        Key // of the attempt
	kind       Kind
	rule       string
	hint       time.Duration // honoured part of the upstream's hint, 0 for none
	certain    bool
	quarantine bool
	base       time.Duration // operator rule's own base, 0 for none
	constant   bool
	begun      uint64  // sequence number at the attempt's start
	lease      uint64  // the attempt's lease, 0 for none
	seq        uint64  // sequence number of this report
	sent       int64   // attempts that began since the breaker's run of failures did
	after      bool    // after the attempt's first content
	random     float64 // for jitter, in [0, 1)
}

// ownEnd reports whether it is a probe whose first content ended the exclusion and whose answer
// broke off later: that is news, although the attempt began before the end.
func (r report) ownEnd() bool { return r.after && r.lease != 0 }

// unrefuted is a cleared gate that keeps what a first content cannot refute: answers that break
// off later begin well too. Only one that ends well does.
func (g gate) unrefuted(old gate) gate {
	if old.broken > 0 {
		g.failures, g.broken, g.level = old.broken, old.broken, old.level
		g.kind, g.rule, g.lastFailure = old.kind, old.rule, old.lastFailure
	}
	return g
}

// mended is the gate after an answer has ended well.
func (g gate) mended(seq uint64) gate {
	if g.broken == 0 {
		return g
	}
	switch {
	case g.excluded: // its own rules end it
	case g.failures <= g.broken:
		return g.cleared(seq).withEnd(g.endedAt)
	default:
		g.failures -= g.broken
	}
	g.broken, g.touched = 0, seq
	return g
}

// clean reports whether nothing is known that a success or a failure would change.
func (g *gate) clean() bool {
	return !g.worthKeeping() && len(g.leases) == 0 && (g.breakerState == nil || g.waiting == 0)
}

// worthKeeping reports whether the gate knows something that outlives the attempts in flight, so
// that a store should have it.
func (g *gate) worthKeeping() bool {
	return g.excluded || g.failures > 0 || g.level > 0 ||
		g.breakerState != nil && len(g.moved) > 0 || g.lockoutState != nil && len(g.recent) > 0
}

// same reports whether a transition changed nothing but leases.
func (g *gate) same(o *gate) bool {
	return g.excluded == o.excluded && g.quarantined == o.quarantined && g.kind == o.kind && g.rule == o.rule &&
		g.failures == o.failures && g.broken == o.broken && g.level == o.level && g.since == o.since && g.until == o.until &&
		g.lastFailure == o.lastFailure && g.rechecked == o.rechecked && g.setAt == o.setAt &&
		g.endedAt == o.endedAt && g.breakerState == o.breakerState && g.lockoutState == o.lockoutState
}

// transient reports whether the exclusion's cause passes by itself.
func (g *gate) transient() bool {
	return !g.quarantined && (g.kind.Transient() || g.kind == KindUnknown)
}

// ofCredential reports whether the exclusion tells of the secret rather than of its use, so that
// another secret ends it.
func (g *gate) ofCredential() bool { return g.excluded && (g.quarantined || g.kind == KindAuth) }

// live reports whether the exclusion still runs, as opposed to being due.
func (g *gate) live(now instant) bool { return g.excluded && now < g.until }

// late reports whether a failure tells of the time before the present exclusion ended: it may
// extend a deadline but raises nothing.
func (g *gate) late(r report, now instant) bool {
	if r.begun < g.endedAt && !r.ownEnd() {
		return true
	}
	return g.excluded && (!g.holds(r.lease, now) || g.live(now)) // another report may have prolonged it under the probe
}

// holds reports whether the lease is one of the gate's and has not run out.
func (g *gate) holds(id uint64, now instant) bool {
	return slices.ContainsFunc(g.leases, func(l lease) bool { return l.id == id && now < l.until })
}

// knows reports whether the lease is one of the gate's, run out or not.
func (g *gate) knows(id uint64) bool {
	return slices.ContainsFunc(g.leases, func(l lease) bool { return l.id == id })
}

// lend adds a lease; leases that ran out make room first.
func (g gate) lend(l lease, now instant) gate {
	held := g.leases
	g.leases = make([]lease, 0, len(held)+1)
	for _, x := range held {
		if now < x.until {
			g.leases = append(g.leases, x)
		}
	}
	g.leases = append(g.leases, l)
	return g
}

// release ends a lease; a lease that the gate does not know is no harm.
func (g gate) release(id uint64) gate {
	if g.knows(id) {
		g.leases = slices.DeleteFunc(slices.Clone(g.leases), func(l lease) bool { return l.id == id })
	}
	return g
}

// running counts the leases that have not run out, and says when the first of them will.
func (g *gate) running(now instant) (n int, first instant) {
	first = never
	for _, l := range g.leases {
		if now < l.until {
			n++
			first = min(first, l.until)
		}
	}
	return n, first
}

// exclude starts a new exclusion, or the next one of the same trouble, for d.
func (g gate) exclude(r report, d time.Duration, now instant) gate {
	g.excluded = true
	g.quarantined = r.quarantine
	g.kind, g.rule, g.base = r.kind, r.rule, r.base
	g.since, g.rechecked = now, now
	g.until = after(now, d)
	if r.quarantine {
		g.until = never
	}
	g.setAt, g.touched = r.seq, r.seq
	g.lastFailure = now
	g.leases = nil
	return g
}

// worsen is what a late failure may do: a later deadline by its own hint, a graver cause, a
// quarantine. It raises nothing.
func (g gate) worsen(r report, now instant) gate {
	if !g.excluded {
		if r.hint > 0 || r.quarantine {
			// The exclusion has ended since, but the upstream's own word reaches beyond its end.
			return g.exclude(r, r.hint, now)
		}
		return g
	}
	if r.kind.gravity() > g.kind.gravity() && !g.quarantined {
		g.kind, g.rule, g.touched = r.kind, r.rule, r.seq
	}
	if r.quarantine && !g.quarantined {
		g.quarantined, g.until, g.kind, g.rule, g.touched = true, never, r.kind, r.rule, r.seq
		g.setAt = r.seq // an attempt that began before this evidence cannot refute it
	}
	if u := after(now, r.hint); r.hint > 0 && u > g.until {
		g.until, g.touched = u, r.seq
	}
	return g
}

// cleared is the gate after evidence, an operator or time ended everything it knew.
func (g gate) cleared(seq uint64) gate {
	next := gate{endedAt: seq, touched: seq}
	if g.breakerState != nil {
		next.breakerState = &breakerState{moved: g.moved}
	}
	if g.lockoutState != nil {
		next.lockoutState = &lockoutState{}
	}
	return next
}

// forgotten reports whether the exclusion ended so long ago, with no failure since, that its
// level no longer counts.
func (g *gate) forgotten(p *Policy, now instant) bool {
	if n, _ := g.running(now); n > 0 {
		return false
	}
	end := g.lastFailure
	if g.excluded {
		if g.until == never {
			return false
		}
		end = max(end, g.until)
	}
	return now-end >= p.Cooldown.ForgetAfter
}

// aged is the gate without what is forgotten. An attempt that began before an exclusion was
// forgotten began before its end.
func (g gate) aged(p *Policy, now instant, seq uint64) gate {
	switch {
	case g.live(now) || !g.forgotten(p, now):
		return g
	case g.excluded:
		return g.cleared(seq)
	}
	return g.cleared(g.endedAt)
}

// answer is what a gate says to one who asks for admission.
type answer struct {
	verdict answerKind
	early   bool    // the probe passes while the breaker stays OPEN
	until   instant // refused: the exclusion's deadline (never: none)
	next    instant // refused: when this gate may let someone through by itself
	held    bool    // refused only because a probe is in flight
}

type answerKind uint8

const (
	free answerKind = iota
	probe
	recheck // of a long exclusion that stays
	refused
)

// ask says whether a connection or model gate admits. alone says that the request has no other
// target, which makes rechecks more frequent.
func (g *gate) ask(p *Policy, alone bool, now instant) answer {
	switch {
	case !g.excluded:
		return answer{}
	case now < g.until:
		if g.recheckDue(p, alone, now) {
			return answer{verdict: recheck, until: g.until}
		}
		return answer{verdict: refused, until: g.until, next: g.until}
	case g.forgotten(p, now):
		return answer{}
	}
	if n, first := g.running(now); n > 0 {
		return answer{verdict: refused, until: first, next: first, held: true}
	}
	return answer{verdict: probe}
}

// recheckDue reports whether a long exclusion lets one request through to see whether it still
// holds.
func (g *gate) recheckDue(p *Policy, alone bool, now instant) bool {
	every := p.Recheck.After
	if every < 0 || g.until != never && g.until-g.since <= every {
		return false
	}
	if alone {
		every = min(every, p.Recheck.Alone)
	}
	if now-max(g.since, g.rechecked) < every {
		return false
	}
	n, _ := g.running(now)
	return n == 0
}

// admit takes the lease that ask offered.
func (g gate) admit(a answer, id uint64, p *Policy, now instant) gate {
	switch a.verdict {
	case probe:
		return g.lend(lease{id: id, until: after(now, p.Breaker.ProbeLease), early: a.early}, now)
	case recheck:
		g.rechecked = now
		return g.lend(lease{id: id, until: after(now, p.Breaker.ProbeLease)}, now)
	}
	return g
}

// after adds without overflow.
func after(now instant, d time.Duration) instant {
	if d > never-max(now, 0) {
		return never - 1
	}
	return now + d
}
