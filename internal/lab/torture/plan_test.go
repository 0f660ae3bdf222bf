package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"omniroute/resilience"
)

// plot is all that a seed stands for. Every part of it can be left out: what is left still means the
// same.
type plot struct {
	seed   uint64
	setup  *setup
	nodes  int // with a shared store where there are several
	steps  []step
	faults []fault

	extra func(*moment) string // one more law, for tests of the torture itself
}

// step is one thing that happens to the world. Which of the things that are there it happens to is
// drawn from its own seed.
type step struct {
	at   time.Duration
	what action
	seed uint64
}

type action uint8

const (
	request action = iota
	bare           // a permit taken and settled without a request
	told           // a report without a permit
	read
	exclude
	include
	reset
	mark
	reload
	crash
	leap // of the wall clock
	storeFails
	storeMends
	part // a node loses the others
	join
	stubborn // from here on dramas: each is many steps
	belated
	flicker
	split
	discord
	estranged
	actions
)

// fault is how upstreams answer for some time.
type fault struct {
	from, to time.Duration
	key      resilience.Key // empty: any
	share    float64
	seed     uint64
}

func (f fault) meets(k resilience.Key, now time.Duration, luck float64) bool {
	return now >= f.from && now < f.to && f.key.Contains(k) && luck < f.share
}

// newPlot draws a world.
func newPlot(seed uint64) *plot {
	r := rand.New(rand.NewPCG(seed, 0))
	p := &plot{seed: seed, setup: setupOf(seed / 100), nodes: 1}
	if seed%5 == 0 {
		p.nodes = 2 + r.IntN(2)
	}
	weights := [actions]int{request: 40, bare: 25, told: 4, read: 5, exclude: 2, include: 2, reset: 2, mark: 1, reload: 1, crash: 2, leap: 2, storeFails: 1, storeMends: 2, part: 0, join: 0}
	if p.nodes > 1 {
		weights[part], weights[join], weights[storeFails], weights[storeMends] = 4, 6, 0, 0
		weights[told], weights[mark] = 12, 3 // what one node is told and the others are not
	}
	total := 0
	for _, w := range weights {
		total += w
	}
	pace := []time.Duration{20 * time.Millisecond, 200 * time.Millisecond, time.Second}[r.IntN(3)]
	var now time.Duration
	for range 10 + r.IntN(45) {
		now += time.Duration(r.ExpFloat64() * float64(pace)).Truncate(time.Millisecond)
		switch r.IntN(30) {
		case 0:
			now += time.Duration(r.IntN(40)) * time.Second
		case 1:
			now += time.Duration(r.IntN(20)) * time.Minute / 2
		}
		n := r.IntN(total)
		a := action(0)
		for n -= weights[0]; n >= 0; n -= weights[a] {
			a++
		}
		p.steps = append(p.steps, step{now, a, r.Uint64()})
	}
	keys := p.setup.variants[0].keys
	for range r.IntN(6) {
		f := fault{from: time.Duration(r.Float64() * float64(now)).Truncate(time.Millisecond), share: []float64{1, 1, 0.5}[r.IntN(3)], seed: r.Uint64()}
		f.to = f.from + time.Duration(r.ExpFloat64()*float64(now)/3).Truncate(time.Millisecond)
		f.key = keys[r.IntN(len(keys))]
		switch r.IntN(4) {
		case 0:
			f.key.Connection, f.key.Model = "", ""
		case 1:
			f.key.Model = ""
		case 2:
			f.key.Connection = ""
		}
		p.faults = append(p.faults, f)
	}
	if r.IntN(3) == 0 {
		dramas := []action{stubborn, belated, flicker}
		if p.nodes > 1 {
			dramas = []action{split, discord, estranged}
		}
		at := time.Duration(r.Float64() * float64(now+5*time.Second)).Truncate(time.Millisecond)
		p.steps = append(p.steps, step{at, dramas[r.IntN(3)], r.Uint64()})
	}
	return p
}

// fate is what becomes of an attempt.
type fate struct {
	hangs   bool
	verdict resilience.Verdict // of a failure; the zero Verdict is a good end
	cut     bool               // the failure comes after content
	first   time.Duration      // to the failure or the first content
	rest    time.Duration      // from there to the end
}

