package resilience

import (
	"fmt"
	"testing"
	"time"
)

// m1 fails, m2 of the same provider is well: the trouble is m1's. C115, C129.
func TestV4Contrast(t *testing.T) {
	t.Parallel()
	t.Run("the run moves", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m1", err500)
		r.wantState("p", Closed, 1)
		r.ok("p/a/m2")
		r.wantState("p", Closed, 0)
		for range 10 {
			r.RecordFailure(target("p/a/m1"), err500)
			r.wantState("p", Closed, 0)
		}
		if l, ok := r.lockout("p/a/m1"); !ok || l.Kind != KindServerError || l.RetryAfterMs != 15_000 || !l.Locked {
			t.Fatalf("the model's lockout is %+v, %v", l, ok)
		}
		r.takeAs("p/a/m2", normal).Neutral()
		r.takeAs("p/b/m2", normal).Neutral()
	})
	t.Run("an answer to an attempt from before the run only empties the count", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		before := r.take("p/a/m2")
		r.fail("p/a/m1", err500)
		before.Success()
		r.wantState("p", Closed, 0)
		r.RecordFailure(target("p/b/m1"), err500)
		r.wantState("p", Closed, 1) // still the provider's
	})
	t.Run("the model's own answer ends it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m1", err500)
		r.ok("p/a/m2")
		r.ok("p/b/m1")
		r.fail("p/b/m1", err500)
		r.wantState("p", Closed, 1)
	})
	t.Run("forget_after ends it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/a/m1", err500)
		r.ok("p/a/m2")
		r.at(5*time.Minute - 1)
		r.fail("p/b/m1", err500)
		r.wantState("p", Closed, 0)
		r.at(10*time.Minute - 1)
		r.fail("p/b/m1", err500)
		r.wantState("p", Closed, 1)
	})
	t.Run("an open breaker lets another model pass at once", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		for i := range 5 {
			r.fail(fmt.Sprintf("p/c%d/m1", i), err500)
		}
		r.wantState("p", Open, 5)
		r.refused("p/z/m1")
		p := r.takeAs("p/z/m2", probing)
		r.refused("p/z/m2") // a probe is single
		p.FirstContent()
		r.wantState("p", Closed, 0)
		r.takeAs("p/y/m2", normal).Success()
		r.at(14 * sec)
		r.takeAs("p/z/m1", normal).Neutral() // on the connections that failed it is locked or cooling
		r.fail("p/z/m1", err500)
		r.wantState("p", Closed, 0)
	})
	t.Run("the run moves to the lockout", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, policy(func(p *Policy) { p.Cooldown.TransientAfter = 100 }))
		for range 5 {
			r.fail("p/a/m1", err500)
		}
		r.takeAs("p/a/m2", probing).Success()
		r.refusedFor("p/a/m1", LayerModel, KindServerError, 15*sec)
		r.at(15 * sec)
		r.takeAs("p/a/m1", probing).Failure(err500) // a failed probe relocks
		r.refusedFor("p/a/m1", LayerModel, KindServerError, 15*sec)
		r.wantState("p", Closed, 0)
	})
	t.Run("another model that fails too leaves it with the provider", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		for i := range 5 {
			r.fail(fmt.Sprintf("p/c%d/m1", i), err500)
		}
		r.takeAs("p/z/m2", probing).Failure(err500)
		r.wantState("p", Open, 6)
		r.refused("p/z/m2")
		r.refused("p/z/m3")
	})
	t.Run("an answer that began in the run closes an open breaker", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		r.fail("p/c0/m1", err500)
		well := r.take("p/z/m2")
		for i := 1; i < 5; i++ {
			r.fail(fmt.Sprintf("p/c%d/m1", i), err500)
		}
		r.wantState("p", Open, 5)
		well.FirstContent()
		r.wantState("p", Closed, 0)
	})
	t.Run("two models fail, a third is well", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, policy(func(p *Policy) { p.Cooldown.TransientAfter = 100 }))
		r.fail("p/a/m1", err500)
		r.fail("p/a/m2", err500)
		r.fail("p/a/m2", err500)
		r.fail("p/a/m2", err500)
		r.ok("p/a/m3")
		r.wantReady("p/a/m1", true)
		r.refusedFor("p/a/m2", LayerModel, KindServerError, 15*sec)
		r.fail("p/a/m1", err500)
		r.wantState("p", Closed, 0)
	})
}

