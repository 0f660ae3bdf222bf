package resilience_test

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// With several probes at a time the node that owns the gate makes them all, and nobody else any.
func TestK2TheOwnerMakesAllProbes(t *testing.T) {
	t.Parallel()
	o := resilience.Options{}
	o.Policy.Breaker = resilience.BreakerPolicy{HalfOpenRequests: 3, SuccessThreshold: 3, EarlyProbes: []time.Duration{}}
	inCluster(t, 2, o, func(t *testing.T, f *fleet) {
		for range 5 {
			f.RecordFailure(key, err500)
		}
		time.Sleep(35 * time.Second)
		var permits []resilience.Permit
		for i := 0; len(permits) < 3; i++ {
			if i > 20 {
				t.Fatalf("%d probes", len(permits))
			}
			if p, err := f.Target(key).Acquire(); err == nil {
				permits = append(permits, p)
				f.refused(1)
			}
			time.Sleep(soon)
		}
		f.refused(0)
		for i, p := range permits {
			p.FirstContent()
			p.Success()
			time.Sleep(soon)
			if i < 2 {
				f.refused(1)
			}
		}
		f.out(false)
	})
}

// Two gates at once: whoever has one of the leases hands it over to who needs both.
func TestK2LeasesDoNotBlockEachOther(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		locked := resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true}
		sibling := resilience.Key{Provider: "p", Connection: "a", Model: "n"}
		f.RecordFailure(key, err429)     // the connection
		f.RecordFailure(key, locked)     // and two models on it
		f.RecordFailure(sibling, locked) //
		f.all[1].RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		time.Sleep(10*time.Minute + 2*time.Second)
		_, _ = f.Target(key).Acquire()
		_, _ = f.all[1].Target(sibling).Acquire()
		for _, target := range []*resilience.Target{f.all[1].Target(sibling), f.Target(key)} {
			for i := 0; ; i++ {
				if p, err := target.Acquire(); err == nil {
					p.Success()
					break
				}
				if i > 10 {
					t.Fatal("they block each other")
				}
				time.Sleep(time.Second)
			}
		}
	})
}

// An OPEN breaker's early probe and a recheck are one in the cluster, too.
func TestK2EarlyProbesAndRechecks(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		for range 5 {
			f.RecordFailure(key, err500)
		}
		time.Sleep(2500 * time.Millisecond) // the first early probe is due
		passed := func() (n int, last resilience.Permit) {
			for range 4 {
				for _, e := range f.all {
					for range 20 {
						if p, err := e.Target(key).Acquire(); err == nil {
							n, last = n+1, p
						}
					}
				}
				time.Sleep(100 * time.Millisecond)
			}
			return n, last
		}
		n, p := passed()
		if n != 1 {
			t.Fatalf("%d early probes", n)
		}
		p.Failure(err500)
		time.Sleep(soon)
		if n, _ = passed(); n != 0 {
			t.Fatalf("%d more at once", n)
		}
		f.Reset(resilience.Key{}, false)
		time.Sleep(soon)
		f.all[2].RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: 5 * time.Hour})
		time.Sleep(16 * time.Minute)
		n, p = passed()
		if n != 1 || !p.Recheck() {
			t.Fatalf("%d rechecks", n)
		}
		p.Failure(err429)
		time.Sleep(soon)
		if n, _ = passed(); n != 0 {
			t.Fatalf("%d more at once", n)
		}
		for i := range f.all {
			f.cools(i, key, true)
		}
	})
}

// A last resort is one in the cluster, like a probe.
func TestK2LastResort(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 5 * time.Minute})
		time.Sleep(soon)
		try := func(i int) (resilience.Permit, error) { return f.all[i].Target(key).AcquireLastResort() }
		if _, err := try(0); err == nil {
			t.Fatal("let through without a lease")
		}
		time.Sleep(soon)
		p, err := try(0)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 20 {
			if _, err := try(i % 2); err == nil {
				t.Fatal("two at once")
			}
			time.Sleep(soon)
		}
		p.FirstContent()
		p.Success()
		time.Sleep(soon)
		f.out(false)
	})
}
