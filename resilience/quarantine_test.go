package resilience

import (
	"testing"
	"time"
)

func TestV8Quarantine(t *testing.T) {
	t.Parallel()
	config := func(credential string) Config {
		return Config{Providers: map[string]Provider{"p": {Connections: []Connection{{ID: "a", Credential: credential}, {ID: "b", Credential: "x"}}}}}
	}
	quarantined := func() *rig {
		r := newRig(t, Options{Config: config("one")})
		r.fail("p/a/m", revoked)
		r.at(time.Hour * 24 * 365)
		r.takeAs("p/a/m", rechecking).Neutral()
		x := r.refused("p/a/m2")
		if !x.Until.IsZero() || x.RetryAfter != 0 || x.Layer != LayerConnection || x.Kind != KindAuth {
			t.Fatalf("a quarantine refuses with %+v", x.Exclusion)
		}
		if want := "p/a/m2 is excluded by its connection (auth) until someone acts"; x.Error() != want {
			t.Fatalf("it says %q", x.Error())
		}
		if c := r.conn("p", "a"); c.State != Quarantined || !c.RateLimitedUntil.IsZero() {
			t.Fatalf("the connection shows %+v", c)
		}
		r.wantReady("p/b/m", true)
		return r
	}
	t.Run("a changed credential ends it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: config("one")})
		old := r.take("p/a/m")
		r.fail("p/a/m", revoked)
		if err := r.Configure(config("one")); err != nil {
			t.Fatal(err)
		}
		r.wantReady("p/a/m", false)
		if err := r.Configure(config("two")); err != nil {
			t.Fatal(err)
		}
		r.takeAs("p/a/m", normal).Success()
		old.Failure(revoked) // the old key is still revoked
		r.takeAs("p/a/m", normal).Success()
		r.fail("p/a/m", revoked)
		r.wantReady("p/a/m", false)
	})
	t.Run("a reset ends it", func(t *testing.T) {
		t.Parallel()
		r := quarantined()
		if n := r.Reset(target("p/a"), false); n != (ResetCount{Connections: 1}) {
			t.Fatalf("the reset counts %+v", n)
		}
		r.takeAs("p/a/m", normal).Success()
	})
	t.Run("an unexplained 401 or 403 is a cooldown", func(t *testing.T) { // C132
		t.Parallel()
		for _, k := range []Kind{KindAuth, KindPermission} {
			r := newRig(t, Options{})
			r.fail("p/a/m", account(k))
			if x := r.refused("p/a/m"); x.Until.IsZero() {
				t.Fatalf("%v has no end", k)
			}
		}
	})
	t.Run("a model needs no person", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m", Verdict{Scope: ScopeModel, Kind: KindPermission, Quarantine: true})
		r.refusedFor("p/a/m", LayerModel, KindPermission, 2*time.Minute)
	})
}

func TestV10Recheck(t *testing.T) {
	t.Parallel()
	quota := account(KindQuotaExhausted).after(156 * time.Hour)
	for _, c := range []struct {
		name string
		v    Verdict
	}{{"quota", quota}, {"quarantine", revoked}, {"model", model(KindQuotaExhausted).after(20 * time.Hour)}} {
		t.Run(c.name, func(t *testing.T) { // C120
			t.Parallel()
			r := newRig(t, Options{})
			r.fail("p/a/m", c.v)
			first := r.refused("p/a/m")
			r.at(15*time.Minute - 1)
			r.refused("p/a/m")
			r.at(15 * time.Minute)
			p := r.takeAs("p/a/m", rechecking)
			if p.Probe() || !p.Recheck() {
				t.Fatal("a recheck is no probe")
			}
			r.refused("p/a/m") // one request
			for _, v := range []Verdict{c.v, err500, model(KindServerError), revoked} {
				p.Failure(v)
			}
			x := r.refused("p/a/m")
			if x.Exclusion.Kind != first.Kind || !x.Until.Equal(first.Until) {
				t.Fatalf("a failed recheck made %+v of %+v", x.Exclusion, first.Exclusion)
			}
			r.wantState("p", Closed, 0)
			r.at(30*time.Minute - 1)
			r.refused("p/a/m")
			r.at(30 * time.Minute)
			r.takeAs("p/a/m", rechecking).FirstContent()
			r.takeAs("p/a/m", normal).Success()
		})
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m", quota)
		tt := r.Target(target("p/a/m"))
		for i := 1; i <= 5; i++ {
			r.at(time.Duration(i)*time.Minute - 1)
			if _, err := tt.AcquireAlone(); err == nil {
				t.Fatalf("recheck %d comes early", i)
			}
			r.at(time.Duration(i) * time.Minute)
			r.refused("p/a/m")
			p, err := tt.AcquireAlone()
			if err != nil || !p.Recheck() {
				t.Fatalf("recheck %d: %v, %v", i, p.Recheck(), err)
			}
			p.Failure(quota)
		}
	})
	t.Run("a shorter exclusion has none", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m", account(KindQuotaExhausted).after(15*time.Minute))
		r.at(14 * time.Minute)
		if _, err := r.Target(target("p/a/m")).AcquireAlone(); err == nil {
			t.Fatal("an exclusion of recheck.after is rechecked")
		}
	})
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, policy(func(p *Policy) { p.Recheck.After = -1 }))
		r.fail("p/a/m", quota)
		r.at(20 * time.Hour)
		if _, err := r.Target(target("p/a/m")).AcquireAlone(); err == nil {
			t.Fatal("a recheck although they are off")
		}
	})
	t.Run("it is no recovery", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m", quota)
		r.at(time.Minute)
		if x := r.refused("p/a/m"); x.RetryAfter != 156*time.Hour-time.Minute {
			t.Fatalf("retry after %v counts the recheck", x.RetryAfter)
		}
	})
	t.Run("an operator's exclusion has none", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		old := r.take("p/a/m")
		if err := r.Exclude(target("p/a"), 0, "sold"); err != nil {
			t.Fatal(err)
		}
		old.Success()
		r.at(24 * time.Hour)
		if _, err := r.Target(target("p/a/m")).AcquireAlone(); err == nil {
			t.Fatal("an operator's word is rechecked or cleared by a success")
		}
	})
}
