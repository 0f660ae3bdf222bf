package route

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/resilience"
)

// clock is a time that stands until it is moved.
type clock struct{ now time.Time }

func (c *clock) Now() time.Time { return c.now }

func newClockRouter(t interface {
	Fatal(...any)
	Helper()
}, outer *testing.T, text string) (*Router, *resilience.Engine, *clock) {
	t.Helper()
	cfg := parse(outer, text)
	c := &clock{time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)}
	e, err := resilience.New(resilience.Options{Config: EngineConfig(cfg), Now: c.Now})
	if err != nil {
		t.Fatal(err)
	}
	r, err := New(cfg, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r, e, c
}

// explain is Explain for a request of which nothing is known.
func explain(r *Route, now time.Time) []Candidate {
	candidates, _ := Explain(r, Question{}, now)
	return candidates
}

func TestExplain(t *testing.T) {
	t.Parallel()
	r, e, c := newClockRouter(t, t, world)
	k1 := resilience.Key{Provider: "acme", Connection: "k1", Model: "large"}
	e.RecordFailure(k1, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 1500*time.Millisecond + 1, Rule: "some.rule"})
	e.RecordFailure(resilience.Key{Provider: "acme", Connection: "eu", Model: "large"}, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
	if err := e.Exclude(resilience.Key{Provider: "beta"}, 0, "maintenance"); err != nil {
		t.Fatal(err)
	}
	route, err := r.Resolve(catalog.OpenAI, "large")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]Candidate{
		"k1":   {Layer: ptr(resilience.LayerConnection), Kind: ptr(resilience.KindRateLimit), RetryAfterMs: 1501, Reason: "the connection cools down (some.rule)"},
		"k2":   {Eligible: true, Reason: "nothing is known against it"},
		"eu":   {Layer: ptr(resilience.LayerConnection), Kind: ptr(resilience.KindAuth), Reason: "the connection cools down until a person acts"},
		"only": {Layer: ptr(resilience.LayerOperator), Reason: "an operator took it out: maintenance"},
	}
	before := e.Status()
	for _, got := range explain(route, c.now) {
		w := want[got.Connection]
		if w.Layer != nil && *w.Layer == resilience.LayerConnection && *w.Kind == resilience.KindRateLimit {
			if !got.Until.Equal(c.now.Add(1500*time.Millisecond + 1)) {
				t.Errorf("until %v", got.Until)
			}
		}
		if got.Connection == "eu" {
			w.RetryAfterMs = got.RetryAfterMs // a recheck's time is the engine's affair
		}
		got.Until, w.Until = resilience.Timestamp{}, resilience.Timestamp{}
		w.Provider, w.Connection, w.Model = got.Provider, got.Connection, got.Model
		if diff := cmp.Diff(w, got); diff != "" {
			t.Errorf("%s: %s", got.Connection, diff)
		}
	}
	if diff := cmp.Diff(before, e.Status()); diff != "" {
		t.Errorf("explaining has changed something: %s", diff)
	}
	c.now = c.now.Add(2 * time.Second)
	for _, got := range explain(route, c.now) {
		if got.Connection == "k1" && (!got.Eligible || !strings.Contains(got.Reason, "due")) {
			t.Errorf("an exclusion that is due: %+v", got)
		}
	}
}

func ptr[T any](v T) *T { return &v }

// TestExplainIsWhatHappens compares the explanation with a request that meets the same gates: it
// dispatches to the eligible candidates, in that order, and to nobody else.
func TestExplainIsWhatHappens(t *testing.T) {
	t.Parallel()
	text := world + "relay: {max_attempts: 100}\n"
	kinds := []resilience.Kind{resilience.KindServerError, resilience.KindRateLimit, resilience.KindAuth, resilience.KindModelNotFound, resilience.KindTimeout}
	scopes := []resilience.Scope{resilience.ScopeModel, resilience.ScopeConnection, resilience.ScopeProvider}
	rapid.Check(t, func(rt *rapid.T) {
		r, e, c := newClockRouter(rt, t, text)
		route, err := r.Resolve(catalog.OpenAI, rapid.SampledFrom([]string{"chain", "ring", "large", "beta/large"}).Draw(rt, "name"))
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(0, 12).Draw(rt, "failures") {
			target := rapid.SampledFrom(route.Plan.Targets).Draw(rt, "target")
			v := resilience.Verdict{
				Scope: rapid.SampledFrom(scopes).Draw(rt, "scope"), Kind: rapid.SampledFrom(kinds).Draw(rt, "kind"),
				RetryAfter: time.Duration(rapid.IntRange(0, 3600).Draw(rt, "hint")) * time.Second,
				Quarantine: rapid.IntRange(0, 9).Draw(rt, "quarantine") == 0,
			}
			v.Certain = v.Kind == resilience.KindModelNotFound
			for range rapid.IntRange(1, 6).Draw(rt, "times") {
				e.RecordFailure(target.Key(), v)
			}
			c.now = c.now.Add(time.Duration(rapid.IntRange(0, 40_000).Draw(rt, "pause")) * time.Millisecond)
		}
		c.now = c.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 20 * time.Minute}).Draw(rt, "later"))

		var got []string
		explained := explain(route, c.now)
		q := failover.NewRequest(route.Plan, route.Picker(Asked{}), false)
		for a := q.Step(failover.Event{Type: failover.Begin}, c.now); a.Type == failover.Dispatch; {
			got = append(got, a.Attempt.Target.Key().String())
			// A neutral end: it leaves every gate as it is.
			a = q.Step(failover.Event{Type: failover.Failed, Attempt: a.Attempt.ID, Verdict: resilience.Verdict{Scope: resilience.ScopeLocal}}, c.now)
		}
		// Of several that are due at one provider the first may be the one that finds out.
		asked := map[string]bool{}
		for _, candidate := range explained {
			name := resilience.Key{Provider: candidate.Provider, Connection: candidate.Connection, Model: candidate.Model}.String()
			due := candidate.Eligible && candidate.Reason != "nothing is known against it"
			switch {
			case candidate.Eligible && len(got) > 0 && got[0] == name:
				got = got[1:]
			case due && asked[candidate.Provider]:
			case candidate.Eligible:
				rt.Fatalf("%s would be tried, and was not; next came %v", name, got)
			}
			if due {
				asked[candidate.Provider] = true
			}
		}
		// A look at one that was due may leave none eligible, and then others are looked at sooner.
		if len(got) > 0 && len(asked) == 0 {
			rt.Fatalf("%v were tried, which nothing had explained", got)
		}
	})
}

