package resilience

import (
	"testing"
	"time"
)

// Answers that begin well and break off are failures too, and only one that ends well refutes
// them: without that, a provider that cuts every stream would have a clean record for ever.

var cut = Verdict{Scope: ScopeProvider, Kind: KindNetwork, RetryElsewhere: true}

func (r *rig) breakOff(k string) {
	p := r.takeAs(k, normal)
	p.FirstContent()
	p.Failure(cut)
}

func TestBrokenAnswersTrip(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{Policy: Policy{Cooldown: CooldownPolicy{TransientAfter: 100}}}})
	for range 4 {
		r.breakOff("p/a/m")
	}
	r.wantState("p", Degraded, 4)
	r.breakOff("p/b/m")
	r.wantState("p", Open, 5)

	// The probe's first content closes it as ever; when the probe breaks off too it opens again.
	r.at(31 * time.Second)
	p := r.take("p/a/m")
	if !p.Probe() {
		t.Fatal("no probe")
	}
	p.FirstContent()
	r.wantState("p", Degraded, 5)
	p.Failure(cut)
	r.wantState("p", Open, 6)

	r.at(62 * time.Second)
	p = r.take("p/a/m")
	p.FirstContent()
	p.Success()
	r.wantState("p", Closed, 0)
	r.breakOff("p/a/m")
	r.wantState("p", Closed, 1)
}

func TestAGoodEndRefutesBrokenAnswers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for range 20 {
		r.breakOff("p/a/m")
		r.wantReady("p/a/m", true)
		p := r.takeAs("p/a/m", normal)
		p.FirstContent()
		r.wantState("p", Closed, 1)
		p.Success()
		r.wantState("p", Closed, 0)
		r.breakOff("p/a/m")
		r.takeAs("p/a/m", normal).Success() // a whole answer has ended with its first content
		r.wantState("p", Closed, 0)
	}
}

func TestBrokenAnswersClimbTheLadder(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{Policy: Policy{Breaker: BreakerPolicy{FailureThreshold: 100}}}})
	r.breakOff("p/a/m")
	r.breakOff("p/a/m")
	for _, want := range []time.Duration{sec, 2 * sec, 4 * sec, 8 * sec, 16 * sec, 30 * sec, 30 * sec} {
		x := r.refused("p/a/m")
		if x.RetryAfter != want {
			t.Fatalf("out for %v, want %v", x.RetryAfter, want)
		}
		r.at(r.clock.Now().Sub(epoch) + x.RetryAfter)
		p := r.take("p/a/m")
		p.FirstContent()
		r.wantReady("p/a/m", true)
		p.Failure(cut)
	}
}

func TestBrokenAnswersSurviveARestart(t *testing.T) {
	t.Parallel()
	store := newStore()
	r := newRig(t, Options{Store: store})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 4 {
		r.breakOff("p/a/m")
		r.Reset(target("p/a/m"), false)
	}
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := newRig(t, Options{Store: store})
	if err := n.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = n.Stop(t.Context()) })
	p := n.take("p/a/m")
	p.FirstContent()
	n.wantState("p", Degraded, 4)
	p.Failure(cut)
	n.wantState("p", Open, 5)
}
