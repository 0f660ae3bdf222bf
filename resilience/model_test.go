package resilience

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// machine drives an engine and the reference with the same steps.
type machine struct {
	*rig
	ref      *reference
	pairs    []*pair
	verdicts *rapid.Generator[Verdict]
	keys     []Key
	store    *mapStore
	opts     Options
}

// pair is one attempt in both worlds.
type pair struct {
	permit Permit
	ref    *refAttempt
}

var transientKinds = []Kind{KindServerError, KindTimeout, KindNetwork, KindMalformedResponse, KindEmptyResponse, KindModelOverloaded}

func verdictsOf(scopes []Scope, kinds []Kind) *rapid.Generator[Verdict] {
	return rapid.Custom(func(t *rapid.T) Verdict {
		v := Verdict{Scope: rapid.SampledFrom(scopes).Draw(t, "scope"), Kind: rapid.SampledFrom(kinds).Draw(t, "kind")}
		switch rapid.IntRange(0, 9).Draw(t, "hint") {
		case 0, 1:
			v.RetryAfter = time.Duration(rapid.IntRange(1, 100_000).Draw(t, "ms")) * ms
		case 2:
			v.RetryAfter = rapid.SampledFrom([]time.Duration{500 * ms, 11 * time.Minute, 100 * time.Hour, 2000 * time.Hour}).Draw(t, "long")
			v.Prose = rapid.Bool().Draw(t, "prose")
		}
		v.Certain = rapid.IntRange(0, 9).Draw(t, "certain") == 0
		v.Quarantine = rapid.IntRange(0, 19).Draw(t, "quarantine") == 0
		return v
	})
}

// policies that a machine runs under: the defaults, and ones that reach every branch.
var modelPolicies = []Policy{
	{},
	{Breaker: BreakerPolicy{FailureThreshold: 2, ResetTimeout: 5 * sec, MaxBackoffMultiplier: 4, HalfOpenRequests: 3, SuccessThreshold: 2,
		ProbeLease: 3 * sec, CooldownByKind: map[Kind]time.Duration{KindTimeout: 8 * sec}},
		Cooldown: CooldownPolicy{TransientAfter: 1, ForgetAfter: 20 * sec},
		Lockout:  LockoutPolicy{MaxAttempts: 2, AttemptWindow: 4 * sec, LockoutDuration: 3 * sec, MaxLockout: 10 * sec},
		Recheck:  RecheckPolicy{After: 10 * sec, Alone: 2 * sec}},
	{Breaker: BreakerPolicy{FailureThreshold: 3, EarlyProbes: []time.Duration{}, HalfOpenRequests: 2},
		Lockout: LockoutPolicy{MaxAttempts: 1}},
}

func newMachine(t *rapid.T, tb testing.TB, verdicts *rapid.Generator[Verdict], keys []Key) *machine {
	p := rapid.SampledFrom(modelPolicies).Draw(t, "policy")
	m := &machine{ref: newReference(p), verdicts: verdicts, keys: keys, store: newStore()}
	m.opts = Options{Config: Config{Policy: p}}
	m.opts.Store = m.store
	m.rig = newRig(tb, m.opts)
	return m
}

func (m *machine) offset() time.Duration { return m.clock.Now().Sub(epoch) }

// view is the engine's answer in the reference's words.
func (m *machine) view(k Key, alone bool) refView {
	x, out, asProbe := m.Target(k).Standing(alone)
	v := refView{Out: out, Probe: asProbe, Held: x.Held, Layer: x.Layer, Kind: x.Kind, RetryAfter: x.RetryAfter}
	if out {
		v.Left = -1
		if !x.Until.IsZero() {
			v.Left = x.Until.Sub(m.clock.Now())
		}
	}
	return v
}

