package route

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/resilience"
)

const nested = `
providers:
  p: {base_url: "https://p.example/v1", connections: [{id: k1, api_key: "p-secret-1"}, {id: k2, api_key: "p-secret-2"}]}
  q: {base_url: "https://q.example/v1", connections: [{id: k, api_key: "q-secret"}]}
  r: {base_url: "https://r.example/v1", connections: [{id: k, api_key: "r-secret"}]}
combos:
  outer: {targets: [p/a, pool, inner], first_token_timeout: 9s, deadline: 3m}
  pool: {strategy: round-robin, targets: [{target: q/b, weight: 2}, r/b], answer_timeout: 8m}
  inner: {targets: [q/c, q/b, deep], first_token_timeout: 20s, answer_timeout: 2m}
  deep: {strategy: round-robin, targets: [r/c, p/d], answer_timeout: 1m}
`

// names returns the targets that stand in those places.
func names(r *Route, places []int) []string {
	var out []string
	for _, i := range places {
		out = append(out, r.Plan.Targets[i].Key().String())
	}
	return out
}

// TestNested: each combo chooses by its own strategy at its place, and none is torn apart.
func TestNested(t *testing.T) {
	t.Parallel()
	r := newRouter(t, nested)
	outer := resolve(t, r, "outer")
	want := [][]string{
		{"p/k1/a", "p/k2/a", "q/k/b", "r/k/b", "q/k/c", "r/k/c", "p/k1/d", "p/k2/d"},
		{"p/k2/a", "p/k1/a", "r/k/b", "q/k/b", "q/k/c", "p/k1/d", "p/k2/d", "r/k/c"},
		{"p/k1/a", "p/k2/a", "q/k/b", "r/k/b", "q/k/c", "r/k/c", "p/k2/d", "p/k1/d"},
	}
	for turn, w := range want {
		q := outer.Picker(Asked{})
		req := failover.NewRequest(outer.Plan, q, false)
		if got := names(outer, req.Outlook(time.Now())); turn != 1 && !slices.Equal(got[:2], w[:2]) {
			t.Errorf("turn %d: %v", turn, got)
		} else if seen := slices.Sorted(slices.Values(got)); !slices.Equal(seen, slices.Sorted(slices.Values(w))) {
			t.Errorf("turn %d tries a target twice or not at all: %v", turn, got)
		} else {
			for i, group := range [][2]int{{0, 2}, {2, 4}, {4, 5}, {5, 8}} {
				if !slices.Equal(slices.Sorted(slices.Values(got[group[0]:group[1]])), slices.Sorted(slices.Values(w[group[0]:group[1]]))) {
					t.Errorf("turn %d: what belongs together is torn apart at %d: %v", turn, i, got)
				}
			}
		}
		outer.Done(q)
	}
	// Where a target stands twice the first place counts: the inner combo's q/b is the pool's.
	if n := len(outer.Plan.Targets); n != 8 {
		t.Errorf("%d targets", n)
	}
	var entries []int
	for i := range outer.Plan.Targets {
		entries = append(entries, outer.Plan.Targets[i].Entry)
	}
	// An entry of the plan is what patience is for: a target, or a combo that shares.
	if diff := cmp.Diff([]int{0, 0, 1, 1, 2, 4, 4, 4}, entries); diff != "" {
		t.Errorf("entries: %s", diff)
	}
}

// TestNestedSettings: the settings are those of the combo that the client named, but for timeouts, which
// an inner combo may give its targets where the outer one says nothing.
func TestNestedSettings(t *testing.T) {
	t.Parallel()
	r := newRouter(t, nested)
	outer := resolve(t, r, "outer")
	if outer.Relay.Deadline != 3*time.Minute || outer.Plan.Limits.Deadline != 3*time.Minute || resolve(t, r, "inner").Plan.Limits.Deadline != 10*time.Minute {
		t.Errorf("%+v", outer.Relay)
	}
	type timeouts struct{ first, answer time.Duration }
	got := map[string]timeouts{}
	for _, x := range outer.Plan.Targets {
		got[x.Key().String()] = timeouts{x.FirstToken, x.Answer}
	}
	first := 9 * time.Second
	want := map[string]timeouts{
		"p/k1/a": {first, 5 * time.Minute}, "p/k2/a": {first, 5 * time.Minute},
		"q/k/b": {first, 8 * time.Minute}, "r/k/b": {first, 8 * time.Minute},
		"q/k/c": {first, 2 * time.Minute},
		"r/k/c": {first, 2 * time.Minute}, "p/k1/d": {first, 2 * time.Minute}, "p/k2/d": {first, 2 * time.Minute},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(timeouts{})); diff != "" {
		t.Error(diff)
	}
	if a := resolve(t, r, "deep").Plan.Targets[0]; a.FirstToken != 60*time.Second || a.Answer != time.Minute {
		t.Errorf("by itself: %v %v", a.FirstToken, a.Answer)
	}
}

// TestInnerComboServes: a combo that stands behind a target that is out serves in its place.
func TestInnerComboServes(t *testing.T) {
	t.Parallel()
	r, e, c := newClockRouter(t, t, nested)
	route, err := r.Resolve(catalog.OpenAI, "outer")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"k1", "k2"} {
		e.RecordFailure(resilience.Key{Provider: "p", Connection: k, Model: "a"}, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Hour})
	}
	req := failover.NewRequest(route.Plan, route.Picker(Asked{}), false)
	a := req.Step(failover.Event{Type: failover.Begin}, c.now)
	if a.Type != failover.Dispatch || a.Attempt.Target.Key().String() != "q/k/b" {
		t.Errorf("%+v", a)
	}
}

// TestNestedExplained: what is out stands at the end of what it belongs to.
func TestNestedExplained(t *testing.T) {
	t.Parallel()
	r, e, c := newClockRouter(t, t, nested)
	route, err := r.Resolve(catalog.OpenAI, "outer")
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []resilience.Key{{Provider: "p", Connection: "k1", Model: "a"}, {Provider: "q", Connection: "k", Model: "b"}} {
		e.RecordFailure(k, resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true})
	}
	var got []string
	candidates, _ := Explain(route, Question{}, c.now)
	for _, x := range candidates {
		got = append(got, resilience.Key{Provider: x.Provider, Connection: x.Connection, Model: x.Model}.String())
	}
	want := []string{"p/k2/a", "p/k1/a", "r/k/b", "q/k/b", "q/k/c", "r/k/c", "p/k1/d", "p/k2/d"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