func (f fate) String() string {
	switch {
	case f.hangs:
		return "hangs"
	case f.verdict.Scope == resilience.ScopeNone:
		return fmt.Sprintf("answers after %v and %v", f.first, f.rest)
	case f.cut:
		return fmt.Sprintf("begins to answer after %v and breaks off %v later: %v", f.first, f.rest, words(f.verdict))
	}
	return fmt.Sprintf("fails after %v: %v", f.first, words(f.verdict))
}

func words(v resilience.Verdict) string {
	s := v.String()
	if !v.Until.IsZero() {
		s += fmt.Sprintf(" until %v", v.Until.Sub(began))
	}
	for _, x := range []struct {
		on   bool
		word string
	}{{v.Prose, "prose"}, {v.Certain, "certain"}, {v.Quarantine, "quarantine"}, {v.Dial, "dial"}, {v.Constant, "constant"}, {v.Cooldown > 0, "base " + v.Cooldown.String()}} {
		if x.on {
			s += ", " + x.word
		}
	}
	return strings.TrimSpace(s)
}

func ms(r *rand.Rand, most int) time.Duration {
	return time.Duration(r.IntN(most)+1) * time.Millisecond
}

// fateOf draws what becomes of an attempt. Most of a fault's answers are alike.
func (p *plot) fateOf(k resilience.Key, now time.Duration, seed uint64) fate {
	r := rand.New(rand.NewPCG(p.seed, seed))
	luck := r.Float64()
	f := fate{first: ms(r, 800), rest: ms(r, 1500)}
	if r.IntN(25) == 0 {
		f.first = ms(r, 20_000)
	}
	bad := r.IntN(12) == 0
	for _, x := range p.faults {
		if x.meets(k, now, luck) {
			bad = true
			if r.IntN(8) > 0 {
				r = rand.New(rand.NewPCG(x.seed, 0))
			}
			break
		}
	}
	if !bad {
		return f
	}
	switch r.IntN(8) {
	case 0:
		f.hangs = true
	case 1:
		f.cut = true
		fallthrough
	default:
		f.verdict = verdict(r)
	}
	f.first = min(f.first, 300*time.Millisecond)
	return f
}

var transients = []resilience.Kind{resilience.KindServerError, resilience.KindTimeout, resilience.KindNetwork, resilience.KindMalformedResponse, resilience.KindEmptyResponse, resilience.KindModelOverloaded}

// verdict draws one of all that a classifier or an operator's rule could say.
func verdict(r *rand.Rand) resilience.Verdict {
	kinds := resilience.Kinds()
	v := resilience.Verdict{Kind: kinds[r.IntN(len(kinds))], RetrySame: true, RetryElsewhere: true}
	switch r.IntN(10) {
	case 0:
		v.Scope = resilience.ScopeRequest + resilience.Scope(r.IntN(6)) // any kind with any scope
	case 1:
		v.Scope, v.Kind = resilience.ScopeRequest, []resilience.Kind{resilience.KindContextLength, resilience.KindContentPolicy}[r.IntN(2)]
	case 2:
		v.Scope, v.Kind = resilience.ScopeModel, []resilience.Kind{resilience.KindModelNotFound, resilience.KindModelOverloaded, resilience.KindRateLimit, resilience.KindPermission}[r.IntN(4)]
		v.Certain = v.Kind == resilience.KindModelNotFound
	case 3, 4:
		v.Scope, v.Kind = resilience.ScopeConnection, []resilience.Kind{resilience.KindRateLimit, resilience.KindQuotaExhausted, resilience.KindAuth, resilience.KindBilling}[r.IntN(4)]
		v.Quarantine = r.IntN(4) == 0
	case 5:
		v.Scope, v.Kind, v.Dial = resilience.ScopeProvider, resilience.KindNetwork, true
	default:
		v.Scope, v.Kind = resilience.ScopeProvider, transients[r.IntN(len(transients))]
	}
	switch r.IntN(8) {
	case 0, 1:
		v.RetryAfter = ms(r, 4000)
	case 2:
		v.RetryAfter = ms(r, 120_000)
	case 3:
		v.RetryAfter = time.Duration(r.IntN(2000)) * time.Hour
		v.Prose = r.IntN(2) == 0
	}
	v.RetrySame = v.Scope != resilience.ScopeRequest || v.Prose
	if r.IntN(15) == 0 {
		v.Cooldown, v.Constant = ms(r, 5000), r.IntN(2) == 0
	}
	return v
}
