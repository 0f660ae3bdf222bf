package resilience

import (
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// Whatever the way in, it ends at the same gates.
func TestA1OneAccountingPoint(t *testing.T) {
	t.Parallel()
	ways := map[string]func(r *rig){
		"permit": func(r *rig) { r.fail("p/a/m", err500) },
		"report": func(r *rig) { r.RecordFailure(target("p/a/m"), err500) },
		"breaker": func(r *rig) {
			b := r.CircuitBreaker("p", BreakerOptions{})
			_ = b.Execute(t.Context(), failing)
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, policy(func(p *Policy) { p.Cooldown.TransientAfter = 100 }))
			for i := 1; i <= 4; i++ {
				way(r)
				if got := r.provider("p").Breaker.Failures; got != i {
					t.Fatalf("%d failures were told, %d are counted", i, got)
				}
			}
			way(r)
			r.wantState("p", Open, 5)
			r.refused("p/b/m")
		})
	}
}

func TestA2SettlingTwiceIsHarmless(t *testing.T) {
	t.Parallel()
	settle := map[string]func(Permit){
		"success": Permit.Success, "neutral": Permit.Neutral, "first content": Permit.FirstContent,
		"failure": func(p Permit) { p.Failure(err500) }, "waited": Permit.Waited,
		"good failure": func(p Permit) { p.Failure(Verdict{}) },
	}
	for name, again := range settle {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, policy(func(p *Policy) { p.Cooldown.TransientAfter = 100 }))
			p := r.take("p/a/m")
			p.Failure(err500)
			for range 10 {
				again(p)
			}
			// The slot is reused meanwhile: the old permit must not settle the new one.
			q := r.take("p/a/m")
			again(p)
			r.wantState("p", Closed, 1)
			q.Failure(err500)
			r.wantState("p", Closed, 2)
		})
	}
	var zero Permit
	zero.FirstContent()
	zero.Waited()
	zero.Neutral()
	zero.Failure(err500)
	zero.Success()
	if zero.Key() != (Key{}) || zero.Probe() || zero.Recheck() {
		t.Fatal("the zero permit claims something")
	}
}

func TestA2LostProbeFreesItsSlotAfterTheLease(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		key    string
		tripBy Verdict
		due    time.Duration
	}{
		{"connection", "p/a/m", err429, sec},
		{"model", "p/a/m", model(KindModelOverloaded), sec},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			r.fail(c.key, c.tripBy)
			r.at(c.due)
			lost := r.takeAs(c.key, probing)
			x := r.refused(c.key)
			if !x.Held || x.RetryAfter != sec {
				t.Fatalf("a target held by a probe says held %v, retry after %v", x.Held, x.RetryAfter)
			}
			r.at(c.due + 75*sec - 1)
			r.refused(c.key)
			r.at(c.due + 75*sec)
			next := r.takeAs(c.key, probing)
			lost.Failure(c.tripBy) // A6: it raises nothing and frees nobody else's slot
			r.refused(c.key)
			next.Success()
			r.takeAs(c.key, normal).Success()
		})
	}
}

func TestA2SuccessAfterItsLeaseCountsUnderA7(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Breaker.EarlyProbes = []time.Duration{} }))
	r.trip("p")
	r.at(30 * sec)
	slow := r.takeAs("p/a/m0", probing)
	r.at(200 * sec)
	slow.FirstContent()
	r.wantState("p", Closed, 0)

	r = newRig(t, Options{})
	r.fail("p/a/m", err429)
	r.at(sec)
	slow = r.takeAs("p/a/m", probing)
	r.at(100 * sec)
	slow.FirstContent()
	r.takeAs("p/a/m", normal).Neutral()
}

