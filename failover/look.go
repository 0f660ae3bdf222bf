package failover

import (
	"slices"
	"time"

	"omniroute/resilience"
)

// busyRetry is what one is told who finds every place on a connection taken: nobody knows when
// the first of them will be free.
const busyRetry = time.Second

// Look says how the target stands towards a request: why it would be passed over now, and whether
// asking it would be as a probe. It changes nothing. The gates are asked first, then what the
// model can do, what the upstream has left, and whether there is a place on the connection.
func (t *Target) Look(a *Ask, alone bool, now time.Time) (x resilience.Exclusion, out, asProbe bool) {
	if x, out, asProbe = t.Standing(alone); out {
		return x, true, false
	}
	if x, out = t.lacks(a, now); !out {
		x, out = t.limited(a, now)
	}
	return x, out, asProbe
}

// limited says whether the target has too little left, or no place free.
func (t *Target) limited(a *Ask, now time.Time) (resilience.Exclusion, bool) {
	if h, held := t.hold(a, now); held {
		return t.holdExclusion(a, h, now), true
	}
	if t.Places.busy() {
		return busyExclusion(), true
	}
	return resilience.Exclusion{}, false
}

// roomy reports whether a target that no gate excludes has what the request needs, as Look sees
// it, and notes one that is passed over because it has not.
func (r *Request) roomy(i int) bool {
	t := &r.plan.Targets[i]
	if t.Model == nil && t.Meter == nil && (t.Places == nil || t.Places == r.granted) {
		return true
	}
	_, held := t.hold(&r.ask, r.now)
	if r.unsuited(i) || held || t.Places != r.granted && t.Places.busy() {
		r.passOver(i)
		return false
	}
	return true
}

// short says what a target that no gate excludes has too little of for the request.
func (r *Request) short(i int) (resilience.Exclusion, bool) {
	t := &r.plan.Targets[i]
	if r.unsuited(i) {
		l := r.state[i].lacks
		return lackExclusion(l.what, l.kind), true
	}
	if h, held := t.hold(&r.ask, r.now); held {
		return t.holdExclusion(&r.ask, h, r.now), true
	}
	if t.Places != r.granted && t.Places.busy() {
		return busyExclusion(), true
	}
	return resilience.Exclusion{}, false
}

func (t *Target) window(now time.Time) int64 {
	if t.Model != nil {
		if w := t.Model.Window(now); w > 0 {
			return w
		}
	}
	return t.Window
}

func (t *Target) lacks(a *Ask, now time.Time) (resilience.Exclusion, bool) {
	if t.Model == nil {
		return resilience.Exclusion{}, false
	}
	what, kind := t.Model.Lacks(a, now)
	return lackExclusion(what, kind), what != ""
}

func lackExclusion(what string, kind resilience.Kind) resilience.Exclusion {
	return resilience.Exclusion{Layer: resilience.LayerFit, Kind: kind, Reason: what}
}

func (t *Target) hold(a *Ask, now time.Time) (Hold, bool) {
	if t.Meter == nil {
		return Hold{}, false
	}
	return t.Meter.Hold(a, now)
}

func (t *Target) holdExclusion(a *Ask, h Hold, now time.Time) resilience.Exclusion {
	return resilience.Exclusion{Layer: resilience.LayerHeadroom, Kind: resilience.KindRateLimit, Until: h.Until,
		RetryAfter: max(h.Until.Sub(now), time.Millisecond), Reason: t.Meter.Reason(a, now)}
}

func busyExclusion() resilience.Exclusion {
	return resilience.Exclusion{Layer: resilience.LayerConcurrency, RetryAfter: busyRetry, Reason: "every place on the connection is taken"}
}

// unsuited reports whether the target's model could not take the request, by what is known of it.
// Where that goes for all of them, what is known may be wrong: then it does not count.
func (r *Request) unsuited(i int) bool {
	s, t := &r.state[i], &r.plan.Targets[i]
	if t.Model == nil {
		return false
	}
	if !s.judged {
		s.judged = true
		if what, kind := t.Model.Lacks(&r.ask, r.now); what != "" {
			s.lacks = &lack{what, kind}
		}
	}
	return s.lacks != nil
}

// usable reports whether the request can make use of a target at all.
func (r *Request) usable(i int) bool { return !r.state[i].unfit && !r.unsuited(i) }

// stretch lets the request go to the one target that comes nearest to what it needs, when no
// target has it by what is known, and reports whether there is one.
func (r *Request) stretch() bool {
	if r.stretched {
		return false
	}
	best := -1
	for i := range r.state {
		switch {
		case r.state[i].unfit:
		case !r.unsuited(i):
			return false
		case best < 0 || r.nearer(i, best):
			best = i
		}
	}
	if best < 0 {
		return false
	}
	for i := range r.state {
		if i == best || sameModel(&r.plan.Targets[i], &r.plan.Targets[best]) {
			r.state[i].lacks = nil
		}
	}
	r.stretched = true
	return true
}

func sameModel(a, b *Target) bool {
	k, o := a.Key(), b.Key()
	return k.Provider == o.Provider && k.Model == o.Model
}

// nearer reports whether a target is likelier than another to take what both lack something for.
func (r *Request) nearer(i, k int) bool {
	length := r.state[i].lacks.kind == resilience.KindContextLength
	if length != (r.state[k].lacks.kind == resilience.KindContextLength) {
		return length // an estimate may be wrong, what a model cannot do at all is known better
	}
	return length && r.plan.Targets[i].window(r.now) > r.plan.Targets[k].window(r.now)
}

// held reports whether the upstream has too little left for the request.
func (r *Request) held(i int, now time.Time) (Hold, bool) { return r.plan.Targets[i].hold(&r.ask, now) }

// passOver notes that a target was not asked for a limit of its own.
func (r *Request) passOver(i int) {
	if !slices.Contains(r.passed, i) {
		r.passed = append(r.passed, i)
	}
}

// Passed returns targets that the request has found out and not asked later: those that a gate
// excluded when it came, at most 16, with the dates of then, and those that it has passed over for
// limits of their own (what the model cannot do, what the upstream has left, or no place on the
// connection), with the dates of now.
func (r *Request) Passed(now time.Time) []Skip {
	var out []Skip
	for _, s := range r.met {
		if !r.asked(s.Key) {
			out = append(out, s)
		}
	}
	for _, i := range r.passed {
		t := &r.plan.Targets[i]
		if r.asked(t.Key()) {
			continue
		}
		x := busyExclusion()
		if l := r.state[i].lacks; l != nil {
			x = lackExclusion(l.what, l.kind)
		} else if h, held := r.held(i, now); held {
			x = t.holdExclusion(&r.ask, h, now)
		}
		out = append(out, Skip{Key: t.Key(), Exclusion: x})
	}
	return out
}
