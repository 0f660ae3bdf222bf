package route

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// decision is one request's choice over a plan of n targets of which a third is excluded, each target
// on a connection of its own.
type decision struct {
	route   *Route
	request *failover.Request
	picker  failover.Picker
	now     time.Time
}

// newDecision makes the plan of a combo with one entry for each target, or with one entry of n
// connections.
func newDecision(tb testing.TB, way string, n int, siblings bool) *decision {
	var text strings.Builder
	text.WriteString("providers:\n  p:\n    base_url: https://p.example/v1\n    connections_strategy: " + way + "\n    models: [{id: m, price: {input: 1, output: 2}}]\n    connections:\n")
	for i := range n {
		fmt.Fprintf(&text, "      - {id: c%d, api_key: \"bench-secret-%d\", weight: %d}\n", i, i, 1+i%3)
	}
	text.WriteString("combos:\n  all:\n    strategy: " + way + "\n    targets:\n")
	if siblings {
		text.WriteString("      - p/m\n")
	} else {
		for i := range n {
			fmt.Fprintf(&text, "      - {target: p/m, connection: c%d, weight: %d}\n", i, 1+i%3)
		}
	}
	cfg, _, err := config.Parse("omniroute.yaml", []byte(text.String()), func(string) (string, bool) { return "", false })
	if err != nil {
		tb.Fatal(err)
	}
	e, err := resilience.New(resilience.Options{Config: EngineConfig(cfg)})
	if err != nil {
		tb.Fatal(err)
	}
	r, err := NewSeeded(cfg, e, nil, 1)
	if err != nil {
		tb.Fatal(err)
	}
	route, err := r.Resolve(catalog.OpenAI, "all")
	if err != nil {
		tb.Fatal(err)
	}
	d := &decision{route: route, now: time.Now()}
	for i, t := range route.Plan.Targets {
		if i%3 == 0 {
			e.RecordFailure(t.Key(), resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted, RetryAfter: 5 * time.Hour})
			continue
		}
		// Everybody has answered before, so that there is something to measure.
		t.Pulse.Seen(true, time.Duration(100+i%700)*time.Millisecond, d.now)
	}
	d.picker = route.Picker(Asked{Stream: true})
	d.request = failover.NewRequest(route.Plan, d.picker, true)
	return d
}

// decide chooses as the first attempt of a request does: eligibility and order.
func (d *decision) decide() int {
	d.route.Done(d.picker)
	d.picker = d.route.Picker(Asked{Stream: true})
	return d.request.Choose(d.picker, d.now)
}

// BenchmarkDecide is a request's choice for every strategy.
func BenchmarkDecide(b *testing.B) {
	for _, way := range config.Strategies() {
		for _, n := range []int{100, 2000} {
			b.Run(fmt.Sprintf("%s/%d", way, n), func(b *testing.B) {
				d := newDecision(b, way, n, false)
				if i := d.decide(); i < 0 || i%3 == 0 {
					b.Fatalf("chose %d", i)
				}
				b.ReportAllocs()
				for b.Loop() {
					d.decide()
				}
			})
		}
	}
}

// BenchmarkStandings is what the gates take of it: a reference for the above.
func BenchmarkStandings(b *testing.B) {
	for _, n := range []int{100, 2000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			d := newDecision(b, "random", n, false)
			var gates []*resilience.Target
			for i := range d.route.Plan.Targets {
				gates = append(gates, d.route.Plan.Targets[i].Target)
			}
			var into []resilience.Standing
			for b.Loop() {
				into = gates[0].Engine().Standings(gates, false, into)
			}
		})
	}
}

// TestDecisionsAllocateNothing, for every strategy, among entries and among siblings.
func TestDecisionsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("under the race detector sync.Pool forgets some pickers on purpose; `make check` counts allocations")
	}
	for _, way := range config.Strategies() {
		for _, siblings := range []bool{false, true} {
			d := newDecision(t, way, 100, siblings)
			if got := testing.AllocsPerRun(50, func() { d.decide() }); got > 0 {
				t.Errorf("%s, siblings %v: %v allocations", way, siblings, got)
			}
		}
	}
}
