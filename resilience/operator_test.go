package resilience

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestOperatorExclusions(t *testing.T) {
	t.Parallel()
	type want map[string]bool // ready
	for _, c := range []struct {
		key  string
		want want
	}{
		{"p", want{"p/a/m": false, "p/a/n": false, "p/b/m": false, "q/a/m": true}},
		{"p/a", want{"p/a/m": false, "p/a/n": false, "p/b/m": true, "q/a/m": true}},
		{"p/a/m", want{"p/a/m": false, "p/a/n": true, "p/b/m": true, "q/a/m": true}},
		{"p//m", want{"p/a/m": false, "p/a/n": true, "p/b/m": false, "q/a/m": true}},
	} {
		t.Run(c.key, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			for k := range c.want {
				r.ok(k)
			}
			if err := r.Exclude(target(c.key), 10*time.Minute, "maintenance"); err != nil {
				t.Fatal(err)
			}
			for k, ready := range c.want {
				r.wantReady(k, ready)
				if !ready {
					x := r.refusedFor(k, LayerOperator, KindUnknown, 10*time.Minute)
					if x.Reason != "maintenance" || x.RetryAfter != 10*time.Minute {
						t.Fatalf("the refusal says %+v", x.Exclusion)
					}
				}
			}
			r.Reset(Key{}, false) // leaves it
			r.wantReady("p/a/m", false)
			if s := r.Status().Operator; len(s) != 1 || s[0].Key != target(c.key) || s[0].Reason != "maintenance" {
				t.Fatalf("the status lists %+v", s)
			}
			r.at(10*time.Minute - 1)
			r.wantReady("p/a/m", false)
			r.at(10 * time.Minute)
			r.takeAs("p/a/m", normal).Neutral()
			if s := r.Status().Operator; len(s) != 0 {
				t.Fatalf("an ended exclusion is listed: %+v", s)
			}
			if r.Include(target(c.key)) {
				t.Fatal("an ended exclusion was ended again")
			}
		})
	}
	t.Run("its end", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.ok("p/a/m")
		if err := r.Exclude(target("p"), 0, ""); err != nil {
			t.Fatal(err)
		}
		r.at(1000 * time.Hour)
		if x := r.refused("p/a/m"); !x.Until.IsZero() || x.RetryAfter != 0 {
			t.Fatalf("without an end it says %+v", x.Exclusion)
		}
		if p := r.provider("p"); p.Available || !p.AvailableAt.IsZero() || p.Connections[0].State != Excluded {
			t.Fatalf("the provider shows %+v", p)
		}
		if r.Include(target("p/a")) || !r.Include(target("p")) {
			t.Fatal("Include ended another exclusion, or not this one")
		}
		r.takeAs("p/a/m", normal).Neutral()
		tt := r.Target(target("p/a/m"))
		if w := tt.word.Load() | tt.conn.word.Load() | tt.dom.word.Load(); w != 0 {
			t.Fatalf("requests still look closer: %b", w)
		}
		_ = r.Exclude(target("p"), 0, "")
		r.Reset(Key{}, true)
		r.takeAs("p/a/m", normal).Neutral()
	})
	t.Run("the longest counts", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		_ = r.Exclude(target("p"), time.Minute, "short")
		_ = r.Exclude(target("p/a"), time.Hour, "long")
		if x := r.refused("p/a/m"); x.Reason != "long" {
			t.Fatalf("reported is %q", x.Reason)
		}
	})
	t.Run("of one model", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m", err500) // so that m is the breaker's only evidence
		_ = r.Exclude(target("p//m"), time.Minute, "")
		if p := r.provider("p"); !p.Available || p.Connections[0].State != Ready {
			t.Fatalf("one model's exclusion shows the provider as %+v", p)
		}
	})
	t.Run("mistakes", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: Config{Providers: map[string]Provider{"p": {}}}})
		for _, k := range []Key{{}, {Provider: "x"}, {Provider: "p", Connection: "x"}} {
			if err := r.Exclude(k, 0, ""); err == nil {
				t.Errorf("%v can be excluded", k)
			}
		}
	})
}