// check compares all that can be seen and holds the invariants.
func (m *machine) check(t *rapid.T) {
	m.ref.now = m.offset()
	for _, k := range m.keys {
		for _, alone := range []bool{false, true} {
			want, _ := m.ref.look(k, alone)
			want.Probe, want.Recheck = want.Probe || want.Recheck, false
			if d := cmp.Diff(want, m.view(k, alone)); d != "" {
				t.Fatalf("at %v %s (alone %v) (-reference +engine):\n%s", m.offset(), k, alone, d)
			}
		}
	}
	s := m.Status()
	for _, p := range s.Providers {
		g := get(m.ref.breakers, p.ID)
		state := Closed
		switch {
		case g.live(m.ref.now):
			state = Open
		case g.out:
			state = HalfOpen
		case g.fails >= m.ref.p.Breaker.DegradedThreshold:
			state = Degraded
		}
		if p.Breaker.State != state || p.Breaker.Failures != g.fails {
			t.Fatalf("at %v breaker of %s is %v with %d failures, want %v with %d", m.offset(), p.ID, p.Breaker.State, p.Breaker.Failures, state, g.fails)
		}
	}
	live := 0
	for k, g := range m.ref.locks {
		if !g.live(m.ref.now) {
			continue
		}
		live++
		i := slices.IndexFunc(s.Lockouts, func(l LockoutStatus) bool {
			return l.Provider == k.Provider && l.Connection == k.Connection && l.Model == k.Model
		})
		if i < 0 || s.Lockouts[i].Failures != g.fails || s.Lockouts[i].Locked != g.locked || s.Lockouts[i].Kind != g.kind {
			t.Fatalf("at %v the lockout of %s is %+v, want %+v", m.offset(), k, s.Lockouts, g)
		}
	}
	if live != len(s.Lockouts) {
		t.Fatalf("%d lockouts are shown, want %d", len(s.Lockouts), live)
	}
	m.invariants(t)
}

func (m *machine) invariants(t *rapid.T) {
	e := m.Engine
	now := e.now()
	gate := func(what string, g *gate, slots int) {
		n, _ := g.running(now)
		if n > slots {
			t.Fatalf("%s has %d live leases, at most %d are allowed", what, n, slots)
		}
		if g.excluded && !g.quarantined && g.until-now > m.ref.p.Hints.MaxQuota {
			t.Fatalf("%s is out for %v", what, g.until-now)
		}
		if g.level > 15 || g.level < 0 {
			t.Fatalf("%s has level %d", what, g.level)
		}
	}
	for k, d := range e.domains {
		gate("breaker "+k.String(), &d.breaker, m.ref.p.Breaker.HalfOpenRequests)
	}
	for k, c := range e.conns {
		gate("connection "+k.String(), &c.cool, 1)
	}
	for k, t := range e.targets {
		gate("model "+k.String(), &t.cool, 1)
		gate("lockout "+k.String(), &t.lock, 1)
	}
}

func keysOf(names ...string) []Key {
	var out []Key
	for _, n := range names {
		out = append(out, target(n))
	}
	return out
}

func runMachine(t *testing.T, verdicts *rapid.Generator[Verdict], keys ...string) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, t, verdicts, keysOf(keys...))
		if err := m.sync(context.Background()); err != nil { // nothing is stored yet
			rt.Fatal(err)
		}
		rt.Repeat(m.restarted(m.actions()))
	})
}

func TestModelBreaker(t *testing.T) {
	runMachine(t, verdictsOf([]Scope{ScopeProvider}, append(slices.Clone(transientKinds), KindPermission, KindUnknown)),
		"p/a/m", "p/b/m", "p/c/n", "p/d/m", "p/e/n")
}

// Two models on shared connections, of which one fails and the other does not.
func TestModelContrast(t *testing.T) {
	runMachine(t, verdictsOf([]Scope{ScopeProvider, ScopeProvider, ScopeNone}, []Kind{KindServerError, KindTimeout}), "p/a/m", "p/a/n", "p/b/m")
}

