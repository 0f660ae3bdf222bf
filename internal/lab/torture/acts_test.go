package torture

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"omniroute/resilience"
)

// manner is how a permit is asked for.
type manner int

const (
	asOnlyTarget manner = iota
	asLastResort
	asOneOfMany
)

// grant asks for a bare permit; it is nil where the gates refuse.
func (n *node) grant(key resilience.Key, manner manner) (p *permit) {
	w := n.w
	w.attempts++
	number := w.attempts
	t := n.engine.Target(key)
	n.step(fmt.Sprintf("is asked for a bare permit %d for %v", number, key), func() {
		var real resilience.Permit
		var err error
		_, out := t.Check()
		switch manner {
		case asOnlyTarget:
			real, err = t.AcquireAlone()
		case asLastResort:
			real, err = t.AcquireLastResort()
		default:
			real, err = t.Acquire()
		}
		if err != nil {
			w.say("  and refuses: %v", err)
			return
		}
		p = &permit{n: n, key: key, asProbe: real.Probe() || real.Recheck(), recheck: real.Recheck(), alone: manner == asOnlyTarget, real: real, bare: true, attempt: int(number)}
		p.resort = manner == asLastResort && out
		p.asProbe = p.asProbe || p.resort
		n.granted(p)
		w.say("  and grants it (probe %v, recheck %v)", real.Probe(), real.Recheck())
	})
	return p
}

// take takes a permit without a request, and lets something become of it: also nothing at all.
func (n *node) take(key resilience.Key, r *rand.Rand) {
	w := n.w
	p := n.grant(key, manner(r.IntN(5)))
	if p == nil {
		return
	}
	x := w.fateOf(key, w.mono, uint64(p.attempt)<<8)
	settle := func(d time.Duration, how what, v resilience.Verdict) {
		n.later(d, func() { n.settle(p, how, v) })
	}
	switch r.IntN(8) {
	case 0:
		settle(x.first, neutral, resilience.Verdict{})
	case 1: // nobody settles it
	case 2:
		settle(x.first/2, waited, resilience.Verdict{})
		settle(x.first, neutral, resilience.Verdict{})
	case 3: // long after everything
		settle(time.Duration(r.IntN(200))*time.Second, failure, verdict(r))
	case 4:
		settle(time.Duration(r.IntN(100))*time.Second, success, resilience.Verdict{})
	default:
		switch {
		case x.hangs:
			settle(5*time.Second, failure, resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindTimeout})
		case x.verdict.Scope == resilience.ScopeNone:
			settle(x.first, hasContent, resilience.Verdict{})
			settle(x.first+x.rest, success, resilience.Verdict{})
		case x.cut:
			settle(x.first, hasContent, resilience.Verdict{})
			settle(x.first+x.rest, failure, x.verdict)
		default:
			settle(x.first, failure, x.verdict)
		}
	}
	if r.IntN(4) == 0 { // once more, otherwise
		how := []what{success, failure, neutral, hasContent, waited}[r.IntN(5)]
		settle(x.first+x.rest+ms(r, 3000), how, verdict(r))
	}
}

// settle tells of a bare permit. One that is settled already must not be heard.
func (n *node) settle(p *permit, how what, v resilience.Verdict) {
	words := []string{"hears the first content of", "hears the good end of", "hears the failure of", "hears the neutral end of", "hears that there is long nothing from"}[how]
	n.step(fmt.Sprintf("%s bare permit %d for %v %s", words, p.attempt, p.key, words_(how, v)), func() {
		n.heard(p, how, v)
		switch how {
		case hasContent:
			p.real.FirstContent()
		case success:
			p.real.Success()
		case failure:
			p.real.Failure(v)
		case neutral:
			p.real.Neutral()
		case waited:
			p.real.Waited()
		}
	})
}

func words_(how what, v resilience.Verdict) string {
	if how == failure {
		return words(v)
	}
	return ""
}

// report tells the engine without a permit, which counts as begun and ended now.
func (n *node) report(key resilience.Key, r *rand.Rand) {
	v := verdict(r)
	good := r.IntN(3) == 0
	n.step(fmt.Sprintf("is told of %v without a permit: good %v, %s", key, good, words(v)), func() {
		p := &permit{n: n, key: key, begun: n.w.ord + 1, at: n.w.mono, bare: true, asProbe: true}
		if good {
			n.heard(p, success, resilience.Verdict{})
			n.engine.RecordSuccess(key)
			return
		}
		n.heard(p, failure, v)
		n.engine.RecordFailure(key, v)
	})
}

func (n *node) mark(key resilience.Key, kind resilience.Kind) {
	n.step(fmt.Sprintf("is told by the operator that %v has %v", key, kind), func() {
		p := &permit{n: n, key: key, begun: n.w.ord + 1, at: n.w.mono, bare: true, asProbe: true}
		n.heard(p, failure, resilience.Verdict{Scope: resilience.ScopeModel, Kind: kind})
		n.engine.MarkAccountUnavailable(key, kind)
	})
}

func (n *node) exclude(key resilience.Key, r *rand.Rand) {
	d := []time.Duration{0, time.Second, 20 * time.Second, time.Hour}[r.IntN(4)]
	n.step(fmt.Sprintf("has %v excluded by the operator for %v", key, d), func() {
		if err := n.engine.Exclude(key, d, "maintenance"); err != nil {
			n.w.broke("S an operator's word is heard", "%v", err)
		}
		for _, o := range n.w.nodes {
			delete(o.operator, key) // the newest word counts everywhere
		}
		n.operator[key], n.w.excluded[key] = never, true
		if d > 0 {
			n.operator[key] = n.w.mono + d
		}
	})
}

func (n *node) include(r *rand.Rand) {
	keys := slices.SortedFunc(maps.Keys(n.operator), byKey)
	if len(keys) == 0 {
		return
	}
	key := keys[r.IntN(len(keys))]
	n.step(fmt.Sprintf("has %v included again by the operator", key), func() {
		n.engine.Include(key)
		delete(n.operator, key)
	})
}

func (n *node) reset(key resilience.Key, operators bool) {
	n.step(fmt.Sprintf("is reset for %v (operator's exclusions too: %v)", key, operators), func() {
		n.now.resets = append(n.now.resets, key)
		n.engine.Reset(key, operators)
		for _, o := range n.w.nodes {
			for k := range o.operator {
				if operators && key.Contains(k) {
					delete(o.operator, k)
				}
			}
		}
	})
}
