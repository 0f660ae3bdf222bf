package route

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const world = `
providers:
  acme:
    dialect: openai
    base_url: https://llm.acme.example/v1
    models: [large, {id: small, context: 32000}]
    connections:
      - {id: k1, api_key: "acme-secret-1"}
      - {id: k2, api_key: "acme-secret-2"}
      - {id: eu, api_key: "acme-secret-3", weight: 2, base_url: "http://eu.acme.example:8443/v1"}
  beta:
    dialect: openai
    base_url: https://beta.example/v1
    models: [large]
    connections:
      - {id: only, api_key: "beta-secret"}
  idle:
    dialect: openai
    base_url: https://idle.example/v1
    connections:
      - {id: gone, api_key: "${NOWHERE:-}"}
combos:
  chain:
    targets: [acme/large, {target: acme/small, connection: k2}, beta/other]
    patience: 0s
    max_wait: 0s
  ring:
    strategy: round-robin
    targets: [{target: acme/large, connection: k1, weight: 3}, beta/large]
  hedged: {targets: [acme/large, beta/large], hedge: {after: p95, budget: 20%}}
`

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("omniroute.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func newEngine(t *testing.T, cfg *config.Config) *resilience.Engine {
	t.Helper()
	e, err := resilience.New(resilience.Options{Config: EngineConfig(cfg)})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func newRouter(t *testing.T, text string) *Router {
	t.Helper()
	cfg := parse(t, text)
	r, err := New(cfg, newEngine(t, cfg), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func resolve(t *testing.T, r *Router, name string) *Route {
	t.Helper()
	return resolveIn(t, catalog.OpenAI, r, name)
}

func resolveIn(t *testing.T, d catalog.Dialect, r *Router, name string) *Route {
	t.Helper()
	route, err := r.Resolve(d, name)
	if err != nil {
		t.Fatal(err)
	}
	return route
}

// take returns the order in which one request tries the targets, if all fail.
func take(r *Route) []int {
	p := r.Picker(Asked{})
	defer r.Done(p)
	return failover.NewRequest(r.Plan, p, false).Outlook(time.Now())
}

// peek returns the order of the next request.
func peek(r *Route) []int {
	p := r.Peek(Asked{})
	defer r.Done(p)
	return failover.NewRequest(r.Plan, p, false).Outlook(time.Now())
}

func keys(r *Route) []string {
	var out []string
	for _, t := range r.Plan.Targets {
		out = append(out, fmt.Sprintf("%d %s", t.Entry, t.Key()))
	}
	return out
}

func TestResolve(t *testing.T) {
	t.Parallel()
	r := newRouter(t, world)
	for _, c := range []struct {
		ask, name string
		ordered   bool
		want      []string
	}{
		{"chain", "chain", true, []string{"0 acme/k1/large", "0 acme/k2/large", "0 acme/eu/large", "1 acme/k2/small", "2 beta/only/other"}},
		{"ring", "ring", false, []string{"0 acme/k1/large", "1 beta/only/large"}},
		{"large", "large", true, []string{"0 acme/k1/large", "0 acme/k2/large", "0 acme/eu/large", "1 beta/only/large"}},
		{"small", "small", true, []string{"0 acme/k1/small", "0 acme/k2/small", "0 acme/eu/small"}},
		{"beta/large", "beta/large", true, []string{"0 beta/only/large"}},
		{"beta/un/listed", "beta/un/listed", true, []string{"0 beta/only/un/listed"}},
		{"idle/x", "idle/x", true, nil},
	} {
		route := resolve(t, r, c.ask)
		if route.Name != c.name || route.Plan.Name != c.name || route.Plan.Ordered != c.ordered {
			t.Errorf("%s: route %q, plan %q, ordered %v", c.ask, route.Name, route.Plan.Name, route.Plan.Ordered)
		}
		if diff := cmp.Diff(c.want, keys(route)); diff != "" {
			t.Errorf("%s: %s", c.ask, diff)
		}
		if again := resolve(t, r, c.ask); again != route {
			t.Errorf("%s: compiled twice", c.ask)
		}
	}
	var missing *config.NotFoundError
	if _, err := r.Resolve(catalog.OpenAI, "chian"); !errors.As(err, &missing) || !slices.Contains(missing.Nearest, "chain") {
		t.Errorf("a wrong name: %v", err)
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	r := newRouter(t, world)
	route := resolve(t, r, "chain")
	want := []Upstream{
		{Model: "large", BaseURL: "https://llm.acme.example/v1"},
		{Model: "large", BaseURL: "https://llm.acme.example/v1"},
		{Model: "large", BaseURL: "http://eu.acme.example:8443/v1"},
		{Model: "small", BaseURL: "https://llm.acme.example/v1"},
		{Model: "other", BaseURL: "https://beta.example/v1"},
	}
	for i, target := range route.Plan.Targets {
		up := target.Data.(*Upstream)
		if up.Model != want[i].Model || up.BaseURL != want[i].BaseURL || up.Dialect != catalog.OpenAI ||
			up.Provider.ID != target.Key().Provider || up.Connection.ID != target.Key().Connection || up.RateLimitScope != resilience.ScopeConnection {
			t.Errorf("target %d: %+v", i, up)
		}
		if target.FirstToken != 60*time.Second || target.Answer != 5*time.Minute || target.Streamed == nil || target.Whole == nil {
			t.Errorf("target %d: %v %v", i, target.FirstToken, target.Answer)
		}
	}
	if w := route.Plan.Targets[3].Window; w != 32000 {
		t.Errorf("window %d", w)
	}
	if route.Plan.Targets[0].Streamed != route.Plan.Targets[1].Streamed || route.Plan.Targets[0].Streamed == route.Plan.Targets[3].Streamed {
		t.Error("latencies are kept for each provider and model")
	}
	// 0 in the file is none, not the default.
	if l := route.Plan.Limits; l.Patience != 0 || l.MaxWait != 0 || l.MaxAttempts != 6 || l.WaitingRoom != 2000 {
		t.Errorf("limits %+v", l)
	}
	if l := resolve(t, r, "large").Plan.Limits; l.Patience != 2*time.Second || l.MaxWait != 10*time.Second {
		t.Errorf("general limits %+v", l)
	}
}

// TestDialects shows that clients of another dialect share a plan where nothing differs, and get
// the provider's preferred dialect.
func TestDialects(t *testing.T) {
	t.Parallel()
	r := newRouter(t, world)
	a, err := r.Resolve(catalog.OpenAI, "chain")
	if err != nil {
		t.Fatal(err)
	}
	b, err := r.Resolve(catalog.Anthropic, "chain")
	if err != nil {
		t.Fatal(err)
	}
	if a != b || b.Plan.Targets[0].Data.(*Upstream).Dialect != catalog.OpenAI {
		t.Errorf("%p %p", a, b)
	}
}

// TestReload shows that counters and latencies survive under their names, and that what is new
// starts clean.
func TestReload(t *testing.T) {
	t.Parallel()
	cfg := parse(t, world)
	e := newEngine(t, cfg)
	old, err := New(cfg, e, nil)
	if err != nil {
		t.Fatal(err)
	}
	if resolve(t, old, "hedged").Plan.Hedge.Ledger != resolveIn(t, catalog.Anthropic, old, "hedged").Plan.Hedge.Ledger {
		t.Error("clients of two dialects have budgets of their own")
	}
	ring := resolve(t, old, "ring")
	for range 3 {
		take(ring)
	}
	for range 20 {
		ring.Plan.Targets[0].Streamed.Add(3 * time.Second)
		resolve(t, old, "beta/unlisted").Plan.Targets[0].Whole.Add(7 * time.Second)
	}
	next := parse(t, world+"  late:\n    targets: [beta/large]\n")
	if err := e.Configure(EngineConfig(next)); err != nil {
		t.Fatal(err)
	}
	r, err := New(next, e, old)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(peek(ring), peek(resolve(t, r, "ring"))); diff != "" {
		t.Errorf("the turn was lost: %s", diff)
	}
	if d, ok := resolve(t, r, "acme/large").Plan.Targets[0].Streamed.P95(); !ok || d != 3*time.Second {
		t.Errorf("the latency was lost: %v %v", d, ok)
	}
	if d, ok := resolve(t, r, "beta/unlisted").Plan.Targets[0].Whole.P95(); !ok || d != 7*time.Second {
		t.Errorf("the latency of an unlisted model was lost: %v %v", d, ok)
	}
	if a, b := resolve(t, old, "hedged").Plan.Hedge, resolve(t, r, "hedged").Plan.Hedge; a.Ledger == nil || a != b {
		t.Errorf("the hedging budget was lost: %+v, then %+v", a, b)
	}
	if a := resolve(t, r, "late").Plan.Hedge; a != (failover.Hedge{}) {
		t.Errorf("a combo without hedging has %+v", a)
	}
	if r.Config() != next || old.Config() != cfg {
		t.Error("a router knows its configuration")
	}
	if resolve(t, r, "ring").Plan.Targets[0].Target != ring.Plan.Targets[0].Target {
		t.Error("the gates belong to identity and survive")
	}
}

// TestMadeUpNames bounds what clients can fill the memory with.
func TestMadeUpNames(t *testing.T) {
	t.Parallel()
	r := newRouter(t, world)
	first := map[int]int{}
	for i := range 5 * maxOnDemand {
		route := resolve(t, r, fmt.Sprintf("acme/made-up-%d", i))
		first[take(route)[0]]++
	}
	if n := len(r.onDemand.new) + len(r.onDemand.old); n > 2*maxOnDemand {
		t.Errorf("%d plans are kept", n)
	}
	if n := len(r.latency.others.new) + len(r.latency.others.old); n > 2*maxOnDemand {
		t.Errorf("%d latencies are kept", n)
	}
	if total := 5 * maxOnDemand; first[0] != total/4 || first[1] != total/4 || first[2] != total/2 {
		t.Errorf("names that are asked for once all meet the same connections: %v", first)
	}
}

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	r := newRouter(t, world)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 100 {
				take(resolve(t, r, "ring"))
				take(resolve(t, r, fmt.Sprintf("acme/m%d", (i+j)%20)))
				explain(resolve(t, r, "chain"), time.Now())
			}
		})
	}
	wg.Wait()
	if n := resolve(t, r, "ring").root.turn.Load(); n != 800 {
		t.Errorf("turns were lost: %d of 800", n)
	}
}