// A connection's transient cooldown with evidence from one model alone excludes that model only.
func TestV4ConnectionCooldownOfOneModel(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m1", err500)
	r.fail("p/a/m1", err500)
	r.refusedFor("p/a/m1", LayerConnection, KindServerError, sec)
	r.takeAs("p/a/m2", normal).Neutral() // the fallback on the same account
	c := r.conn("p", "a")
	if c.State != Cooling || len(c.Models) != 1 || c.Models[0] != "m1" || c.RetryAfterMs != 1000 {
		t.Fatalf("the connection shows %+v", c)
	}
	if p := r.provider("p"); !p.Available {
		t.Fatal("the provider shows as not available")
	}
	// Failures of a second model make it the whole connection's.
	r.fail("p/a/m2", err500)
	r.fail("p/a/m2", err500)
	r.refusedFor("p/a/m3", LayerConnection, KindServerError, sec)
	r.wantReady("p/b/m3", true)
	if c := r.conn("p", "a"); c.State != Cooling || len(c.Models) != 0 {
		t.Fatalf("the connection shows %+v", c)
	}
	// One model's answer takes back what the two proved together.
	r.at(sec)
	r.takeAs("p/a/m1", probing).Success()
	r.takeAs("p/a/m3", normal).Neutral()
	r.takeAs("p/a/m2", probing).Neutral()
}

// What the connection's account once had and is forgotten does not keep two models' failures apart.
func TestV4AForgottenCooldownHidesNoSecondModel(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Breaker.FailureThreshold, p.Cooldown.ForgetAfter = 100, 20*sec }))
	late := r.take("p/a/m")
	r.fail("p/a/n", err500.after(10*time.Minute))
	r.fail("p/a/o", account(KindAuth))
	r.at(3 * time.Minute) // its cooldown of two minutes is forgotten
	late.Failure(err500.after(5 * sec))
	r.refusedFor("p/a/o", LayerConnection, KindServerError, 7*time.Minute)
}

// A connection that its models' failures exclude once more keeps the level that it had (law A8), though
// a model's own was forgotten meanwhile.
func TestA8TheConnectionsLevelSurvivesItsModels(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Breaker.FailureThreshold, p.Cooldown.ForgetAfter = 100, 10*sec }))
	level := func(want int) {
		t.Helper()
		if c := r.conn("p", "a"); c.BackoffLevel != want {
			t.Errorf("at %v the level is %d, want %d", r.clock.Now().Sub(epoch), c.BackoffLevel, want)
		}
	}
	r.fail("p/a/n", err500)
	r.fail("p/a/n", err500)
	r.at(1 * sec)
	r.fail("p/a/n", err500)
	r.fail("p/a/m", err500.after(10*sec))
	level(2)
	r.at(13500 * ms) // the model's level is forgotten, the connection's not yet
	r.fail("p/a/n", err500.after(5*sec))
	level(2)
}

// A fallback to another model on the same account is never blocked by the first model's 5xx.
func TestV4AFallbackOnTheSameAccountIsNeverBlocked(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	served, blocked := 0, 0
	for i := range 400 {
		r.at(time.Duration(i) * 50 * ms)
		if p, err := r.Target(target("p/a/m1")).Acquire(); err == nil {
			p.Failure(err500)
		}
		p, err := r.Target(target("p/a/m2")).Acquire()
		if err != nil {
			blocked++
			continue
		}
		served++
		p.Success()
	}
	if blocked != 0 {
		t.Fatalf("the fallback was blocked %d times in 400", blocked)
	}
}

func TestV5TheBreakerGoverns(t *testing.T) {
	t.Parallel()
	r := newRig(t, noEarly)
	// Connection a cools by the ladder to 30 s and more, transiently; then the breaker opens.
	for _, at := range seconds(0, 1, 3, 7, 15) {
		r.at(at)
		r.RecordFailure(target("p/a/m1"), account(KindServerError))
	}
	r.at(20 * sec)
	for i := range 5 {
		r.RecordFailure(target(fmt.Sprintf("p/b%d/m%d", i, i%2)), err500)
	}
	r.wantState("p", Open, 5)
	// a cools until 31 s, the breaker is out until 50 s.
	r.refusedFor("p/a/m1", LayerBreaker, KindServerError, 30*sec)
	r.at(30 * sec)
	r.RecordFailure(target("p/a/m1"), account(KindServerError).after(10*time.Minute))
	x := r.refusedFor("p/a/m1", LayerBreaker, KindServerError, 20*sec)
	if x.RetryAfter != 20*sec {
		t.Fatalf("retry after %v, the breaker governs", x.RetryAfter)
	}
	r.at(50 * sec)
	probe := r.takeAs("p/a/m1", probing) // although a's own transient cooldown runs
	probe.FirstContent()
	for _, k := range []string{"p/a/m1", "p/b0/m0", "p/b1/m1"} {
		r.takeAs(k, normal).Neutral()
	}

	// A cooldown for another cause delays the probe on that connection.
	r = newRig(t, noEarly)
	r.fail("p/a/m", err429.after(5*time.Minute))
	r.trip("p")
	r.at(30 * sec)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 4*time.Minute+30*sec)
	r.takeAs("p/b/m", probing).Success()
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 4*time.Minute+30*sec)
}