// An expired lease decides nothing by a failure, even while nobody has taken its slot.
func TestA2FailureAfterItsLeaseCountsUnderA6(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Breaker.EarlyProbes = []time.Duration{} }))
	r.trip("p")
	r.at(30 * sec)
	slow := r.takeAs("p/a/m0", probing)
	r.at(105 * sec)
	slow.Failure(err500)
	r.wantState("p", HalfOpen, 5)
	r.takeAs("p/a/m0", probing).Neutral()

	r = newRig(t, Options{})
	r.fail("p/a/m", err429)
	r.at(sec)
	slow = r.takeAs("p/a/m", probing)
	r.at(76 * sec)
	slow.Failure(err429)
	if level := r.conn("p", "a").BackoffLevel; level != 1 {
		t.Fatalf("a failure after its lease raised the level to %d", level)
	}
	r.wantReady("p/a/m", true)
}

func TestA3ReadsChangeNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	read := func() string {
		r.CircuitBreaker("p", BreakerOptions{}).CanExecute()
		for _, k := range []string{"p/a/m", "p/b/m", "p/c/unheard-of", "q/x/y"} {
			r.IsReady(target(k))
		}
		for _, k := range []string{"p/a/m", "p/b/m"} {
			tt := r.Target(target(k))
			tt.Check()
			tt.Standing(true)
			tt.Suspected()
			tt.Sound()
		}
		r.Events(0)
		r.AllCircuitBreakerStatuses()
		r.AllModelLockouts()
		b, err := json.Marshal(r.Status())
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	check := func(what string) {
		t.Helper()
		first := read()
		n := len(r.events)
		for range 3 {
			if again := read(); again != first {
				t.Fatalf("%s: reading changed the status\n%s", what, cmp.Diff(first, again))
			}
		}
		if len(r.events) != n {
			t.Fatalf("%s: reading caused events %v", what, r.events[n:])
		}
	}
	r.fail("p/a/m", err429)
	r.fail("p/b/m", model(KindServerError))
	check("cooling")
	r.at(sec)
	check("due")
	p := r.takeAs("p/a/m", probing)
	check("probing")
	p.Neutral()
	r.takeAs("p/a/m", probing).Failure(err429)
	r.at(10 * time.Minute)
	check("forgotten")
	r.takeAs("p/a/m", normal).Success()
}

// Acquire, Check, Standing, IsReady and the status agree, whatever has happened.
func TestA4OneDecision(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	agree := func() {
		t.Helper()
		for _, k := range []string{"p/a/m", "p/a/n", "p/b/m", "q/a/m"} {
			tt := r.Target(target(k))
			x, out := tt.Check()
			_, out2, asProbe := tt.Standing(false)
			if healthy := r.AllCircuitBreakerStatuses()[tt.Key().Provider].State == Closed && !out && !asProbe; tt.Sound() != healthy {
				t.Fatalf("%s: sound %v, want %v", k, tt.Sound(), healthy)
			}
			p, err := tt.Acquire()
			if out != (err != nil) || out2 != out || r.IsReady(target(k)) == out && err != nil {
				t.Fatalf("%s: check says out %v, standing %v, acquire %v", k, out, out2, err)
			}
			if err != nil {
				if d := cmp.Diff(x, err.(*ExcludedError).Exclusion); d != "" {
					t.Fatalf("%s: the check and the refusal differ (-check +refusal):\n%s", k, d)
				}
			} else if asProbe != (p.Probe() || p.Recheck()) {
				t.Fatalf("%s: standing says as probe %v, the permit %v", k, asProbe, p.Probe())
			}
			p.Neutral()
		}
	}
	steps := []func(){
		func() { r.fail("p/a/m", err429) },
		func() { r.fail("p/b/m", model(KindModelNotFound)) },
		func() { r.at(sec) },
		func() { r.fail("q/b/m", err500); r.fail("q/c/m", err500) },
		func() { r.fail("q/d/m", err500) }, // q is DEGRADED, and q/a/m is not out
		func() { r.trip("q") },
		func() { r.at(4 * sec) },
		func() { _ = r.Exclude(target("q"), 0, "maintenance") },
		func() { r.at(time.Minute) },
	}
	for i, step := range steps {
		t.Logf("step %d", i)
		step()
		agree()
	}
}