func TestEngineConfig(t *testing.T) {
	t.Parallel()
	cfg := parse(t, world)
	c := EngineConfig(cfg)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	acme := c.Providers["acme"]
	if acme.Endpoint != "llm.acme.example:443" || acme.Connections[0].Endpoint != "" || acme.Connections[2].Endpoint != "eu.acme.example:8443" {
		t.Errorf("endpoints %+v", acme)
	}
	if diff := cmp.Diff([]string{"large", "small"}, acme.Models); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"large", "other"}, c.Providers["beta"].Models); diff != "" {
		t.Error(diff)
	}
	if n := len(c.Combos["chain"]); n != 5 {
		t.Errorf("combo chain has %d targets", n)
	}
	if acme.Connections[0].Credential == acme.Connections[1].Credential || len(acme.Connections[0].Credential) != 64 {
		t.Error("a credential is a hash of its own")
	}
	for _, change := range [][2]string{
		{`"acme-secret-1"`, `"acme-secret-1b"`},
		{"    models: [large, {", "    headers: {x-key: other}\n    models: [large, {"},
	} {
		text := strings.Replace(world, change[0], change[1], 1)
		if got := EngineConfig(parse(t, text)).Providers["acme"].Connections[0].Credential; got == acme.Connections[0].Credential {
			t.Errorf("%s: the credential did not change", change[1])
		}
	}
}