func TestModelCooldown(t *testing.T) {
	runMachine(t, verdictsOf([]Scope{ScopeConnection, ScopeConnection, ScopeRequest},
		[]Kind{KindRateLimit, KindQuotaExhausted, KindBilling, KindAuth, KindPermission, KindServerError, KindUnknown}), "p/a/m", "p/a/n", "p/b/m")
}

func TestModelLockout(t *testing.T) {
	runMachine(t, verdictsOf([]Scope{ScopeModel, ScopeModel, ScopeModel, ScopeLocal},
		[]Kind{KindRateLimit, KindModelNotFound, KindPermission, KindModelOverloaded, KindServerError, KindEmptyResponse}), "p/a/m", "p/a/n", "p/b/m")
}

func TestModelAllLayers(t *testing.T) {
	t.Parallel()
	scopes := []Scope{ScopeNone, ScopeRequest, ScopeModel, ScopeConnection, ScopeProvider, ScopeProvider, ScopeProvider, ScopeClient, ScopeLocal}
	verdicts := verdictsOf(scopes, append(Kinds(), transientKinds...))
	rapid.Check(t, func(rt *rapid.T) {
		m := newMachine(rt, t, verdicts, keysOf("p/a/m", "p/a/n", "p/b/m", "p/b/n", "q/a/m"))
		if err := m.sync(context.Background()); err != nil { // nothing is stored yet
			rt.Fatal(err)
		}
		rt.Repeat(m.restarted(m.operated(m.actions())))
	})
}

// Two engines with the same past, of which one is asked about everything after every step, go on
// alike.
func TestModelReadsChangeNothing(t *testing.T) {
	t.Parallel()
	verdicts := verdictsOf([]Scope{ScopeModel, ScopeConnection, ScopeProvider}, Kinds())
	keys := keysOf("p/a/m", "p/a/n", "p/b/m")
	rapid.Check(t, func(rt *rapid.T) {
		asked := newMachine(rt, t, verdicts, keys)
		alone := &machine{rig: newRig(t, asked.opts)}
		for _, k := range keys {
			asked.Target(k)
			alone.Target(k)
		}
		var ps, qs []Permit
		for range rapid.IntRange(1, 60).Draw(rt, "steps") {
			switch rapid.IntRange(0, 3).Draw(rt, "step") {
			case 0:
				k := rapid.SampledFrom(keys).Draw(rt, "key")
				p, err := asked.Target(k).Acquire()
				q, err2 := alone.Target(k).Acquire()
				if fmt.Sprint(err) != fmt.Sprint(err2) {
					rt.Fatalf("%s: %v and %v", k, err, err2)
				}
				if err == nil {
					ps, qs = append(ps, p), append(qs, q)
				}
			case 1:
				if len(ps) > 0 {
					v := verdicts.Draw(rt, "verdict")
					ps[0].Failure(v)
					qs[0].Failure(v)
					ps, qs = ps[1:], qs[1:]
				}
			case 2:
				if len(ps) > 0 {
					i := len(ps) - 1
					ps[i].Success()
					qs[i].Success()
					ps, qs = ps[:i], qs[:i]
				}
			case 3:
				d := rapid.SampledFrom([]time.Duration{sec, 2 * sec, 30 * sec, 6 * time.Minute}).Draw(rt, "pass")
				asked.at(asked.offset() + d)
				alone.at(alone.offset() + d)
			}
			asked.Status()
			asked.AllCircuitBreakerStatuses()
			asked.IsReady(target("p/zz/unheard"))
			for _, k := range keys {
				asked.IsReady(k)
				asked.view(k, true)
				asked.Target(k).Suspected()
			}
			asked.Standings([]*Target{asked.Target(keys[0]), asked.Target(keys[1])}, true, nil)
			asked.ResolveComboTargets("none")
			asked.Events(3)
		}
		if d := cmp.Diff(outside(alone.Engine), outside(asked.Engine)); d != "" {
			rt.Fatalf("(-alone +asked):\n%s", d)
		}
	})
}
