package resilience

import (
	"testing"
)

// moving is a provider with a connection at the provider's address and one that a reload moves.
func moving(own bool) Config {
	a := Connection{ID: "a"}
	if own {
		a.Endpoint = "elsewhere.example:443"
	}
	return Config{
		Policy:    Policy{Breaker: BreakerPolicy{FailureThreshold: 2}, Lockout: LockoutPolicy{MaxAttempts: 1}},
		Providers: map[string]Provider{"p": {Endpoint: "p.example:443", Connections: []Connection{a, {ID: "b"}}}},
	}
}

func (r *rig) move(own bool) {
	r.t.Helper()
	if err := r.Configure(moving(own)); err != nil {
		r.t.Fatal(err)
	}
}

// TestA2SlotOfAConnectionThatMoved: a connection gets an address of its own by a reload while its attempt is the
// provider's probe. The probe decides about the provider all the same, and its slot is free again at once.
func TestA2SlotOfAConnectionThatMoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settle   func(Permit)
		want     BreakerState
		failures int
	}{
		"neutral":       {Permit.Neutral, HalfOpen, 2},
		"success":       {Permit.Success, Closed, 0},
		"first content": {Permit.FirstContent, Closed, 0},
		"failure":       {func(p Permit) { p.Failure(err500) }, Open, 3},
		"of the account": {func(p Permit) {
			p.Failure(err429)
		}, HalfOpen, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{Config: moving(false)})
			r.fail("p/b/m", err500)
			r.fail("p/b/n", err500)
			r.wantState("p", Open, 2)
			r.at(30 * sec)
			probe := r.takeAs("p/a/m", probing)
			r.move(true)
			if x := r.refused("p/b/m"); !x.Held {
				t.Fatalf("while the probe is in flight: %v", x)
			}
			c.settle(probe)
			r.wantState("p", c.want, c.failures)
			if b := r.conn("p", "a").Breaker; b == nil || b.State != Closed || b.Failures != 0 {
				t.Fatalf("the breaker of the new address is %+v", b)
			}
			if c.want == HalfOpen {
				r.takeAs("p/b/m", probing)
			}
		})
	}
}

// TestV2OfAnotherAddress: what an attempt tells of the address that it was sent to says nothing of the one that
// its connection has since.
func TestV2OfAnotherAddress(t *testing.T) {
	t.Parallel()
	t.Run("moved away", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: moving(false)})
		first, second, slow := r.take("p/a/m"), r.take("p/a/n"), r.take("p/a/m")
		r.move(true)
		slow.Waited()
		first.Failure(err500)
		r.wantState("p", Closed, 1)
		second.Failure(err500)
		r.wantState("p", Open, 2)
		if b := r.conn("p", "a").Breaker; b.State != Closed || b.Failures != 0 {
			t.Fatalf("the breaker of the new address is %+v", b)
		}
	})
	t.Run("moved home", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: moving(true)})
		first, second := r.take("p/a/m"), r.take("p/a/n")
		r.move(false)
		first.Failure(err500)
		second.Failure(err500)
		r.wantState("p", Closed, 0)
	})
	t.Run("moved home, with a run of failures", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: moving(true)})
		r.fail("p/a/m", err500)
		n, worse, worst := r.take("p/a/n"), r.take("p/a/n"), r.take("p/a/n")
		r.move(false)
		r.Reset(Key{Provider: "p"}, false)
		n.Success() // the failing model's neighbour is well, but who asks for either at the old address?
		worse.Failure(err500)
		worst.Failure(err500)
		if _, locked := r.lockout("p/a/m"); locked {
			t.Error("what was reset has come back from an address that nobody has")
		}
		r.wantState("p", Closed, 0)
		if n := r.seen(EventOpened) + r.seen(EventDegraded); n != 0 {
			t.Errorf("%d events tell of a breaker that nobody has", n)
		}
	})
	t.Run("there and back", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: moving(true)})
		first, second := r.take("p/a/m"), r.take("p/a/n")
		r.move(false)
		r.move(true)
		first.Failure(err500)
		second.Failure(err500)
		if b := r.conn("p", "a").Breaker; b.State != Open {
			t.Fatalf("the breaker of the address that was called is %+v", b)
		}
	})
	t.Run("a success", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{Config: moving(false)})
		old := r.take("p/a/m")
		r.move(true)
		r.fail("p/a/m", err500)
		old.Success()
		if b := r.conn("p", "a").Breaker; b.Failures != 1 {
			t.Fatalf("a success at the old address has emptied the count of the new one: %+v", b)
		}
	})
	t.Run("a local outage undoes it", func(t *testing.T) {
		t.Parallel()
		c := moving(false)
		c.Providers["q"] = Provider{Endpoint: "q.example:443", Connections: []Connection{{ID: "a"}}}
		r := newRig(t, Options{Config: c})
		old := r.take("p/a/m")
		c = moving(true)
		c.Providers["q"] = Provider{Endpoint: "q.example:443", Connections: []Connection{{ID: "a"}}}
		if err := r.Configure(c); err != nil {
			t.Fatal(err)
		}
		old.Failure(dialErr)
		r.wantState("p", Closed, 1)
		r.fail("q/a/m", dialErr)
		if !r.LocalOutage() {
			t.Fatal("two unrelated endpoints cannot be dialled, and it is no local outage")
		}
		r.wantState("p", Closed, 0)
	})
}

// TestR9AHandleOfBeforeSuspectsToo: who holds a target from before a reload moved it hears of a suspicion at its address
// of now, as of every other exclusion there.
func TestR9AHandleOfBeforeSuspectsToo(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: moving(false)})
	before := r.Target(target("p/a/m"))
	r.move(true)
	for range 2 {
		r.take("p/a/m").Waited()
	}
	if !before.Suspected() || !r.Target(target("p/a/m")).Suspected() {
		t.Error("a provider that hangs is not suspected")
	}
}
