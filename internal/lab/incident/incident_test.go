package incident_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniroute/internal/lab/incident"
	"omniroute/resilience"
)

var seeds = flag.Int("seeds", 3, "how many seeds to play each incident with")

// measure is one figure of an incident and the bound that it must keep.
type measure struct {
	name  string
	of    func(*incident.Result) float64
	least bool // the bound is the least that will do, as opposed to the most
	bound float64
	unit  string
	// single, where it is not 0, is the bound of a single seed; bound is the median's then.
	single float64
}

func (m measure) keeps(v, bound float64) bool {
	if m.least {
		return v >= bound
	}
	return v <= bound
}

// atWorst lets a single seed miss the bound that the median must keep.
func (m measure) atWorst(single float64) measure {
	m.single = single
	return m
}

func (m measure) show(v float64) string { return fmt.Sprintf("%.5g%s", v, m.unit) }

func answered(least float64, but ...string) measure {
	return measure{name: "answered", of: func(r *incident.Result) float64 { return 100 * r.Total(but...).Share() }, least: true, bound: least, unit: "%"}
}

func trips(most float64) measure {
	return measure{name: "breaker opened", of: func(r *incident.Result) float64 {
		return float64(r.Trips(resilience.LayerBreaker, resilience.EventOpened))
	}, bound: most}
}

func wasted(provider, connection string, most float64) measure {
	return measure{name: strings.TrimSpace("wasted on " + provider + " " + connection), of: func(r *incident.Result) float64 {
		return float64(r.Wasted(provider, connection))
	}, bound: most}
}

// back is in seconds.
func back(from time.Duration, rate, most float64) measure {
	return measure{name: "back after", of: func(r *incident.Result) float64 {
		d, ok := r.Back("main", from, rate)
		if !ok {
			return 1e9
		}
		return d.Seconds()
	}, bound: most, unit: "s"}
}

func rush(most float64) measure {
	return measure{name: "most in 100ms", of: func(r *incident.Result) float64 { return float64(r.Rush("main", 100*time.Millisecond)) }, bound: most}
}

func delay(name string, q, most float64) measure {
	return measure{name: name, of: func(r *incident.Result) float64 { return r.Delay(q).Seconds() }, bound: most, unit: "s"}
}

var (
	three     = []string{"k1", "k2", "k3"}
	one       = []incident.Route{{Name: "chat", Entries: []incident.Entry{{"main", "m"}}}}
	fallback  = []incident.Route{{Name: "chat", Entries: []incident.Entry{{"main", "m"}, {"spare", "m"}}}}
	limited   = resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
	limited30 = resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 30 * time.Second}
	denied    = resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth}
)

func outage(from, to time.Duration) incident.Fault { return incident.Fault{From: from, To: to} }

func primary(connections []string, faults ...incident.Fault) incident.Provider {
	return incident.Provider{Name: "main", Connections: connections, Faults: faults}
}

// quick refuses as fast as a provider on the same machine.
func quick(p incident.Provider) incident.Provider {
	p.Refusal = incident.Spread{Median: time.Millisecond}
	return p
}

func badKey(v resilience.Verdict) incident.Fault {
	return incident.Fault{From: 20 * time.Second, To: 320 * time.Second, Connection: "k2", Verdict: v}
}

func flapping() (f []incident.Fault) {
	for i := range 10 {
		from := time.Duration(i) * 30 * time.Second
		f = append(f, outage(from+10*time.Second, from+20*time.Second))
	}
	return f
}

func overloaded(connections []string) incident.Scenario {
	p := primary(connections, outage(20*time.Second, 40*time.Second))
	p.Capacity = 300
	return incident.Scenario{Length: 100 * time.Second, Rate: 200, Even: true, Providers: []incident.Provider{p}, Routes: one}
}

