package resilience_test

import (
	"errors"
	"testing"
	"time"

	"omniroute/resilience"
)

// While the store is away every node goes on by itself; when it is back the views are one again.
func TestK3Isolation(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.ways[0].Cut(errGone)
		f.ways[1].Cut(errGone)
		time.Sleep(moment)
		if f.state(0) != resilience.ClusterIsolated || f.Status().Persistence != "degraded" {
			t.Fatalf("%s, persistence %s", f.state(0), f.Status().Persistence)
		}
		f.RecordFailure(key, err429)
		time.Sleep(1500 * time.Millisecond)
		f.out(false, 1)
		if p, err := f.Target(key).Acquire(); err != nil || !p.Probe() {
			t.Fatalf("an isolated node does not probe by itself: %v", err)
		} else {
			p.Failure(err429)
		}
		f.all[1].RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: time.Hour})
		f.hub.Empty() // and what was there is lost
		f.ways[0].Cut(nil)
		f.ways[1].Cut(nil)
		time.Sleep(2 * time.Second)
		for i, e := range f.all {
			c := e.Status().Providers[0].Connections[0]
			if f.state(i) != resilience.ClusterOK || c.BackoffLevel != 2 || c.RetryAfterMs < 3_500_000 || *c.Kind != resilience.KindQuotaExhausted {
				t.Errorf("node %d: %s %+v", i, f.state(i), c)
			}
		}
	})
}

// A node that stops while the store is away complains of what it could not store, and only of that, whether it has noticed
// already or not.
func TestStopWhileIsolated(t *testing.T) {
	t.Parallel()
	for _, noticed := range []time.Duration{0, moment} {
		inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
			f.RecordFailure(key, err429)
			time.Sleep(moment)
			f.ways[0].Cut(errGone)
			f.ways[1].Cut(errGone)
			time.Sleep(noticed)
			if err := f.all[1].Exclude(key, time.Hour, "repair"); err != nil {
				t.Fatal(err)
			}
			if err := f.all[0].Stop(t.Context()); err != nil {
				t.Errorf("it had nothing to store: %v", err)
			}
			if err := f.all[1].Stop(t.Context()); !errors.Is(err, errGone) {
				t.Errorf("an operator's word is lost in silence: %v", err)
			}
		})
	}
}

// What a node missed while it was cut off holds when it returns: its old failure stays cleared.
func TestK3AnOldFailureStaysCleared(t *testing.T) {
	t.Parallel()
	for name, clearIt := range map[string]func(f *fleet){
		"by a probe": func(f *fleet) {
			time.Sleep(20 * time.Minute)
			if _, err := f.Target(key).Acquire(); err == nil {
				f.t.Fatal("no lease was asked for")
			}
			time.Sleep(soon)
			p, err := f.Target(key).Acquire()
			if err != nil {
				f.t.Fatal(err)
			}
			p.Success()
		},
		"by an operator": func(f *fleet) { f.Reset(resilience.Key{}, false) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
				f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: 5 * time.Hour})
				time.Sleep(soon)
				f.ways[2].Cut(errGone)
				time.Sleep(moment)
				// One that the others have not heard of yet when it is over.
				other := resilience.Key{Provider: "p", Connection: "b", Model: "m"}
				f.all[2].RecordFailure(other, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: 5 * time.Hour})
				time.Sleep(time.Second)
				clearIt(f)
				time.Sleep(soon)
				f.cools(0, key, false)
				f.cools(2, key, true)
				f.ways[2].Cut(nil)
				time.Sleep(2 * time.Second)
				for i := range f.all {
					f.cools(i, key, false)
					f.cools(i, other, name == "by a probe")
				}
			})
		})
	}
}

func (f *fleet) cools(node int, k resilience.Key, want bool) {
	f.t.Helper()
	for _, c := range f.all[node].Status().Providers[0].Connections {
		if c.ID == k.Connection && (c.State == resilience.Cooling) != want {
			f.t.Errorf("node %d: %s is %s", node, c.ID, c.State)
		}
	}
}

// A clearing ends what was known, not a failure that came after it.
func TestK1AClearingDoesNotWipeANewerFailure(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, err429)
		time.Sleep(1500 * time.Millisecond)
		p := f.probe(0)
		f.ways[1].Slow(400 * time.Millisecond)
		time.Sleep(50 * time.Millisecond)
		f.all[1].RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: time.Hour})
		p.Success() // before the failure was heard of
		f.out(false, 0)
		time.Sleep(2 * time.Second)
		f.out(true)
	})
}

