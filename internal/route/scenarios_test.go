package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// The scenarios of routing in the field that no other test tells. Every strategy goes through the same
// gates, so that each is played with all of them.

func everyStrategy(t *testing.T, text string, play func(t *testing.T, u *upstreams)) {
	t.Helper()
	for _, way := range config.Strategies() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			play(t, newUpstreams(t, strings.ReplaceAll(text, "STRATEGY", way)))
		})
	}
}

// Forty targets, of which all but the last are out: skipped targets are no attempts, and the last is called.
func TestOnlyDispatchedAttemptsCount(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	text.WriteString("providers:\n  p:\n    base_url: https://p.example/v1\n    connections:\n")
	for i := range 40 {
		fmt.Fprintf(&text, "      - {id: k%d, api_key: \"secret-number-%d\"}\n", i, i)
	}
	text.WriteString("combos:\n  pair:\n    strategy: STRATEGY\n    targets:\n")
	for i := range 40 {
		fmt.Fprintf(&text, "      - {target: p/m, connection: k%d}\n", i)
	}
	everyStrategy(t, text.String(), func(t *testing.T, u *upstreams) {
		for i := range 39 {
			u.engine.RecordFailure(resilience.Key{Provider: "p", Connection: fmt.Sprintf("k%d", i), Model: "m"}, limited(time.Hour))
		}
		if tried, _ := u.ask(t, "pair", Asked{}); !slices.Equal(tried, []string{"k39"}) {
			t.Errorf("%v", tried)
		}
	})
}

// A model that is locked on an account is no candidate under any strategy, and the explanation says so.
func TestLocksHoldForEveryStrategy(t *testing.T) {
	t.Parallel()
	everyStrategy(t, strings.Replace(accounts, "patience: 0s", "patience: 0s, strategy: STRATEGY", 1), func(t *testing.T, u *upstreams) {
		u.engine.RecordFailure(resilience.Key{Provider: "acme", Connection: "k2", Model: "m"}, resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true})
		for range 40 {
			if tried, _ := u.ask(t, "pair", Asked{}); slices.Contains(tried, "k2") {
				t.Fatalf("%v", tried)
			}
		}
		route, err := u.Resolve(catalog.OpenAI, "pair")
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range explain(route, u.clock.now) {
			if c.Connection == "k2" && (c.Eligible || *c.Layer != resilience.LayerModel || *c.Kind != resilience.KindModelNotFound) {
				t.Errorf("%+v", c)
			}
		}
	})
}

// Siblings are fallbacks: with the heavy one failing the light one serves the same request.
func TestSiblingsServeWhateverTheirWeight(t *testing.T) {
	t.Parallel()
	everyStrategy(t, `
providers:
  p:
    base_url: https://p.example/v1
    connections_strategy: STRATEGY
    connections: [{id: k1, api_key: "secret-number-1", weight: 99}, {id: k2, api_key: "secret-number-2"}]
`, func(t *testing.T, u *upstreams) {
		u.fails["p/k1"] = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError}
		for range 3 {
			if tried, _ := u.ask(t, "p/m", Asked{}); tried[len(tried)-1] != "k2" {
				t.Fatalf("%v", tried)
			}
		}
	})
}

// When everything in the preferred group is saturated the next one serves: every account of the first
// provider answers 429, and the second answers all requests until they are back.
func TestSpillOver(t *testing.T) {
	t.Parallel()
	everyStrategy(t, accounts, func(t *testing.T, u *upstreams) {
		for _, k := range []string{"k1", "k2", "k3", "k4"} {
			u.fails["acme/"+k] = limited(30 * time.Second)
		}
		calls := 0
		for i := range 60 {
			tried, _ := u.ask(t, "pair", Asked{})
			if last := tried[len(tried)-1]; last != "b1" && last != "b2" {
				t.Fatalf("request %d: %v", i, tried)
			}
			calls += len(tried) - 1
			u.clock.now = u.clock.now.Add(200 * time.Millisecond)
		}
		if calls != 4 {
			t.Errorf("%d calls to accounts that had said to wait, want one each", calls)
		}
		clear(u.fails)
		u.clock.now = u.clock.now.Add(30 * time.Second)
		if tried, _ := u.ask(t, "pair", Asked{}); !strings.HasPrefix(tried[0], "k") {
			t.Errorf("back in time, and %v", tried)
		}
	})
}

// Ten turns of a conversation whose account has said when it will be back: one call goes there.
func TestOneCallToASessionsHomeThatIsOut(t *testing.T) {
	t.Parallel()
	everyStrategy(t, accounts, func(t *testing.T, u *upstreams) {
		s := Asked{Session: "conversation"}
		first, _ := u.ask(t, "pair", s)
		home := first[0]
		u.fails["acme/"+home] = limited(2 * time.Minute)
		calls := 0
		for range 10 {
			tried, _ := u.ask(t, "pair", s)
			for _, k := range tried {
				if k == home {
					calls++
				}
			}
			u.clock.now = u.clock.now.Add(10 * time.Second)
		}
		if calls != 1 {
			t.Errorf("%d calls", calls)
		}
	})
}

// Three hundred requests in a row over three accounts: a hundred each, also when requests fail over.
func TestRotationIsNotStuck(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, `
providers:
  p: {base_url: "https://p.example/v1", connections: [{id: a, api_key: "secret-number-1"}, {id: b, api_key: "secret-number-2"}, {id: c, api_key: "secret-number-3"}]}
`)
	count := map[string]int{}
	for range 300 {
		tried, _ := u.ask(t, "p/m", Asked{})
		count[tried[0]]++
	}
	if count["a"] != 100 || count["b"] != 100 || count["c"] != 100 {
		t.Errorf("%v", count)
	}
	// A request's own failure that punishes nobody: the next begin elsewhere all the same.
	u.fails["p/a"] = resilience.Verdict{Scope: resilience.ScopeLocal}
	clear(count)
	for range 300 {
		tried, _ := u.ask(t, "p/m", Asked{})
		count[tried[0]]++
	}
	if count["a"] != 100 || count["b"] != 100 || count["c"] != 100 {
		t.Errorf("with one that fails: %v", count)
	}
}