func TestV11WhoHearsWhat(t *testing.T) {
	t.Parallel()
	type heard struct {
		breaker, conn, lock bool
		transient           bool // the model's cooldown on the connection
	}
	for scope := ScopeNone; scope <= ScopeLocal; scope++ {
		for _, kind := range Kinds() {
			if kind == KindCanceled || scope == ScopeNone {
				continue
			}
			var want heard
			switch transient := kind.Transient() || kind == KindUnknown; {
			case scope == ScopeModel:
				want.lock = true
			case scope == ScopeConnection:
				want.conn = true
			case scope == ScopeProvider && transient:
				want.breaker, want.transient = true, true
			case scope == ScopeProvider && kind == KindPermission:
				want.breaker = true
			case scope == ScopeProvider && (kind == KindRateLimit || kind == KindQuotaExhausted || kind == KindBilling || kind == KindAuth):
				want.conn = true
			}
			r := newRig(t, Options{})
			r.fail("p/a/m", Verdict{Scope: scope, Kind: kind})
			tt := r.Target(target("p/a/m"))
			got := heard{!tt.dom.breaker.clean(), !tt.conn.cool.clean(), !tt.lock.clean(), !tt.cool.clean()}
			if got != want {
				t.Errorf("%v/%v is heard by %+v, want %+v", scope, kind, got, want)
			}
			if kind == KindUnknown && want.conn && tt.conn.cool.kind != KindServerError {
				t.Errorf("unknown counts as %v", tt.conn.cool.kind)
			}
		}
	}
	r := newRig(t, Options{})
	r.fail("p/a/m", err500)
	r.take("p/a/m").Failure(Verdict{}) // none is a success
	r.wantState("p", Closed, 0)
}

// A verdict cannot be narrower than what the target names.
func TestScopeIsBoundedByTheKey(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a", model(KindRateLimit))
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, sec)
	r.fail("p", account(KindRateLimit))
	r.refused("p")
	r.wantReady("p/b/m", true)
	r.fail("q", model(KindServerError))
	r.wantState("q", Closed, 1)
	// Transient trouble of a target without a model is the connection's.
	r.fail("s/a", err500)
	r.fail("s/a", err500)
	r.refusedFor("s/a/m", LayerConnection, KindServerError, sec)
}

// A connection that overrides the base URL is its own failure domain.
func TestOwnEndpointIsItsOwnFailureDomain(t *testing.T) {
	t.Parallel()
	config := func(eu string) Config {
		return Config{Providers: map[string]Provider{"p": {Endpoint: "us.example:443",
			Connections: []Connection{{ID: "us"}, {ID: "eu", Endpoint: eu}, {ID: "us2"}}}}}
	}
	r := newRig(t, Options{Config: config("eu.example:443")})
	for i := range 5 {
		r.RecordFailure(target(fmt.Sprintf("p/us/m%d", i%2)), err500)
	}
	r.wantState("p", Open, 5)
	r.refused("p/us2/m")
	r.takeAs("p/eu/m", normal).Success() // and it says nothing of the other domain
	r.wantState("p", Open, 5)
	eu := r.conn("p", "eu")
	if eu.Breaker == nil || eu.Breaker.State != Closed || r.conn("p", "us").Breaker != nil {
		t.Fatalf("the breakers of the connections are wrong: %+v", eu)
	}
	if !r.provider("p").Available {
		t.Fatal("the provider is not available although eu is")
	}
	for i := range 5 {
		r.RecordFailure(target(fmt.Sprintf("p/eu/m%d", i%2)), err500)
	}
	if b := r.conn("p", "eu").Breaker; b.State != Open {
		t.Fatalf("its own breaker is %v", b.State)
	}
	if len(r.AllCircuitBreakerStatuses()) != 2 || r.AllCircuitBreakerStatuses()["p/eu"].State != Open {
		t.Fatalf("statuses: %v", r.AllCircuitBreakerStatuses())
	}
	// It joins its provider's domain, handles and permits included.
	handle := r.Target(target("p/eu/m9"))
	r.at(2 * sec)
	probe, err := handle.Acquire()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Configure(config("")); err != nil {
		t.Fatal(err)
	}
	probe.Success()
	if x, out := handle.Check(); out {
		t.Fatalf("the shared breaker lets an early probe pass at 2s, got %+v", x)
	}
	if r.conn("p", "eu").Breaker != nil {
		t.Fatal("the connection still shows a breaker of its own")
	}
}

// A run of failures from long ago is no reason to lock a model today.
func TestV4OldRunLocksNothing(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for range 4 {
		r.takeAs("p/a/m", normal).Failure(err500)
		r.Reset(target("p/a/m"), false)
	}
	r.at(35 * time.Minute)
	r.ok("p/a/other")
	if l, ok := r.lockout("p/a/m"); ok {
		t.Errorf("%+v", l)
	}
	r.wantReady("p/a/m", true)
}
