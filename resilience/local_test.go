package resilience

import (
	"fmt"
	"testing"
	"time"
)

// reset is a connection that came about and broke: the network was there, and may be gone since.
var reset = Verdict{Scope: ScopeProvider, Kind: KindNetwork, RetryElsewhere: true}

func TestA10LocalOutage(t *testing.T) {
	t.Parallel()
	t.Run("two unrelated endpoints within 5s", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		for range 4 {
			r.fail("p/a/m", dialErr)
			r.at(r.clock.Now().Sub(epoch) + 1100*ms)
			r.Reset(target("p/a"), false)
		}
		r.wantState("p", Degraded, 4)
		r.fail("p/a/n", dialErr)
		r.wantState("p", Open, 5)
		r.at(r.clock.Now().Sub(epoch) + 5*sec)
		r.fail("q/a/m", dialErr)
		if !r.LocalOutage() {
			t.Fatal("no local outage")
		}
		r.wantState("p", Closed, 0) // what the first of them set is undone
		r.wantState("q", Closed, 0)
		for _, k := range []string{"p/a/m", "p/a/n", "q/a/m", "s/a/m"} {
			r.takeAs(k, normal).Failure(dialErr) // nothing trips
		}
		r.wantState("p", Closed, 0)
		if r.seen(EventLocalOutage) != 1 || !r.Status().Local || !r.Target(target("p/a/m")).LocalOutage() {
			t.Fatal("the outage is not told")
		}
		r.fail("q/a/n", reset) // what is no dial failure counts as ever
		r.wantState("q", Closed, 1)
		if !r.LocalOutage() {
			t.Fatal("a broken connection ended it")
		}
		r.ok("s/a/m")
		if r.LocalOutage() || r.seen(EventLocalOutageEnded) != 1 {
			t.Fatal("the first success does not end it")
		}
	})
	t.Run("a refusal is an answer too", func(t *testing.T) {
		t.Parallel()
		for _, v := range []Verdict{err429, err500, {Scope: ScopeClient, Kind: KindInvalidRequest}, {Scope: ScopeRequest, Kind: KindContextLength}} {
			r := newRig(t, Options{})
			r.fail("p/a/m", dialErr)
			r.fail("q/a/m", dialErr)
			r.fail("s/a/m", v)
			if r.LocalOutage() {
				t.Errorf("%v did not end it", v)
			}
			r.fail("p/a/m", dialErr)
			if r.LocalOutage() {
				t.Errorf("%v: the old runs of failures were taken for a new outage", v)
			}
		}
	})
	t.Run("a probe in flight stays one", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: Config{Policy: Policy{Cooldown: CooldownPolicy{TransientAfter: 100}}}})
		for range 5 {
			r.fail("p/a/m", err500)
		}
		r.at(40 * sec)
		r.takeAs("p/a/m", probing).Failure(dialErr)
		held, err := r.Target(target("p/a/m")).AcquireLastResort()
		if err != nil {
			t.Fatal(err)
		}
		r.fail("q/a/m", dialErr)
		if !r.LocalOutage() {
			t.Fatal("no local outage")
		}
		if _, err := r.Target(target("p/a/m")).Acquire(); err == nil {
			t.Error("what was undone lets a second one probe")
		}
		held.Neutral()
		r.takeAs("p/a/m", probing).Neutral()
	})
	t.Run("a second outage is found too", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		for i := range 3 {
			r.fail("p/a/m", dialErr)
			r.fail("q/a/m", dialErr)
			if !r.LocalOutage() {
				t.Fatalf("outage %d is not found", i)
			}
			r.ok("p/a/m")
			r.ok("q/a/m")
			r.at(time.Duration(i+1) * time.Minute)
		}
	})
	t.Run("a run survives the undoing", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m", dialErr)
		r.fail("q/a/m", dialErr)
		r.ok("s/a/m") // ends it, but neither of the runs
		r.fail("p/a/m", dialErr)
		r.fail("q/a/m", dialErr)
		if r.LocalOutage() {
			t.Fatal("there was a success since the runs began")
		}
		r.wantState("p", Closed, 1)
	})
	for name, c := range map[string]struct {
		run  func(r *rig)
		want bool
	}{
		"one endpoint": {func(r *rig) { r.fail("p/a/m", dialErr); r.fail("p/b/n", dialErr) }, false},
		"5s apart": {func(r *rig) {
			r.fail("p/a/m", dialErr)
			r.at(5 * sec)
			r.fail("q/a/m", dialErr)
		}, true},
		"more than 5s apart": {func(r *rig) {
			r.fail("p/a/m", dialErr)
			r.at(5*sec + 1)
			r.fail("q/a/m", dialErr)
		}, false},
		"a success in between": {func(r *rig) {
			r.fail("p/a/m", dialErr)
			r.ok("s/a/m")
			r.fail("q/a/m", dialErr)
		}, false},
		"a success after an older run began": {func(r *rig) {
			r.fail("p/a/m", dialErr)
			r.ok("s/a/m")
			r.fail("q/a/m", dialErr)
			r.fail("p/a/m", dialErr)
		}, false},
		"a success of before": {func(r *rig) {
			r.ok("s/a/m")
			r.fail("p/a/m", dialErr)
			r.fail("q/a/m", dialErr)
		}, true},
		"no dial failure": {func(r *rig) {
			r.fail("p/a/m", dialErr)
			r.fail("q/a/m", down(KindNetwork))
		}, false},
		"related endpoints": {func(r *rig) {
			if err := r.Configure(Config{Providers: map[string]Provider{
				"p": {Endpoint: "one.example:443", Connections: []Connection{{ID: "a"}}},
				"q": {Endpoint: "one.example:443", Connections: []Connection{{ID: "a"}}},
			}}); err != nil {
				r.t.Fatal(err)
			}
			r.fail("p/a/m", dialErr)
			r.fail("q/a/m", dialErr)
		}, false},
		"two endpoints of one provider": {func(r *rig) {
			if err := r.Configure(Config{Providers: map[string]Provider{
				"p": {Endpoint: "one.example:443", Connections: []Connection{{ID: "a"}, {ID: "b", Endpoint: "one.example:8443"}}},
			}}); err != nil {
				r.t.Fatal(err)
			}
			r.fail("p/a/m", dialErr)
			r.fail("p/b/m", dialErr)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			c.run(r)
			if r.LocalOutage() != c.want {
				t.Fatalf("local outage: %v, want %v", r.LocalOutage(), c.want)
			}
		})
	}
}