// An operator's word on one node holds on all: exclusions, their end, resets.
func TestOperatorsWordHoldsOnAll(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		if err := f.Exclude(resilience.Key{Provider: "p"}, 10*time.Minute, "maintenance"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(soon)
		f.out(true)
		if o := f.all[2].Status().Operator; len(o) != 1 || o[0].Reason != "maintenance" {
			t.Errorf("%+v", o)
		}
		if err := f.all[1].Exclude(resilience.Key{Provider: "p"}, time.Minute, "shorter"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(soon)
		for i, e := range f.all {
			if o := e.Status().Operator; len(o) != 1 || o[0].Reason != "shorter" || o[0].Until.Sub(e.Status().Now.Time) > time.Minute {
				t.Errorf("node %d: %+v", i, o)
			}
		}
		f.all[1].Include(resilience.Key{Provider: "p"})
		time.Sleep(soon)
		f.out(false)
		// A reset reaches counts that were nobody else's business, and quarantines.
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindBilling, Quarantine: true})
		for range 3 {
			f.all[2].RecordFailure(resilience.Key{Provider: "q", Connection: "a", Model: "m"}, err500)
		}
		time.Sleep(soon)
		f.out(true)
		f.all[1].Reset(resilience.Key{}, true)
		time.Sleep(soon)
		f.out(false)
		for _, p := range f.all[2].Status().Providers {
			if p.Breaker.Failures != 0 {
				t.Errorf("%s still counts %d failures", p.ID, p.Breaker.Failures)
			}
		}
	})
}

// P5: nothing but beats while everything is well, and nothing for failures that exclude nobody.
func TestP5NothingIsSentOnTheHappyPath(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		before := f.ways[0].Calls()
		for range 100 {
			p, err := f.Target(key).Acquire()
			if err != nil {
				t.Fatal(err)
			}
			p.FirstContent()
			p.Success()
			f.RecordFailure(key, err500) // one in a row
			f.RecordSuccess(key)
			time.Sleep(100 * time.Millisecond)
		}
		if n := f.ways[0].Calls() - before; n != 0 {
			t.Errorf("%d calls", n)
		}
	})
}

// Status knows the nodes, and for how long one was not seen.
func TestNodesAreListed(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.ways[1].Cut(errGone)
		time.Sleep(10 * time.Second)
		c := f.Cluster()
		if c.State != "ok" || c.Node != "node-0" || c.Count != 3 || len(c.Nodes) != 3 {
			t.Fatalf("%+v", c)
		}
		for _, n := range c.Nodes {
			if want := n.ID == "node-1"; n.Stale != want || n.AgeMs > 5000 != want || n.Self != (n.ID == "node-0") {
				t.Errorf("%+v", n)
			}
		}
		if c := f.all[1].Cluster(); c.State != "isolated" || c.LastContact.IsZero() {
			t.Errorf("%+v", c)
		}
		f.stop(f.all[2])
		time.Sleep(2 * time.Second)
		if c := f.Cluster(); c.Count != 2 {
			t.Errorf("a node that left is still counted: %+v", c)
		}
		f.all = f.all[:2]
	})
}

// A clearing that the store has forgotten keeps out nothing on the node that remembers it: what one brings along that was
// apart goes for all again, however old it is.
func TestK3AForgottenClearingHidesNothing(t *testing.T) {
	t.Parallel()
	o := resilience.Options{Config: resilience.Config{Policy: resilience.Policy{Cooldown: resilience.CooldownPolicy{ForgetAfter: 2 * time.Second}}}}
	inCluster(t, 2, o, func(t *testing.T, f *fleet) {
		time.Sleep(30 * time.Second) // sweeps are far apart
		f.ways[0].Cut(errGone)
		time.Sleep(moment)
		f.all[1].RecordFailure(key, err429)
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: time.Hour})
		time.Sleep(1500 * time.Millisecond)
		f.probe(1).Success()
		time.Sleep(4 * time.Second)
		f.out(false, 1)
		f.ways[0].Cut(nil)
		time.Sleep(3 * time.Second)
		f.out(true)
	})
}
