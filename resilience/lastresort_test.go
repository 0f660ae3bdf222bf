package resilience

import (
	"errors"
	"testing"
	"time"
)

func (r *rig) desperate(k string) (Permit, error) { return r.Target(target(k)).AcquireLastResort() }

// TestR7LastResort: whatever excludes a target, one request at a time may pass as a last resort. Its
// success is evidence like any other (law A7), its failure raises nothing (law A6), and it holds
// no slot that could be lost.
func TestR7LastResort(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		set  func(r *rig)
		v    Verdict // the same again
	}{
		{"breaker", func(r *rig) { r.trip("p") }, err500},
		{"cooldown", func(r *rig) { r.fail("p/a/m", err429.after(30*time.Second)) }, err429},
		{"quota", func(r *rig) { r.fail("p/a/m", account(KindQuotaExhausted).after(time.Hour)) }, account(KindQuotaExhausted)},
		{"lockout", func(r *rig) { r.fail("p/a/m", Verdict{Scope: ScopeModel, Kind: KindModelNotFound, Certain: true}) }, model(KindModelNotFound)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			c.set(r)
			r.at(time.Second)
			before := r.refused("p/a/m")
			p, err := r.desperate("p/a/m")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := r.desperate("p/a/m"); !errors.Is(err, ErrExcluded) {
				t.Fatalf("two requests pass at once: %v", err)
			}
			level := r.conn("p", "a").BackoffLevel
			p.Failure(c.v)
			after := r.refused("p/a/m")
			if !after.Until.Equal(before.Until) || after.Kind != before.Kind || r.conn("p", "a").BackoffLevel != level {
				t.Errorf("a failure made %+v of %+v", after.Exclusion, before.Exclusion)
			}
			p, err = r.desperate("p/a/m")
			if err != nil {
				t.Fatalf("its slot is lost after a failure: %v", err)
			}
			p.Failure(c.v.after(10 * time.Hour))
			if x := r.refused("p/a/m"); c.name != "breaker" && !x.Until.After(before.Until) {
				t.Errorf("the upstream's own word did not move the deadline %v", x.Until)
			}
			p, err = r.desperate("p/a/m")
			if err != nil {
				t.Fatal(err)
			}
			p.Neutral()
			if p, err = r.desperate("p/a/m"); err != nil {
				t.Fatalf("its slot is lost after a neutral end: %v", err)
			}
			p.FirstContent()
			r.wantReady("p/a/m", true)
			p.Success()
		})
	}
}

// TestLastResortHasLimits: it passes neither an operator's exclusion nor a quarantine, nor a probe's
// hold; and a target that is well is admitted as ever.
func TestLastResortHasLimits(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	if err := r.Exclude(target("p/a"), time.Hour, "maintenance"); err != nil {
		t.Fatal(err)
	}
	r.fail("p/b/m", revoked)
	r.fail("p/c/m", err429)
	r.at(2 * time.Second)
	probe := r.takeAs("p/c/m", probing)
	for _, k := range []string{"p/a/m", "p/b/m", "p/c/m"} {
		if _, err := r.desperate(k); !errors.Is(err, ErrExcluded) {
			t.Errorf("%s admits a last resort: %v", k, err)
		}
	}
	probe.Neutral()
	if p, err := r.desperate("p/c/m"); err != nil || p.mode != probing {
		t.Errorf("an exclusion that is due is probed: %v, %v", p.mode, err)
	}
	if p, err := r.desperate("p/d/m"); err != nil || p.mode != normal {
		t.Errorf("a target that is well: %v, %v", p.mode, err)
	}
}

// TestBrokenOffAfterComingBack: what took a target back into service by its first content and then broke off counts,
// whether it was a last resort or a recheck (law A7: the end of a stream can only add a failure).
func TestBrokenOffAfterComingBack(t *testing.T) {
	t.Parallel()
	for name, pass := range map[string]func(r *rig) (Permit, error){
		"last resort": func(r *rig) (Permit, error) {
			r.trip("p")
			r.at(time.Second)
			return r.desperate("p/a/m")
		},
		"recheck": func(r *rig) (Permit, error) {
			r.fail("p/a/m", account(KindQuotaExhausted).after(10*time.Hour))
			r.at(16 * time.Minute)
			return r.Target(target("p/a/m")).Acquire()
		},
	} {
		r := newRig(t, Options{})
		p, err := pass(r)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		p.FirstContent()
		r.wantReady("p/a/m", true)
		before := r.Status().Providers[0].Breaker.Failures
		p.Failure(err500)
		if b := r.Status().Providers[0].Breaker; b.Failures != before+1 {
			t.Errorf("%s: the breaker counts %d failures after %d", name, b.Failures, before)
		}
	}
}
