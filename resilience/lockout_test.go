package resilience

import (
	"testing"
	"time"
)

// lockedFor fails the target at each point in time (from the last one on) and wants these lengths.
func (r *rig) lockedFor(k string, v Verdict, want ...time.Duration) {
	r.t.Helper()
	for i, w := range want {
		r.fail(k, v)
		x := r.refused(k)
		if left := x.Until.Sub(r.clock.Now()); left != w || x.Layer != LayerModel {
			r.t.Fatalf("%v: exclusion %d of %s lasts %v at the %v, want %v at the model", v, i, k, left, x.Layer, w)
		}
		r.at(r.clock.Now().Sub(epoch) + w)
	}
}

func TestLockoutLadderThenDoubling(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.lockedFor("p/a/m", model(KindRateLimit), 1*sec, 2*sec,
		2*time.Minute, 4*time.Minute, 8*time.Minute, 16*time.Minute, 30*time.Minute, 30*time.Minute)
	r.ok("p/a/m")
	r.lockedFor("p/a/m", model(KindRateLimit), 1*sec, 2*sec, 2*time.Minute)
}

func TestLockoutByKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts Options
		v    Verdict
		want []time.Duration
	}{
		{"transient is flat", Options{}, model(KindServerError), []time.Duration{sec, 2 * sec, 15 * sec, 15 * sec, 15 * sec}},
		{"overloaded is flat", Options{}, model(KindModelOverloaded), []time.Duration{sec, 2 * sec, 15 * sec, 15 * sec}},
		{"a transient kind without an entry", Options{}, model(KindEmptyResponse), []time.Duration{sec, 2 * sec, 15 * sec, 15 * sec}},
		{"no such model", Options{}, Verdict{Scope: ScopeModel, Kind: KindModelNotFound, Certain: true},
			[]time.Duration{10 * time.Minute, 20 * time.Minute, 30 * time.Minute, 30 * time.Minute}},
		{"no access", Options{}, Verdict{Scope: ScopeModel, Kind: KindPermission, Certain: true},
			[]time.Duration{2 * time.Minute, 4 * time.Minute}},
		{"a kind above the cap", policy(func(p *Policy) {
			p.Lockout.CooldownByKind = map[Kind]time.Duration{KindModelNotFound: 2 * time.Hour}
		}), Verdict{Scope: ScopeModel, Kind: KindModelNotFound, Certain: true}, []time.Duration{2 * time.Hour, 2 * time.Hour}},
		{"one attempt", policy(func(p *Policy) { p.Lockout.MaxAttempts = 1 }), model(KindRateLimit), []time.Duration{2 * time.Minute, 4 * time.Minute}},
		{"stated", Options{}, model(KindRateLimit).after(40 * sec), []time.Duration{40 * sec, 40 * sec, 40 * sec, 40 * sec}},
		{"stated at least 1s", Options{}, model(KindRateLimit).after(10 * ms), []time.Duration{sec, sec, sec}},
		{"an operator rule", Options{}, Verdict{Scope: ScopeModel, Kind: KindRateLimit, Certain: true, Cooldown: 50 * sec},
			[]time.Duration{50 * sec, 100 * sec, 200 * sec}},
		{"a constant operator rule", Options{}, Verdict{Scope: ScopeModel, Kind: KindRateLimit, Certain: true, Cooldown: 50 * sec, Constant: true},
			[]time.Duration{50 * sec, 50 * sec}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			newRig(t, c.opts).lockedFor("p/a/m", c.v, c.want...)
		})
	}
}

// Locks without a hint double whatever stated ones came in between.
func TestV6AStatedLockDoesNotDouble(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.lockedFor("p/a/m", model(KindRateLimit), sec, 2*sec, 2*time.Minute)
	r.lockedFor("p/a/m", model(KindRateLimit).after(5*sec), 5*sec, 5*sec)
	r.lockedFor("p/a/m", model(KindRateLimit), 4*time.Minute)
}

func TestLockoutAttemptWindow(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", model(KindRateLimit))
	r.at(30 * sec)
	r.fail("p/a/m", model(KindRateLimit))
	r.at(60*sec + 1) // the first one has left the window
	r.fail("p/a/m", model(KindRateLimit))
	r.refusedFor("p/a/m", LayerModel, KindRateLimit, 4*sec)
	r.at(65 * sec)
	r.fail("p/a/m", model(KindRateLimit))
	r.refusedFor("p/a/m", LayerModel, KindRateLimit, 2*time.Minute)
}

func TestLockoutSuccessEmptiesTheCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for range 10 {
		r.fail("p/a/m", model(KindRateLimit))
		r.at(r.clock.Now().Sub(epoch) + sec)
		r.fail("p/a/m", model(KindRateLimit))
		r.at(r.clock.Now().Sub(epoch) + 2*sec)
		r.takeAs("p/a/m", probing).Success()
	}
}

func TestLockoutOneProbe(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.lockedFor("p/a/m", model(KindRateLimit), sec, 2*sec, 2*time.Minute)
	p := r.takeAs("p/a/m", probing)
	r.refused("p/a/m")
	p.FirstContent()
	r.takeAs("p/a/m", normal).Neutral()
	p.Success()
}

// The exact model on the exact connection, and nothing else. C006, C007, C096, C098.
func TestLockoutIsNarrow(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m-large", Verdict{Scope: ScopeModel, Kind: KindModelNotFound, Certain: true})
	r.wantReady("p/a/m-large", false)
	for _, k := range []string{"p/a/m-small", "p/a/m", "p/b/m-large", "q/a/m-large"} {
		r.takeAs(k, normal).Neutral()
	}
	if c := r.conn("p", "a"); c.State != Ready {
		t.Fatalf("the connection is %v", c.State)
	}
	r.wantState("p", Closed, 0)
}

// Every restriction counts: the one that lasts longest is reported. C013.
func TestTheStrictestExclusionIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	one, two := r.take("p/a/m"), r.take("p/a/m")
	one.Failure(model(KindRateLimit).after(10 * sec))
	two.Failure(err429.after(60 * sec))
	r.at(5 * sec)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 55*sec)
	r.at(20 * sec)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 40*sec)
	r.at(60 * sec)
	r.takeAs("p/a/m", probing).Success()
	r.takeAs("p/a/m", normal).Neutral()
}
