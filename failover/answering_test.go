package failover

import (
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
)

// What parts from a request settles its attempt once and alone, however the answer ends, and the handle
// has no say any more.
func TestAnswering(t *testing.T) {
	t.Parallel()
	broke := resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
	for name, c := range map[string]struct {
		end  func(p *Answering)
		want Outcome
		out  bool // the connection cools down afterwards
	}{
		"good":      {func(p *Answering) { p.End(resilience.Verdict{}, 200, time.Now()) }, OutcomeAnswered, false},
		"broken":    {func(p *Answering) { p.End(broke, 200, time.Now()) }, OutcomeFailed, true},
		"client":    {func(p *Answering) { p.End(resilience.Verdict{Scope: resilience.ScopeClient}, 200, time.Now()) }, OutcomeCanceled, false},
		"abandoned": {func(p *Answering) { p.Abandon(time.Now()) }, OutcomeCanceled, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, rn := wired(t)
				plan := planned(t, e, Limits{MaxAttempts: 1}, key("a/1/m"))
				places := new(Places)
				places.Limit(1)
				plan.Targets[0].Places = places
				h := rn.Handle(NewRequest(plan, nil, true))
				a := h.Do(Event{Type: Begin})
				time.Sleep(time.Second)
				if act := h.Do(Event{Type: Content, Attempt: a.Attempt.ID}); act.Type != Commit {
					t.Fatalf("action %v", act.Type)
				}
				p := h.Part()
				if h.Tell(Event{Type: Woken}) || h.Do(Event{Type: Ended, Attempt: a.Attempt.ID, Verdict: broke}).Type != Finish {
					t.Error("the handle still takes part")
				}
				if n := places.Used(); n != 1 {
					t.Errorf("%d places are taken while the answer is on its way", n)
				}
				time.Sleep(time.Minute)
				c.end(&p)
				p.Abandon(time.Now()) // and nothing after that
				p.End(broke, 500, time.Now())
				r := p.Records()
				if len(r) != 1 || r[0].Outcome != c.want || r[0].FirstContent != time.Second || r[0].Duration != time.Minute+time.Second {
					t.Errorf("records %+v", r)
				}
				if _, out := plan.Targets[0].Check(); out != c.out {
					t.Errorf("excluded: %v", out)
				}
				if n := places.Used(); n != 0 {
					t.Errorf("%d places are taken when it is over", n)
				}
			})
		})
	}
}
