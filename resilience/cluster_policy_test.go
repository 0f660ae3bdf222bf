package resilience_test

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// brief has a node rest for little and forget soon.
var brief = resilience.Policy{
	Hints:    resilience.HintPolicy{Max: 5 * time.Second},
	Cooldown: resilience.CooldownPolicy{Base: time.Second, Max: time.Second, ForgetAfter: 2 * time.Second},
	Recheck:  resilience.RecheckPolicy{After: -1},
}

// A node that may not believe so long a hint rechecks early; what it believes shortens nobody's exclusion (law A5). Its
// recheck's success ends it for all.
func TestK1AShorterPolicyBindsItsNodeAlone(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		if err := f.all[1].Configure(resilience.Config{Policy: resilience.Policy{
			Hints: resilience.HintPolicy{Max: 5 * time.Second}, Recheck: resilience.RecheckPolicy{After: 10 * time.Second},
		}}); err != nil {
			t.Fatal(err)
		}
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		began := time.Now()
		time.Sleep(time.Minute)
		p, err := f.all[1].Target(key).Acquire()
		for range 10 {
			if err == nil {
				break
			}
			time.Sleep(soon) // the lease is asked for
			p, err = f.all[1].Target(key).Acquire()
		}
		if err != nil || !p.Recheck() {
			t.Fatalf("no recheck: %v", err)
		}
		time.Sleep(soon)
		if x, _ := f.Target(key).Check(); x.RetryAfter < 9*time.Minute-time.Since(began) {
			t.Errorf("the other node waits %v", x.RetryAfter)
		}
		p.Success()
		time.Sleep(soon)
		f.out(false)
	})
}

// Time ends an exclusion on each node by its own policy, and a failure on one that rests for less shortens
// nothing for the others (law A5). A success ends it for all.
func TestK1WhatANodeForgetsStandsForTheOthers(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		if err := f.all[1].Configure(resilience.Config{Policy: brief}); err != nil {
			t.Fatal(err)
		}
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		until := time.Now().Add(10 * time.Minute)
		stands := func(what string) {
			t.Helper()
			time.Sleep(soon)
			if x, _ := f.Target(key).Check(); (x.RetryAfter - time.Until(until)).Abs() > 100*time.Millisecond {
				t.Errorf("after %s the other node waits %v, want %v", what, x.RetryAfter, time.Until(until))
			}
		}
		time.Sleep(time.Minute)
		f.out(false, 1)
		stands("a minute")
		p, err := f.all[1].Target(key).Acquire()
		if err != nil {
			t.Fatal(err)
		}
		p.Neutral()
		stands("a request of the node that has forgotten it")
		f.all[1].RecordFailure(key, err429)
		stands("a failure there")
		time.Sleep(1500 * time.Millisecond)
		f.probe(1).Failure(err429)
		stands("a failed probe there")
		time.Sleep(1500 * time.Millisecond)
		f.probe(1).Success()
		time.Sleep(soon)
		f.out(false)
	})
}

// A node whose new policy allows more heeds what the others have said before.
func TestK1ALongerPolicyHeedsWhatIsKnown(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		configure := func(p resilience.Policy) {
			if err := f.all[1].Configure(resilience.Config{Policy: p}); err != nil {
				t.Fatal(err)
			}
		}
		configure(brief)
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		time.Sleep(soon)
		configure(resilience.Policy{})
		if x, _ := f.all[1].Target(key).Check(); x.RetryAfter < 9*time.Minute {
			t.Errorf("it waits %v", x.RetryAfter)
		}
	})
}

// What a node's own policy lets it believe the others for is counted from the failure: to hear of it again, by a
// reload, moves nothing.
func TestK1AReloadBelievesNobodyForLonger(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		configure := func() {
			if err := f.all[1].Configure(resilience.Config{Policy: brief}); err != nil {
				t.Fatal(err)
			}
		}
		configure()
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		time.Sleep(soon)
		f.out(true)
		time.Sleep(time.Minute)
		f.out(true, 0)
		configure()
		if x, out := f.all[1].Target(key).Check(); out && x.RetryAfter > 0 {
			t.Errorf("after a reload it waits %v more", x.RetryAfter)
		}
	})
}

// What is said of one credential neither ends nor hides what is said of another on a node that uses that.
func TestV8NodesWithAnotherCredential(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		for i, e := range f.all {
			credential := "old"
			if i > 0 {
				credential = "new"
			}
			p := resilience.Provider{Connections: []resilience.Connection{{ID: "a", Credential: credential}}}
			if err := e.Configure(resilience.Config{Providers: map[string]resilience.Provider{"p": p}}); err != nil {
				t.Fatal(err)
			}
		}
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
		time.Sleep(soon)
		f.out(true, 0)
		f.out(false, 1, 2)
		f.all[1].RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute})
		time.Sleep(soon)
		f.out(true)
		time.Sleep(2 * time.Minute)
		f.out(true, 0)
		f.out(false, 1, 2)
	})
}

// News of an exclusion that a node has already shortens nothing, though its policy would not let it begin one that long.
func TestA5NewsDoesNotShortenWhatStands(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		late, err := f.Target(key).Acquire()
		if err != nil {
			t.Fatal(err)
		}
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		time.Sleep(soon)
		if err := f.all[1].Configure(resilience.Config{Policy: brief}); err != nil {
			t.Fatal(err)
		}
		late.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 10 * time.Minute})
		time.Sleep(soon)
		if x, _ := f.all[1].Target(key).Check(); x.RetryAfter < 9*time.Minute {
			t.Errorf("it waits %v", x.RetryAfter)
		}
	})
}

// What a node undoes of its own local outage it takes back for all (law A10).
func TestA10AnUndoneFailureIsUndoneForAll(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{Config: resilience.Config{Policy: resilience.Policy{Cooldown: resilience.CooldownPolicy{TransientAfter: 1}}}}, func(t *testing.T, f *fleet) {
		dial := resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindNetwork, Dial: true}
		f.RecordFailure(key, dial)
		time.Sleep(soon)
		f.out(true)
		f.RecordFailure(resilience.Key{Provider: "q", Connection: "a", Model: "m"}, dial)
		time.Sleep(soon)
		f.out(false)
	})
}

// A graver cause that is learned late leaves the end as it is, however little its own kind may last.
func TestK3AGraverCauseDoesNotShorten(t *testing.T) {
	t.Parallel()
	o := resilience.Options{Config: resilience.Config{Policy: resilience.Policy{Hints: resilience.HintPolicy{MaxQuota: time.Minute}}}}
	inCluster(t, 2, o, func(t *testing.T, f *fleet) {
		late, err := f.Target(key).Acquire()
		if err != nil {
			t.Fatal(err)
		}
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted}) // five minutes
		time.Sleep(time.Minute)
		late.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindBilling})
		f.add(2, o)
		time.Sleep(moment)
		for i, e := range f.all {
			if x, _ := e.Target(key).Check(); x.Kind != resilience.KindBilling || x.RetryAfter < 3*time.Minute {
				t.Errorf("node %d is out for %v (%v)", i, x.RetryAfter, x.Kind)
			}
		}
	})
}