// Only what the dial failures set is undone: not what was there before, nor what came since.
func TestA10UndoesOnlyItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err500) // before
	r.fail("p/a/m", dialErr)
	r.refused("p/a/m")
	r.fail("p/b/n", dialErr)
	r.RecordFailure(target("p/b/n"), reset) // since
	r.wantState("p", Degraded, 4)
	r.fail("q/a/m", dialErr)
	if !r.LocalOutage() {
		t.Fatal("no local outage")
	}
	// The breaker was touched since by another failure: that stays. m's cooldown was not.
	r.wantState("p", Degraded, 4)
	r.takeAs("p/a/m", normal).Failure(err500)
	r.refused("p/a/m") // the failure of before still counts
	r.refused("p/b/n")
}

// The connection's cooldown that two models' dial failures made goes with them.
func TestA10UndoesAWholeConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for i := range 4 {
		r.fail(fmt.Sprintf("p/a/m%d", i/2), dialErr)
	}
	r.refused("p/a/other")
	r.fail("q/a/m", dialErr)
	for _, k := range []string{"p/a/other", "p/a/m0", "p/a/m1"} {
		r.takeAs(k, normal).Neutral()
	}
	if c := r.conn("p", "a"); c.State != Ready || c.BackoffLevel != 0 {
		t.Fatalf("the connection shows %+v", c)
	}
}

// A probe that cannot be dialled frees its slot and leaves the exclusion as it was.
func TestA10AProbeInAnOutage(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err429)
	r.at(sec)
	r.fail("q/a/m", dialErr)
	r.fail("s/a/m", dialErr)
	r.takeAs("p/a/m", probing).Failure(dialErr)
	p := r.takeAs("p/a/m", probing)
	p.Success()
	if r.LocalOutage() {
		t.Fatal("the outage goes on after a success")
	}
}