func TestResetCounts(t *testing.T) {
	t.Parallel()
	setup := func() *rig {
		r := newRig(t, noEarly)
		locked := r.take("p/a/m")
		quota := r.take("p/b/m")
		r.trip("p")                                // c0 to c4: below their own threshold
		r.RecordFailure(target("p/c0/m0"), err500) // now c0 cools for m0
		locked.Failure(model(KindRateLimit).after(3 * time.Minute))
		quota.Failure(account(KindQuotaExhausted).after(time.Hour))
		r.fail("q/a/n", err500)
		r.fail("q/a/m", err429)
		return r
	}
	for _, c := range []struct {
		key  string
		want ResetCount
	}{
		{"", ResetCount{1, 3, 1}},
		{"p", ResetCount{1, 2, 1}},
		{"p/a", ResetCount{0, 0, 1}},
		{"p/a/m", ResetCount{0, 0, 1}},
		{"p/b", ResetCount{0, 1, 0}},
		{"p//m", ResetCount{0, 0, 1}},
		{"q", ResetCount{0, 1, 0}},
		{"q/b", ResetCount{}},
		{"x", ResetCount{}},
	} {
		r := setup()
		if got := r.Reset(target(c.key), false); got != c.want {
			t.Errorf("reset of %q counts %+v, want %+v", c.key, got, c.want)
		}
		if got := r.Reset(target(c.key), false); got != (ResetCount{}) {
			t.Errorf("the second reset of %q counts %+v", c.key, got)
		}
	}
	r := setup()
	r.at(2 * time.Hour) // what is due is live no more, but for a half-open breaker
	if got, want := r.Reset(Key{}, false), (ResetCount{Breakers: 1}); got != want {
		t.Errorf("after two hours a reset counts %+v, want %+v", got, want)
	}
	for k, tt := range r.targets {
		if !tt.cool.clean() || !tt.lock.clean() || !tt.conn.cool.clean() || !tt.dom.breaker.clean() {
			t.Errorf("%v is not clean after a reset of all", k)
		}
	}
}

func TestResetForgetsRunsThatMoved(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m1", err500)
	r.ok("p/a/m2")
	r.Reset(target("p"), false)
	r.fail("p/a/m1", err500)
	r.wantState("p", Closed, 1)
}

func TestReportsWithoutAPermit(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	key := target("p/a/m")
	r.RecordFailure(key, err429)
	r.RecordFailure(key, err429) // while it lasts it raises nothing
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, sec)
	r.at(sec)
	r.RecordFailure(key, err429) // once it is due it decides like a probe
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 2*sec)
	r.RecordSuccess(key) // counts as begun now
	r.takeAs("p/a/m", normal).Neutral()
	r.trip("p")
	r.RecordSuccess(key)
	r.wantState("p", Closed, 0)
	r.RecordFailure(key, Verdict{})
	r.wantState("p", Closed, 0)
}

func TestMarkAndUnlock(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.MarkAccountUnavailable(target("p/a"), KindQuotaExhausted)
	r.refusedFor("p/a/m", LayerConnection, KindQuotaExhausted, 5*time.Minute)
	r.MarkAccountAvailable(target("p/a"))
	r.takeAs("p/a/m", normal).Neutral()
	r.MarkAccountUnavailable(target("p/a/m"), KindRateLimit)
	r.refusedFor("p/a/m", LayerModel, KindRateLimit, sec)
	r.wantReady("p/a/n", true)
	if n := r.ForceUnlock(target("p/a/m")); n != (ResetCount{Lockouts: 1}) {
		t.Fatalf("unlocked %+v", n)
	}
	r.takeAs("p/a/m", normal).Neutral()
}

func TestSelectConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{
		Providers: map[string]Provider{"p": {Connections: []Connection{{ID: "z"}, {ID: "y"}, {ID: "x"}}}, "none": {}},
		Combos:    map[string][]Key{"c": {target("p/z/m"), target("p/y/m"), target("p/x/m")}},
	}})
	var got []string
	pick := func() string {
		tt, err := r.SelectConnection("p", "m")
		if err != nil {
			return err.Error()
		}
		return tt.Key().Connection
	}
	for range 4 {
		got = append(got, pick())
	}
	r.fail("p/y/m", err429.after(30*sec))
	for range 4 {
		got = append(got, pick())
	}
	if d := cmp.Diff([]string{"z", "y", "x", "z", "x", "x", "z", "x"}, got); d != "" {
		t.Fatalf("the rotation (-want +got):\n%s", d)
	}
	var combo []string
	for _, tt := range r.ResolveComboTargets("c") {
		combo = append(combo, tt.Key().String())
	}
	if d := cmp.Diff([]string{"p/z/m", "p/x/m"}, combo); d != "" || r.ResolveComboTargets("nope") != nil {
		t.Fatalf("the combo (-want +got):\n%s", d)
	}
	r.fail("p/z/m", err429.after(10*sec))
	r.fail("p/x/m", revoked)
	if _, err := r.SelectConnection("p", "m"); err == nil || err.(*ExcludedError).RetryAfter != 10*sec || err.(*ExcludedError).Key.Connection != "z" {
		t.Fatalf("with none ready the error is %v", err)
	}
	for _, p := range []string{"none", "unknown"} {
		if _, err := r.SelectConnection(p, "m"); err == nil {
			t.Errorf("provider %s has a connection", p)
		}
	}
}
