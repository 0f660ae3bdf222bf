package resilience

import (
	"testing"
	"time"
)

// hung returns a rig whose provider p was opened by attempts that wait too long.
func hung(t *testing.T) *rig {
	t.Helper()
	r := newRig(t, Options{})
	for range 5 {
		r.take("p/a/m").Waited()
	}
	r.wantState("p", Open, 0)
	return r
}

// A probe that waited too long and was overtaken decides nothing, yet the next one passes only
// four seconds after it began, in OPEN and in HALF_OPEN, or a hang would delay a request all the
// time.
func TestR9OvertakenProbesPause(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		begin time.Duration
	}{{"open", 2 * sec}, {"half-open", 30 * sec}} {
		r := hung(t)
		r.at(c.begin)
		probe := r.takeAs("p/a/m", probing)
		r.at(c.begin + sec)
		probe.Waited()
		r.at(c.begin + 2*sec)
		probe.Neutral()
		if x := r.refused("p/b/m"); x.RetryAfter != 2*sec || x.Held {
			t.Errorf("%s: refused for %v (held %v), want 2s", c.name, x.RetryAfter, x.Held)
		}
		r.at(c.begin + 4*sec)
		r.takeAs("p/b/m", probing).FirstContent()
		r.wantState("p", Closed, 0)
	}
}

// A probe whose client leaves before it has waited long frees its slot at once.
func TestR9NeutralProbesDoNotPause(t *testing.T) {
	t.Parallel()
	r := hung(t)
	r.at(2 * sec)
	r.takeAs("p/a/m", probing).Neutral()
	r.takeAs("p/a/m", probing).FirstContent()
	r.wantState("p", Closed, 0)
}

// One slow attempt of another model does not hide that all failures are one model's: a probe of
// any other model passes at once, a pause of the failing model's probes notwithstanding.
func TestV4SlowNeighboursAreNoEvidence(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.take("p/a/n").Waited()
	for _, at := range seconds(0, 10, 20, 30, 40) {
		r.at(at)
		r.fail("p/a/m", down(KindServerError))
	}
	r.wantState("p", Open, 5)
	r.takeAs("p/a/n", probing).FirstContent()
	r.wantState("p", Closed, 0)
	if _, locked := r.lockout("p/a/m"); !locked {
		t.Error("the run did not move to the failing model's lockout")
	}

	// Nor does a model that was only slow take over anything when another one is answered.
	r = newRig(t, Options{})
	r.take("p/a/n").Waited()
	r.ok("p/a/m")
	if l, any := r.lockout("p/a/n"); any {
		t.Errorf("a slow model has a lockout: %+v", l)
	}
}

// A long wait is no failure: contrast is of attempts that began after the run's first failure.
func TestV4AWaitDoesNotBeginTheRunOfFailures(t *testing.T) {
	t.Parallel()
	for _, fails := range []int{1, 5} {
		r := newRig(t, Options{})
		r.take("p/a/n").Waited()
		before := r.take("p/a/n")
		for i := range fails {
			r.at(time.Duration(i) * 10 * sec)
			r.fail("p/a/m", down(KindServerError))
		}
		before.FirstContent()
		if fails == 5 {
			r.wantState("p", Open, 5)
		}
		if l, any := r.lockout("p/a/m"); any {
			t.Errorf("after %d failures the model has a lockout: %+v", fails, l)
		}
	}
}