// incidents are what the engine and the attempt loop were made for.
func incidents() []struct {
	name string
	s    incident.Scenario
	want []measure
} {
	spare := incident.Provider{Name: "spare"}
	simple := func(length time.Duration, routes []incident.Route, providers ...incident.Provider) incident.Scenario {
		return incident.Scenario{Length: length, Rate: 200, Providers: providers, Routes: routes}
	}
	even := func(s incident.Scenario) incident.Scenario { s.Even = true; return s }
	steady := func(p incident.Provider, firstToken time.Duration) incident.Scenario {
		return incident.Scenario{Length: 60 * time.Second, Rate: 20, Even: true, Providers: []incident.Provider{p, spare}, Routes: fallback, FirstToken: firstToken}
	}
	models := make([]incident.Route, 5)
	for i := range models {
		name := fmt.Sprintf("m%d", i+1)
		models[i] = incident.Route{Name: name, Entries: []incident.Entry{{"main", name}}}
	}
	hung := incident.Fault{From: 30 * time.Second, To: 90 * time.Second, Hang: true}
	return []struct {
		name string
		s    incident.Scenario
		want []measure
	}{
		{"5% random 500s", simple(200*time.Second, one, primary(three, incident.Fault{Share: 0.05})), []measure{answered(99.9), trips(0)}},
		{"5% random 500s, one connection", simple(200*time.Second, one, primary(nil, incident.Fault{Share: 0.05})), []measure{answered(99.9), trips(0)}},
		{"one key of three limited for 5m", simple(350*time.Second, one, primary(three, badKey(limited))), []measure{answered(99.9), wasted("main", "k2", 100)}},
		{"one key of three denied for 5m", simple(350*time.Second, one, primary(three, badKey(denied))), []measure{answered(99.9), wasted("main", "k2", 100)}},
		{"one key of three answers 500 for 5m", simple(350*time.Second, one, primary(three, badKey(incident.ServerError))), []measure{answered(99.9), wasted("main", "k2", 100).atWorst(120)}},
		{"outage of 5s in 60s", even(simple(60*time.Second, one, primary(three, outage(20*time.Second, 25*time.Second)))), []measure{answered(98), rush(60)}},
		{"outage of 60s in 200s", even(simple(200*time.Second, one, primary(three, outage(60*time.Second, 120*time.Second)))), []measure{answered(66), back(120*time.Second, 100, 15), rush(60)}},
		{"10s down, 20s up, ten times", even(simple(300*time.Second, one, primary(three, flapping()...))), []measure{answered(80), rush(60)}},
		// Once it fails again every request tries its three connections at once, new ones included.
		{"fails above 1.5x, outage of 20s in 100s", overloaded(three), []measure{answered(78), rush(60).atWorst(90)}},
		{"fails above 1.5x, one connection", overloaded(nil), []measure{answered(78), rush(60)}},
		{"hang of 60s, fallback", simple(120*time.Second, fallback, primary(three, hung), spare),
			[]measure{answered(100), delay("p99 delay", 0.99, 5), delay("worst delay", 1, 7), back(90*time.Second, 100, 5).atWorst(7)}},
		{"one bad model of five", simple(120*time.Second, models, primary(three, incident.Fault{From: 20 * time.Second, To: 80 * time.Second, Model: "m1"})),
			[]measure{answered(99.9, "m1")}},
		{"two models of one account", simple(120*time.Second, []incident.Route{{Name: "chat", Entries: []incident.Entry{{"main", "m1"}, {"main", "m2"}}}},
			primary(nil, incident.Fault{From: 20 * time.Second, To: 80 * time.Second, Model: "m1"})), []measure{answered(99.4)}},
		{"1% random 500s, fallback", simple(200*time.Second, fallback, primary(three, incident.Fault{Share: 0.01}), spare),
			[]measure{answered(100), {name: "moved down", of: func(r *incident.Result) float64 {
				return 100 * float64(r.AnsweredBy("spare")) / float64(r.Total().Requests)
			}, bound: 0.1, unit: "%"}}},
		{"20/s, key 1 limited for 30s", steady(primary(three[:2], incident.Fault{Connection: "k1", Verdict: limited30}), 0),
			[]measure{answered(100), wasted("main", "k1", 3)}},
		{"20/s, 500s from a cold start", steady(quick(primary(three, incident.Fault{})), 0), []measure{answered(100), wasted("main", "", 12)}},
		{"20/s, 500s from a cold start, one connection", steady(quick(primary(nil, incident.Fault{})), 0), []measure{answered(100), wasted("main", "", 12)}},
		{"20/s, hang from a cold start", hangFromStart(steady(primary(three, incident.Fault{To: 60 * time.Second, Hang: true}), 5*time.Second)),
			[]measure{answered(100), {name: "delayed", of: func(r *incident.Result) float64 { return float64(r.Delayed(0)) }, bound: 40},
				delay("worst delay", 1, 2), back(60*time.Second, 10, 15)}},
	}
}

// hangFromStart goes on for half a minute after the hang.
func hangFromStart(s incident.Scenario) incident.Scenario {
	s.Length = 90 * time.Second
	return s
}

// TestIncidents plays every incident with several seeds and prints the medians beside the bounds.
func TestIncidents(t *testing.T) {
	t.Parallel()
	n := *seeds
	if testing.Short() || raceEnabled {
		n = 1
	}
	all := incidents()
	lines := make([]string, len(all))
	var wg sync.WaitGroup
	for i, c := range all {
		wg.Go(func() { lines[i] = play(t, c.name, c.s, c.want, n) })
	}
	wg.Wait()
	t.Logf("medians over %d seeds (bounds in brackets)\n%s", n, strings.Join(lines, "\n"))
}

func play(t *testing.T, name string, s incident.Scenario, want []measure, seeds int) string {
	s.Name = name
	values := make([][]float64, len(want))
	for seed := range seeds {
		r, err := incident.Run(s, uint64(seed)+1)
		if err != nil {
			t.Error(err)
			return name
		}
		for i, m := range want {
			v := m.of(r)
			values[i] = append(values[i], v)
			bound := m.bound
			if m.single != 0 {
				bound = m.single
			}
			if !m.keeps(v, bound) {
				t.Errorf("%s, seed %d: %s %s, want %s", name, seed+1, m.name, m.show(v), m.show(bound))
			}
		}
	}
	line := fmt.Sprintf("%-44s", name)
	for i, m := range want {
		slices.Sort(values[i])
		median := values[i][seeds/2]
		if seeds >= 3 && !m.keeps(median, m.bound) {
			t.Errorf("%s: median %s %s, want %s", name, m.name, m.show(median), m.show(m.bound))
		}
		line += fmt.Sprintf("  %s %s (%s)", m.name, m.show(median), m.show(m.bound))
	}
	return line
}
