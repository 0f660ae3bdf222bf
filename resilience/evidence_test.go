package resilience

import (
	"fmt"
	"testing"
	"time"
)

func TestA6LateReports(t *testing.T) {
	t.Parallel()
	t.Run("after the cooldown expired", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		late, hinted := r.take("p/a/m"), r.take("p/a/m")
		r.fail("p/a/m", err429)
		r.at(1500 * ms)
		late.Failure(err429)
		r.wantReady("p/a/m", true)
		hinted.Failure(err429.after(3 * sec))
		r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 3*sec)
		if c := r.conn("p", "a"); c.BackoffLevel != 1 {
			t.Fatalf("late reports made level %d", c.BackoffLevel)
		}
	})
	t.Run("after a probe cleared it", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		late, hinted := r.take("p/a/m"), r.take("p/a/m")
		r.fail("p/a/m", err429)
		r.at(sec)
		r.ok("p/a/m")
		late.Failure(err429)
		r.takeAs("p/a/m", normal).Neutral()
		hinted.Failure(err429.after(7 * sec))
		r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 7*sec)
		if c := r.conn("p", "a"); c.BackoffLevel != 0 {
			t.Fatalf("a late report made level %d", c.BackoffLevel)
		}
	})
	t.Run("an open breaker", func(t *testing.T) { // C002 b
		t.Parallel()
		r := newRig(t, policy(func(p *Policy) { p.Breaker.EarlyProbes = []time.Duration{} }))
		var late []Permit
		for range 3 {
			late = append(late, r.take("p/z/m0"))
		}
		r.trip("p")
		for i, at := range []time.Duration{5 * sec, 10 * sec, 25 * sec} {
			r.at(at)
			late[i].Failure(err500)
			r.wantState("p", Open, 5)
		}
		r.at(30 * sec)
		r.takeAs("p/a/m0", probing).Success()
		r.wantState("p", Closed, 0)
	})
	t.Run("a closed breaker", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		var late []Permit
		for i := range 10 {
			late = append(late, r.take(fmt.Sprintf("p/z%d/m", i)))
		}
		r.trip("p")
		r.at(30 * sec)
		r.ok("p/a/m0")
		for _, p := range late {
			p.Failure(err500.after(20 * sec))
		}
		r.wantState("p", Closed, 0)
	})
	t.Run("a locked model", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		late, certain := r.take("p/a/m"), r.take("p/a/m")
		r.fail("p/a/m", model(KindModelNotFound).after(5*sec))
		r.at(6 * sec)
		late.Failure(model(KindModelNotFound))
		r.wantReady("p/a/m", true)
		certain.Failure(model(KindModelNotFound).after(100 * ms))
		r.refusedFor("p/a/m", LayerModel, KindModelNotFound, sec) // a stated lock lasts at least 1s
	})
}

func TestA7SuccessClearsByEvidence(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		verdict Verdict
		clears  bool // a success that began before the failure and came after it
	}{
		{"transient of the connection", account(KindServerError), true},
		{"overloaded model", model(KindModelOverloaded), true},
		{"rate limit", err429, false},
		{"rate limit of the model", model(KindRateLimit), false},
		{"quota", account(KindQuotaExhausted), false},
		{"auth", account(KindAuth), false},
		{"billing", account(KindBilling), false},
		{"quarantine", revoked, false},
		{"model not found", model(KindModelNotFound), false},
		{"no access", model(KindPermission), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, how := range []func(Permit){Permit.FirstContent, Permit.Success} {
				r := newRig(t, Options{})
				before := r.take("p/a/m")
				r.fail("p/a/m", c.verdict)
				how(before)
				r.wantReady("p/a/m", c.clears)
			}
		})
	}
	t.Run("content before the failure proves nothing", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		stream := r.take("p/a/m")
		stream.FirstContent()
		r.fail("p/a/m", account(KindServerError))
		stream.Success() // the end of a stream can only add a failure
		r.wantReady("p/a/m", false)
	})
	t.Run("a count", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		before := r.take("p/b/n")
		for range 4 {
			r.RecordFailure(target("p/a/m"), err500)
		}
		r.wantState("p", Degraded, 4)
		before.FirstContent()
		r.wantState("p", Closed, 0)
	})
	t.Run("an open breaker", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, Options{})
		before := r.take("p/a/m0")
		r.trip("p")
		before.FirstContent()
		r.wantState("p", Open, 5)
	})
	t.Run("five cut streams open the breaker", func(t *testing.T) { // C038, C112
		t.Parallel()
		r := newRig(t, Options{})
		var streams []Permit
		for i := range 5 {
			p := r.take(fmt.Sprintf("p/c%d/m", i))
			p.FirstContent()
			streams = append(streams, p)
		}
		for _, p := range streams {
			p.Failure(err500)
		}
		r.wantState("p", Open, 5)
	})
}

func TestA8LevelSurvivesExpiry(t *testing.T) { // C015, C127
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err429)
	at := sec
	r.at(at)
	r.fail("p/a/m", err429)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 2*sec)

	// Just before forget_after the level still counts, at it no more.
	r.at(at + 2*sec + 5*time.Minute - 1)
	r.takeAs("p/a/m", probing).Failure(err429)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, 4*sec)
	at = r.clock.Now().Sub(epoch)
	r.at(at + 4*sec + 5*time.Minute)
	r.takeAs("p/a/m", normal).Failure(err429)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, sec)

	// A success empties it.
	r.at(r.clock.Now().Sub(epoch) + sec)
	r.ok("p/a/m")
	r.fail("p/a/m", err429)
	r.refusedFor("p/a/m", LayerConnection, KindRateLimit, sec)
}

func TestA9NeutralEverywhere(t *testing.T) {
	t.Parallel()
	for _, v := range []Verdict{
		{Scope: ScopeRequest, Kind: KindContextLength}, {Scope: ScopeClient, Kind: KindInvalidRequest},
		{Scope: ScopeLocal, Kind: KindTimeout}, {Scope: ScopeLocal, Kind: KindNetwork}, {Scope: ScopeClient, Kind: KindCanceled},
		{Scope: ScopeProvider, Kind: KindCanceled}, {Scope: ScopeConnection, Kind: KindCanceled},
		{Scope: ScopeModel, Kind: KindCanceled, Certain: true},
	} {
		t.Run(v.String(), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			for range 20 {
				r.fail("p/a/m", v)
				r.take("p/a/m").Neutral()
			}
			r.wantState("p", Closed, 0)
			r.takeAs("p/a/m", normal).Neutral()
			if len(r.events) != 0 {
				t.Fatalf("neutral results caused %v", r.events)
			}
		})
	}
}
