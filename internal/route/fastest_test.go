package route

import (
	"strings"
	"testing"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/resilience"
)

// streams plays requests of a combo one after the other, each answered after the time that its
// connection takes at the moment, and returns who answered.
type streams struct {
	*upstreams
	t    *testing.T
	took map[string]time.Duration
}

func (s *streams) request() string {
	route, err := s.Resolve(catalog.OpenAI, "pair")
	if err != nil {
		s.t.Fatal(err)
	}
	a := Asked{Stream: true}
	p := route.Picker(a)
	defer route.Done(p)
	q := failover.NewRequest(route.Plan, p, true)
	act := q.Step(failover.Event{Type: failover.Begin}, s.clock.now)
	for act.Type == failover.Dispatch {
		c := act.Attempt.Target.Key().Connection
		if v, bad := s.fails["acme/"+c]; bad {
			s.clock.now = s.clock.now.Add(time.Millisecond)
			act = q.Step(failover.Event{Type: failover.Failed, Attempt: act.Attempt.ID, Verdict: v}, s.clock.now)
			continue
		}
		s.clock.now = s.clock.now.Add(s.took[c])
		q.Step(failover.Event{Type: failover.Content, Attempt: act.Attempt.ID}, s.clock.now)
		q.Step(failover.Event{Type: failover.Ended, Attempt: act.Attempt.ID}, s.clock.now)
		return c
	}
	s.t.Fatalf("%+v", act)
	return ""
}

func newStreams(t *testing.T) *streams {
	s := &streams{upstreams: newUpstreams(t, strings.Replace(accounts, "STRATEGY", "fastest", 1)), t: t, took: map[string]time.Duration{}}
	for _, c := range []string{"k1", "k2", "k3", "k4"} {
		s.took[c] = 200 * time.Millisecond
	}
	return s
}

func (s *streams) share(of string, requests int) float64 {
	n := 0
	for range requests {
		if s.request() == of {
			n++
		}
	}
	return float64(n) / float64(requests)
}

// TestFastest: everybody that is alike gets a share; one that becomes ten times slower gets under 5%
// within 20 requests, for as long as that lasts; and once it is well it gets its share again.
func TestFastest(t *testing.T) {
	t.Parallel()
	s := newStreams(t)
	for _, c := range []string{"k1", "k2", "k3", "k4"} {
		if x := s.share(c, 400); x < 0.15 || x > 0.35 {
			t.Errorf("%s got %.2f of requests that all answer alike", c, x)
		}
	}
	s.took["k2"] = 2 * time.Second
	s.share("k2", 20)
	if x := s.share("k2", 1000); x >= 0.05 || x == 0 {
		t.Errorf("ten times slower, it got %.3f", x)
	}
	s.took["k2"] = 200 * time.Millisecond
	s.share("k2", 400)
	if x := s.share("k2", 400); x < 0.15 {
		t.Errorf("well again, it got %.2f", x)
	}
}

// TestFastestKnowsWhoWaits: a target that hangs is known to be slow before its first answer comes, by
// those that wait for it.
func TestFastestKnowsWhoWaits(t *testing.T) {
	t.Parallel()
	s := newStreams(t)
	s.share("k1", 40)
	route, err := s.Resolve(catalog.OpenAI, "pair")
	if err != nil {
		t.Fatal(err)
	}
	hung := 0
	for i := range 400 {
		q := failover.NewRequest(route.Plan, route.Picker(Asked{Stream: true}), true)
		a := q.Step(failover.Event{Type: failover.Begin}, s.clock.now)
		s.clock.now = s.clock.now.Add(50 * time.Millisecond)
		if c := a.Attempt.Target.Key().Connection; c == "k3" {
			hung++ // and goes on waiting
			if i > 60 {
				t.Fatalf("request %d goes to one that hangs, as %d before it", i, hung-1)
			}
			continue
		}
		q.Step(failover.Event{Type: failover.Content, Attempt: a.Attempt.ID}, s.clock.now)
		q.Step(failover.Event{Type: failover.Ended, Attempt: a.Attempt.ID}, s.clock.now)
	}
}

// TestFailingIsNotFast: a target that refuses at once, in a way that no gate excludes it for, gets no
// more of the requests than the others under the strategies that go by load and by time.
func TestFailingIsNotFast(t *testing.T) {
	t.Parallel()
	for _, way := range []string{"fastest", "least-busy"} {
		s := &streams{upstreams: newUpstreams(t, strings.Replace(accounts, "STRATEGY", way, 1)), t: t, took: map[string]time.Duration{}}
		for _, c := range []string{"k1", "k2", "k3", "k4"} {
			s.took[c] = 200 * time.Millisecond
		}
		s.share("k1", 40)
		// Each failure is followed by a success elsewhere; only its own gate would count it, and that is
		// reset as by another model's answers.
		s.fails["acme/k1"] = resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindServerError}
		route, err := s.Resolve(catalog.OpenAI, "pair")
		if err != nil {
			t.Fatal(err)
		}
		first := 0
		for range 200 {
			p := route.Peek(Asked{Stream: true})
			at := failover.NewRequest(route.Plan, p, true).Choose(p, s.clock.now)
			if route.Plan.Targets[at].Key().Connection == "k1" {
				first++
			}
			s.request()
			s.engine.Reset(resilience.Key{}, true)
		}
		if first >= 40 { // one that is as good as the others is chosen 50 times
			t.Errorf("%s: one that fails at once was chosen first %d times of 200", way, first)
		}
	}
}
