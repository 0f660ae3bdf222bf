package route

import (
	"math"
	"testing"

	"omniroute/failover"
	"omniroute/internal/catalog"
)

const priced = `
providers:
  dear:
    base_url: https://dear.example/v1
    models: [{id: m, price: {input: 3, cached_input: 0.3, output: 15}}]
    connections: [{id: d1, api_key: "dear-secret-1"}, {id: d2, api_key: "dear-secret-2"}]
  fair:
    base_url: https://fair.example/v1
    models: [{id: m, price: {input: 1, output: 20}}]
    connections: [{id: f, api_key: "fair-secret"}]
  mystery:
    base_url: https://mystery.example/v1
    connections: [{id: x, api_key: "mystery-secret"}]
  openai:
    connections: [{id: o, api_key: "openai-secret"}]
combos:
  cheap: {strategy: cost, targets: [mystery/m, dear/m, fair/m]}
  listed: {strategy: cost, targets: [openai/gpt-5.2, openai/gpt-5-mini]}
`

// TestCheapest: what a request costs depends on what it asks for; a price that is not known comes last.
func TestCheapest(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, priced)
	for _, c := range []struct {
		name string
		ask  failover.Needs
		want string
	}{
		{"cheap", failover.Needs{Input: 10_000}, "f"},
		{"cheap", failover.Needs{Input: 100, Output: 4_000}, "d1"},
		{"listed", failover.Needs{}, "o"},
	} {
		u.needs = c.ask
		tried, _ := u.ask(t, c.name, Asked{})
		if len(tried) != 1 || tried[0][:1] != c.want[:1] {
			t.Errorf("%s %+v: %v", c.name, c.ask, tried)
		}
	}
	route, _ := u.Resolve(catalog.OpenAI, "listed")
	if c := explain(route, u.clock.now); c[0].Model != "gpt-5-mini" {
		t.Errorf("%+v", c)
	}
	route, _ = u.Resolve(catalog.OpenAI, "cheap")
	if c := explain(route, u.clock.now); c[3].Connection != "x" {
		t.Errorf("the one without a price is not last: %+v", c)
	}
}

// TestCachedPrice: a session goes on where its prompts are cached as long as that is the cheapest, and
// leaves when it is not.
func TestCachedPrice(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, priced)
	u.needs = failover.Needs{Input: 100, Output: 4_000} // dear's answers are cheaper
	first, _ := u.ask(t, "cheap", Asked{Session: "s"})
	u.needs = failover.Needs{Input: 10_000}
	// Cold, the long prompt would be cheaper at fair: 10,000 × 1 + 500 × 20 < 10,000 × 3 + 500 × 15.
	// Warm, a tenth of it is paid in full: 10,000 × 0.57 + 500 × 15.
	if tried, relation := u.ask(t, "cheap", Asked{Session: "s"}); tried[0] != first[0] || relation != AtHome {
		t.Errorf("%v %s, at home at %v", tried, relation, first)
	}
	if tried, relation := u.ask(t, "cheap", Asked{Session: "t"}); tried[0] != "f" || relation != NoSession && relation != Settled {
		t.Errorf("%v %s", tried, relation)
	}
	ask := failover.Ask{Estimate: func() failover.Needs { return failover.Needs{Input: 1000, Output: 100} }}
	if got, want := billOf(&ask).of(catalog.Price{Input: 2, Cached: 1, Output: 4}, true), 1000*1.1+100*4.0; math.Abs(got-want) > 1e-9 {
		t.Errorf("%v, want %v", got, want)
	}
}