func TestA5ALaterDeadlineWins(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	first, second, third := r.take("p/a/m"), r.take("p/a/m"), r.take("p/a/m")
	first.Failure(err429.after(20 * sec))
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 20*sec)
	r.at(100 * ms)
	second.Failure(err429.after(sec))
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 19900*ms)
	third.Failure(err429.after(60 * sec))
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 60*sec)
	if got := r.conn("p", "a"); got.BackoffLevel != 1 {
		t.Fatalf("three reports of one outage made level %d", got.BackoffLevel)
	}
}

func TestA5FiftySimultaneousFailuresRaiseTheLevelOnce(t *testing.T) {
	t.Parallel()
	for _, v := range []Verdict{err429, model(KindRateLimit), down(KindRateLimit)} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			var permits []Permit
			for range 50 {
				permits = append(permits, r.take("p/a/m"))
			}
			var wg sync.WaitGroup
			for _, p := range permits {
				wg.Go(func() { p.Failure(v) })
			}
			wg.Wait()
			x := r.refused("p/a/m")
			if left := x.Until.Sub(r.clock.Now()); left != sec {
				t.Fatalf("%v left, want 1s", left)
			}
			r.at(sec)
			r.takeAs("p/a/m", probing).Failure(v)
			if left := r.refused("p/a/m").Until.Sub(r.clock.Now()); left != 2*sec {
				t.Fatalf("the second exclusion lasts %v, want 2s", left)
			}
		})
	}
}

func TestA5TheCauseMayOnlyBecomeGraver(t *testing.T) {
	t.Parallel()
	order := []Verdict{
		account(KindModelOverloaded), err429, account(KindAuth), account(KindQuotaExhausted), account(KindBilling), revoked,
	}
	for i, first := range order {
		for j, second := range order {
			r := newRig(t, Options{})
			a, b := r.take("p/a/m"), r.take("p/a/m")
			a.Failure(first)
			b.Failure(second)
			want := order[max(i, j)]
			c := r.conn("p", "a")
			if *c.Kind != want.Kind || (c.State == Quarantined) != want.Quarantine {
				t.Errorf("%v then %v: the cause is %v (%v), want %v", first, second, *c.Kind, c.State, want)
			}
		}
	}
}

// A probe that fails never shortens what another report has prolonged under it, nor lifts the quarantine
// that it has set (laws A5 and V8).
func TestA5AFailedProbeShortensNothing(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		first, late, probe Verdict
		layer              Layer
		left               time.Duration
	}{
		"connection": {err429, err429.after(time.Minute), err429, LayerConnection, time.Minute},
		"quarantine": {err429, revoked, err429, LayerConnection, -1},
		"model":      {model(KindRateLimit), model(KindRateLimit).after(time.Minute), model(KindRateLimit), LayerModel, time.Minute},
		"cooldown":   {err500.after(sec), err500.after(time.Minute), err500, LayerConnection, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			old := r.take("p/a/m")
			r.fail("p/a/m", c.first)
			r.at(sec)
			probe := r.takeAs("p/a/m", probing)
			old.Failure(c.late)
			probe.Failure(c.probe)
			r.refusedFor("p/a/m", c.layer, c.late.Kind, c.left)
		})
	}
}

// The same of a breaker: a stated wait that comes while a HALF_OPEN breaker is probed outlasts the probe.
func TestA5AFailedProbeShortensNoRound(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	old := r.take("p/z/m")
	r.trip("p")
	r.at(30 * sec)
	probe := r.takeAs("p/y/m", probing)
	old.Failure(err500.after(5 * time.Minute))
	probe.Failure(err500)
	r.refusedFor("p/x/m", LayerBreaker, KindServerError, 5*time.Minute)
}

// An OPEN breaker's recorded cause becomes no milder by a failed early probe (law A5).
func TestA5AnEarlyProbeMakesNoCauseMilder(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Breaker.FailureThreshold = 1 }))
	r.fail("p/a/m", down(KindPermission))
	r.at(2 * sec)
	r.takeAs("p/a/m", probing).Failure(err500)
	if x := r.refused("p/a/m"); x.Kind != KindPermission {
		t.Errorf("the cause is %v", x.Kind)
	}
}