// A request that only lacks a place waits for it, rather than to look after a connection that is out: the
// explanation promises no more.
func TestExplainRechecksNothingWhileAPlaceIsAwaited(t *testing.T) {
	t.Parallel()
	r, e, c := newClockRouter(t, t, `
providers:
  p:
    base_url: https://p.example/v1
    connections:
      - {id: busy, api_key: "secret-number-1", max_concurrent: 1}
      - {id: dead, api_key: "secret-number-2"}
combos:
  all: {targets: [p/m]}
`)
	e.RecordFailure(resilience.Key{Provider: "p", Connection: "dead", Model: "m"}, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
	c.now = c.now.Add(2 * time.Minute) // a request without another target would look after it
	route, err := r.Resolve(catalog.OpenAI, "all")
	if err != nil {
		t.Fatal(err)
	}
	first := failover.NewRequest(route.Plan, route.Picker(Asked{}), false)
	if a := first.Step(failover.Event{Type: failover.Begin}, c.now); a.Type != failover.Dispatch || a.Attempt.Target.Key().Connection != "busy" {
		t.Fatalf("%+v", a)
	}
	for _, candidate := range explain(route, c.now) {
		if candidate.Eligible {
			t.Errorf("%s is promised: %s", candidate.Connection, candidate.Reason)
		}
	}
	second := failover.NewRequest(route.Plan, route.Picker(Asked{}), false)
	if a := second.Step(failover.Event{Type: failover.Begin}, c.now); a.Type != failover.Queue {
		t.Errorf("the next request does %v, want it to wait for the place", a.Type)
	}
}

// spent is the meter of an upstream that has nothing left for an hour.
type spent struct{}

func (spent) Hold(_ *failover.Ask, now time.Time) (failover.Hold, bool) {
	return failover.Hold{Until: now.Add(time.Hour)}, true
}
func (spent) Reason(*failover.Ask, time.Time) string { return "nothing is left" }
func (spent) Reserve(*failover.Ask, time.Time) failover.Reservation {
	return spent{}
}
func (spent) Done(resilience.Verdict, time.Time) {}

// A request without any other target looks after a connection whose upstream may have something left before one of
// which it is known that it has not, and the explanation says so.
func TestExplainRechecksWhoHasSomethingLeft(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spent []int
		busy  bool // a place is lacking on the first
		want  string
	}{
		"the first of two":             {want: "k1"},
		"the first has nothing left":   {spent: []int{0}, want: "k2"},
		"neither has":                  {spent: []int{0, 1}, want: "k1"},
		"neither, and one has no room": {spent: []int{0, 1}, busy: true, want: "k2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, e, clock := newClockRouter(t, t, `
providers:
  p:
    base_url: https://p.example/v1
    connections:
      - {id: k1, api_key: "secret-number-1", max_concurrent: 1}
      - {id: k2, api_key: "secret-number-2"}
combos:
  all: {targets: [p/m]}
`)
			route, err := r.Resolve(catalog.OpenAI, "all")
			if err != nil {
				t.Fatal(err)
			}
			if c.busy {
				failover.NewRequest(route.Plan, route.Picker(Asked{}), false).Step(failover.Event{Type: failover.Begin}, clock.now)
			}
			for i := range route.Plan.Targets {
				e.RecordFailure(route.Plan.Targets[i].Key(), resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: time.Hour})
			}
			for _, i := range c.spent {
				route.Plan.Targets[i].Meter = spent{}
			}
			clock.now = clock.now.Add(61 * time.Second)
			for _, x := range explain(route, clock.now) {
				if x.Eligible != (x.Connection == c.want) {
					t.Errorf("%s: eligible is %v (%s)", x.Connection, x.Eligible, x.Reason)
				}
			}
			a := failover.NewRequest(route.Plan, route.Picker(Asked{}), false).Step(failover.Event{Type: failover.Begin}, clock.now)
			if a.Type != failover.Dispatch || a.Attempt.Target.Key().Connection != c.want {
				t.Errorf("a request does %+v, want it to go to %s", a, c.want)
			}
		})
	}
}
