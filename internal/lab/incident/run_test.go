package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/failover"
	"omniroute/internal/lab/incident"
	"omniroute/resilience"
)

func small() incident.Scenario {
	return incident.Scenario{
		Name: "small", Length: 20 * time.Second, Rate: 50, Routes: fallback,
		Providers: []incident.Provider{primary(three, outage(5*time.Second, 10*time.Second)), {Name: "spare"}},
	}
}

func run(t *testing.T, s incident.Scenario, seed uint64) *incident.Result {
	t.Helper()
	r, err := incident.Run(s, seed)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// One seed gives one result, to the nanosecond; another one gives another.
func TestRunRepeats(t *testing.T) {
	t.Parallel()
	a, b, c := run(t, small(), 7), run(t, small(), 7), run(t, small(), 8)
	if d := cmp.Diff(a.Delays, b.Delays); d != "" {
		t.Error("the same seed gave other delays:", d)
	}
	if d := cmp.Diff(a.Failed, b.Failed); d != "" {
		t.Error("the same seed gave other failures:", d)
	}
	if cmp.Equal(a.Delays, c.Delays) {
		t.Error("another seed gave the same delays")
	}
}

// Every request is accounted for, and nothing is done twice.
func TestRunCounts(t *testing.T) {
	t.Parallel()
	r := run(t, small(), 1)
	total, given := r.Total(), 0
	for _, n := range r.Causes {
		given += n
	}
	sent := len(r.Dispatches("main", "")) + len(r.Dispatches("spare", ""))
	switch {
	case total.Requests < 800 || total.Requests > 1200:
		t.Errorf("%d requests in 20s at 50 a second", total.Requests)
	case total.Answered+given != total.Requests:
		t.Errorf("%d answered and %d given up of %d", total.Answered, given, total.Requests)
	case r.AnsweredBy("main")+r.AnsweredBy("spare") != total.Answered:
		t.Errorf("%d and %d answered of %d", r.AnsweredBy("main"), r.AnsweredBy("spare"), total.Answered)
	case sent != total.Answered+r.Wasted("main", "")+r.Wasted("spare", ""):
		t.Errorf("%d dispatched, %d answered, %d wasted", sent, total.Answered, r.Wasted("main", "")+r.Wasted("spare", ""))
	case r.Wasted("spare", "") != 0 || total.Share() != 1:
		t.Errorf("a healthy fallback left %v unanswered", r.Causes)
	}
	if d := r.Delay(0.5); d != 0 {
		t.Errorf("half of the requests were delayed by %v", d)
	}
}

// Without another target the requests wait, and those whose wait is too long are given up.
func TestRunWaits(t *testing.T) {
	t.Parallel()
	s := small()
	s.Routes, s.Limits = one, failover.Limits{MaxWait: time.Second}
	r := run(t, s, 1)
	if n := r.Causes[failover.CauseExhausted]; n < 50 || n > 350 || r.Delay(1) < time.Second {
		t.Errorf("%d of those in the outage and until the next probe were given up, the longest delay was %v", n, r.Delay(1))
	}
}

// Plain requests are answered by their end, and time out by their own bound.
func TestRunWhole(t *testing.T) {
	t.Parallel()
	s := small()
	s.Whole = true
	if share := run(t, s, 1).Total().Share(); share != 1 {
		t.Errorf("%v were answered", share)
	}
}

// A hang holds back what is due in it as well.
func TestRunHang(t *testing.T) {
	t.Parallel()
	s := incident.Scenario{
		Length: 10 * time.Second, Rate: 10, Even: true, Routes: one, FirstToken: 2 * time.Second,
		Providers: []incident.Provider{{Name: "main", First: incident.Spread{Median: time.Second},
			Faults: []incident.Fault{{From: 5 * time.Second, To: 5500 * time.Millisecond, Hang: true}}}},
	}
	if n := run(t, s, 1).Wasted("main", ""); n != 15 {
		t.Errorf("%d attempts hung, want those of one and a half seconds", n)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		want   string
		change func(*incident.Scenario)
	}{
		{"must be positive", func(s *incident.Scenario) { s.Rate = 0 }},
		{"must be positive", func(s *incident.Scenario) { s.Length = -1 }},
		{"has no route", func(s *incident.Scenario) { s.Routes = nil }},
		{"used twice", func(s *incident.Scenario) { s.Providers[1].Name = "main" }},
		{"which does not exist", func(s *incident.Scenario) { s.Providers = s.Providers[:1] }},
		{"share from 0 to 1", func(s *incident.Scenario) { s.Providers[1].Faults = []incident.Fault{{Share: 2}} }},
		{"From <= To", func(s *incident.Scenario) { s.Providers[1].Faults = []incident.Fault{{From: 2, To: 1}} }},
		{"failure threshold", func(s *incident.Scenario) { s.Policy.Breaker.FailureThreshold = -1 }},
	} {
		s := small()
		c.change(&s)
		if _, err := incident.Run(s, 1); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want an error with %q", err, c.want)
		}
	}
}

// The engine's policies count.
func TestRunPolicy(t *testing.T) {
	t.Parallel()
	s := small()
	s.Policy.Breaker.FailureThreshold = 1000
	if r := run(t, s, 1); r.Trips(resilience.LayerBreaker, resilience.EventOpened) != 0 {
		t.Error("the breaker opened before its threshold")
	}
	if r := run(t, small(), 1); r.Trips(resilience.LayerBreaker, resilience.EventOpened) == 0 {
		t.Error("the breaker never opened")
	}
}

// Hedging within its budget cuts the tail of a provider that is slow now and then, for no more
// further calls than the budget allows.
func TestRunHedges(t *testing.T) {
	t.Parallel()
	s := small()
	s.Length, s.Rate = 10*time.Minute, 20
	s.Providers = []incident.Provider{
		{Name: "main", Connections: three, First: incident.Spread{Median: 600 * time.Millisecond, Sigma: 1}},
		{Name: "spare"},
	}
	without := run(t, s, 1)
	s.Hedge = failover.Hedge{P95: true, Share: 0.05}
	with := run(t, s, 1)
	p99 := func(r *incident.Result) time.Duration { return r.Firsts[len(r.Firsts)*99/100] }
	share := float64(len(with.Dispatches("spare", ""))+len(with.Dispatches("main", ""))-with.Total().Requests) / float64(with.Total().Requests)
	t.Logf("without: p99 %v; with: p99 %v, %.2f%% more calls", p99(without).Round(time.Millisecond), p99(with).Round(time.Millisecond), 100*share)
	if p99(with) > p99(without)*4/5 {
		t.Errorf("p99 of the first content went from %v to %v", p99(without), p99(with))
	}
	if share > 0.055 || share < 0.03 {
		t.Errorf("%.2f%% more calls", 100*share)
	}
}
