package route

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// randomConfig draws providers with some connections each, and combos that stand in each other, all
// with strategies of their own.
func randomConfig(t *rapid.T) string {
	way := rapid.SampledFrom(config.Strategies())
	weight := rapid.IntRange(1, 3)
	var b strings.Builder
	b.WriteString("relay: {max_attempts: 100, patience: 0s}\nproviders:\n")
	providers := rapid.IntRange(1, 3).Draw(t, "providers")
	for p := range providers {
		fmt.Fprintf(&b, "  p%d:\n    base_url: https://p%d.example/v1\n    connections_strategy: %s\n    models: [{id: a, price: {input: %d, output: 2}}, b]\n    connections:\n",
			p, p, way.Draw(t, "connections_strategy"), rapid.IntRange(0, 3).Draw(t, "price"))
		for c := range rapid.IntRange(1, 3).Draw(t, "connections") {
			fmt.Fprintf(&b, "      - {id: c%d, api_key: \"secret-of-%d-%d\", weight: %d}\n", c, p, c, weight.Draw(t, "weight"))
		}
	}
	b.WriteString("combos:\n")
	for i := range 3 {
		fmt.Fprintf(&b, "  combo%d:\n    strategy: %s\n    targets:\n", i, way.Draw(t, "strategy"))
		for p := range providers {
			for _, m := range []string{"a", "b"} {
				if p == 0 && m == "a" || rapid.Bool().Draw(t, "there") {
					fmt.Fprintf(&b, "      - {target: p%d/%s, weight: %d}\n", p, m, weight.Draw(t, "weight"))
				}
			}
		}
		for inner := range i {
			if rapid.Bool().Draw(t, "inner") {
				fmt.Fprintf(&b, "      - {target: combo%d, weight: %d}\n", inner, weight.Draw(t, "weight"))
			}
		}
	}
	return b.String()
}

// TestExplainIsTheRequest: for any configuration, state and request, the explanation is what the next
// request does: the same order, the same skips; and explaining changes nothing, not even whose turn
// it is nor what is drawn by chance.
func TestExplainIsTheRequest(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		r, e, c := newClockRouter(rt, t, randomConfig(rt))
		for range rapid.IntRange(1, 8).Draw(rt, "requests") {
			route, err := r.Resolve(catalog.OpenAI, rapid.SampledFrom([]string{"combo0", "combo1", "combo2", "p0/a", "a"}).Draw(rt, "name"))
			if err != nil {
				rt.Fatal(err)
			}
			shake(rt, route, e, c)
			needs := failover.Needs{Input: rapid.Int64Range(0, 50_000).Draw(rt, "input"), Output: rapid.Int64Range(0, 5000).Draw(rt, "output")}
			q := Question{
				Asked: Asked{Stream: rapid.Bool().Draw(rt, "stream"), Session: rapid.SampledFrom([]string{"", "", "s1", "s2"}).Draw(rt, "session")},
				Ask:   failover.Ask{Estimate: func() failover.Needs { return needs }},
			}
			before := e.Status()
			explained, relation := Explain(route, q, c.now)
			again, _ := Explain(route, q, c.now)
			if diff := cmp.Diff(explained, again); diff != "" {
				rt.Fatalf("explaining has changed the explanation: %s", diff)
			}
			if diff := cmp.Diff(before, e.Status()); diff != "" {
				rt.Fatalf("explaining has changed the gates: %s", diff)
			}
			want := map[bool][]string{}
			for _, x := range explained {
				want[x.Eligible] = append(want[x.Eligible], resilience.Key{Provider: x.Provider, Connection: x.Connection, Model: x.Model}.String())
			}
			tried, got := play(route, q, c.now)
			if diff := cmp.Diff(want[true], tried); diff != "" {
				rt.Fatalf("the request did otherwise (-explained +tried): %s", diff)
			}
			if got != relation {
				rt.Fatalf("to the session the first is %q, explained was %q", got, relation)
			}
		}
	})
}

// shake puts targets out for certain and so that none is due to be looked at again meanwhile, and lets
// others be busy or fast. What is due is the other test's.
func shake(t *rapid.T, route *Route, e *resilience.Engine, c *clock) {
	c.now = c.now.Add(time.Duration(rapid.IntRange(0, 7).Draw(t, "pause")) * time.Second)
	for range rapid.IntRange(0, 6).Draw(t, "events") {
		place := rapid.IntRange(0, len(route.Plan.Targets)-1).Draw(t, "target")
		x := &route.Plan.Targets[place]
		switch rapid.IntRange(0, 2).Draw(t, "event") {
		case 0:
			e.RecordFailure(x.Key(), resilience.Verdict{
				Scope: rapid.SampledFrom([]resilience.Scope{resilience.ScopeModel, resilience.ScopeConnection}).Draw(t, "scope"),
				Kind:  resilience.KindQuotaExhausted, Certain: true, RetryAfter: 100 * time.Hour,
			})
		case 1:
			x.Pulse.Seen(rapid.Bool().Draw(t, "streamed"), time.Duration(rapid.IntRange(1, 5000).Draw(t, "took"))*time.Millisecond, c.now)
		case 2:
			// A request that is under way for ever makes its target busy.
			failover.NewRequest(route.Plan, failover.Order{place}, false).Step(failover.Event{Type: failover.Begin}, c.now)
		}
	}
}

// play makes a request fail at every target, in a way that leaves the gates as they are, and returns
// the targets in the order in which it tried them, and what the first was to its session.
func play(route *Route, q Question, now time.Time) (tried []string, relation Affinity) {
	p := route.Picker(q.Asked)
	defer route.Done(p)
	request := failover.NewRequest(route.Plan, p, q.Stream).For(q.Ask)
	for a := request.Step(failover.Event{Type: failover.Begin}, now); a.Type == failover.Dispatch; {
		if tried = append(tried, a.Attempt.Target.Key().String()); len(tried) == 1 {
			relation = route.Served(p, a.Attempt.Place(), now)
		}
		a = request.Step(failover.Event{Type: failover.Failed, Attempt: a.Attempt.ID, Verdict: resilience.Verdict{Scope: resilience.ScopeLocal}}, now)
	}
	request.Step(failover.Event{Type: failover.Abandoned}, now)
	return tried, relation
}
