package simulate

import (
	"cmp"
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

var seeds = flag.Int("seeds", 3, "how many seeds to play each incident with")

// incident is an outage of the kind that the engine and the attempt loop were made for, and what
// must come of it.
type incident struct {
	name     string
	schedule string
	want     []measure
}

// played is an incident that was played, with what the report does not say.
type played struct {
	*Report
	tally  *tally
	calls  []dispatched // in order
	events []happened
}

type dispatched struct {
	at   time.Duration
	key  resilience.Key
	good bool // it will be answered
}

type happened struct {
	at time.Duration
	resilience.Event
}

// spy notes what an upstream is asked.
type spy struct {
	upstream
	p *played
}

func (s spy) receive(up *route.Upstream, key resilience.Key, stream bool, output float64, now time.Duration) fate {
	f := s.upstream.receive(up, key, stream, output, now)
	s.p.calls = append(s.p.calls, dispatched{now, key, !f.hangs && f.failure == nil})
	return f
}

// watched is Run with spies.
func watched(f *File) (*played, error) {
	rules, err := route.Classifier(f.cfg)
	if err != nil {
		return nil, err
	}
	p, verdicts := &played{}, &faults{rules: rules, known: map[faultKey]*effect{}}
	w, err := f.world(func(i int, c *config.Provider) (upstream, error) {
		u := f.Upstreams[c.ID]
		if err := f.checkUpstream(c.ID, &u, "$.upstreams"); err != nil {
			return nil, err
		}
		return spy{&provider{Upstream: u, rng: rand.New(rand.NewPCG(f.Seed, uint64(i)+1)), faults: verdicts, windows: map[window]int{}}, p}, nil
	})
	if err != nil {
		return nil, err
	}
	w.nodes[0].engine.Subscribe(func(ev resilience.Event) { p.events = append(p.events, happened{w.now, ev}) })
	for i := range f.Traffic {
		w.begin(&f.Traffic[i], uint64(i))
	}
	p.Report, p.tally = w.run(), w.tally
	return p, nil
}

// on returns when a provider was asked, in order; good leaves out what came to nothing.
func (p *played) on(provider string, good bool) (at []time.Duration) {
	for _, c := range p.calls {
		if c.key.Provider == provider && (c.good || !good) {
			at = append(at, c.at)
		}
	}
	return at
}

func (p *played) sum(provider, connection string, of func(TargetReport) int) (n int) {
	for _, t := range p.Targets {
		if t.Provider == provider && (connection == "" || t.Connection == connection) {
			n += of(t)
		}
	}
	return n
}

// back says how long after from the primary was in use again: the time to the first attempt that it
// answered and after which it answered at least rate attempts within a second.
func (p *played) back(from time.Duration, rate int) time.Duration {
	a := p.on("main", true)
	i, _ := slices.BinarySearch(a, from)
	for ; i < len(a); i++ {
		end, _ := slices.BinarySearchFunc(a, a[i]+time.Second, cmp.Compare[time.Duration])
		if end-i >= rate {
			return a[i] - from
		}
	}
	return 1e9 * time.Second
}

func rush(most float64) measure {
	return measure{name: "most in 100ms", of: func(p *played) float64 { return float64(p.rush()) }, bound: most}
}

// plot writes a schedule: how long, how many a second, evenly or not, which combo the requests go
// to, with what settings, on how many connections of the primary; and how the primary behaves.
type plot struct {
	length   string
	rate     int
	even     bool
	targets  string // of the combo
	settings string // of the combo
	keys     int    // of the primary
	primary  string // its keys in the schedule
}

func (w plot) String() string {
	var keys []string
	for i := range w.keys {
		keys = append(keys, fmt.Sprintf("{id: k%d, api_key: x}", i+1))
	}
	arrivals := "random"
	if w.even {
		arrivals = "even"
	}
	return fmt.Sprintf(`
config: |
  providers:
    main: {dialect: openai, base_url: "https://main.example/v1", connections: [%s]}
    spare: {dialect: openai, base_url: "https://spare.example/v1", connections: [{id: k1, api_key: x}]}
  combos:
    chat: {strategy: priority, targets: [%s]%s}
length: %s
traffic:
  - {model: chat, rate: %d, arrivals: %s, output_tokens: {median: 340, spread: 0.5}}
upstreams:
  main: {speed: 100, %s}
  spare: {speed: 100}
`, strings.Join(keys, ", "), w.targets, w.settings, w.length, w.rate, arrivals, w.primary)
}

const (
	alone    = "main/m"
	fallback = "main/m, spare/m"
)

func during(from, to, answer string) string {
	return fmt.Sprintf("events: [{from: %s, to: %s, answer: %q}]", from, to, answer)
}

func badKey(answer string) string {
	return fmt.Sprintf("events: [{from: 20s, to: 320s, connection: k2, answer: %q}]", answer)
}

func flapping() string {
	var events []string
	for i := range 10 {
		events = append(events, fmt.Sprintf("{from: %ds, to: %ds, answer: \"500\"}", i*30+10, i*30+20))
	}
	return "events: [" + strings.Join(events, ", ") + "]"
}

func incidents() []incident {
	overloaded := func(keys int) string {
		return plot{"100s", 200, true, alone, "", keys, "capacity: 300, overload: \"500\", " + during("20s", "40s", "500")}.String()
	}
	steady := func(keys int, settings, primary string) string {
		return plot{"60s", 20, true, fallback, settings, keys, primary}.String()
	}
	moved := measure{name: "moved down", of: func(p *played) float64 {
		return 100 * float64(p.sum("spare", "", func(t TargetReport) int { return t.Answered })) / float64(p.Requests)
	}, bound: 0.1, unit: "%"}
	late := measure{name: "delayed", of: func(p *played) float64 { return float64(p.tally.added.n - uint64(p.tally.added.counts[0])) }, bound: 40}
	return []incident{
		{"5% random 500s", plot{"200s", 200, false, alone, "", 3, `events: [{share: 0.05, answer: "500"}]`}.String(), []measure{answeredAtLeast(99.9), opened(0)}},
		{"5% random 500s, one connection", plot{"200s", 200, false, alone, "", 1, `events: [{share: 0.05, answer: "500"}]`}.String(), []measure{answeredAtLeast(99.9), opened(0)}},
		{"one key of three limited for 5m", plot{"350s", 200, false, alone, "", 3, badKey("429-no-hint")}.String(), []measure{answeredAtLeast(99.9), wasted("k2", 100)}},
		{"one key of three denied for 5m", plot{"350s", 200, false, alone, "", 3, badKey("401")}.String(), []measure{answeredAtLeast(99.9), wasted("k2", 100)}},
		{"one key of three answers 500 for 5m", plot{"350s", 200, false, alone, "", 3, badKey("500")}.String(), []measure{answeredAtLeast(99.9), wasted("k2", 100).atWorst(120)}},
		{"outage of 5s in 60s", plot{"60s", 200, true, alone, "", 3, during("20s", "25s", "500")}.String(), []measure{answeredAtLeast(98), rush(60)}},
		{"outage of 60s in 200s", plot{"200s", 200, true, alone, "", 3, during("60s", "120s", "500")}.String(), []measure{answeredAtLeast(66), backIn(120*time.Second, 100, 15), rush(60)}},
		{"10s down, 20s up, ten times", plot{"300s", 200, true, alone, "", 3, flapping()}.String(), []measure{answeredAtLeast(80), rush(60)}},
		// Once it fails again every request tries its three connections at once, new ones included.
		{"fails above 1.5x, outage of 20s in 100s", overloaded(3), []measure{answeredAtLeast(78), rush(60).atWorst(90)}},
		{"fails above 1.5x, one connection", overloaded(1), []measure{answeredAtLeast(78), rush(60)}},
		{"hang of 60s, fallback", plot{"120s", 200, false, fallback, "", 3, during("30s", "90s", "hang")}.String(),
			[]measure{answeredAtLeast(100), delayed("p99 delay", 0.99, 5), delayed("worst delay", 1, 7), backIn(90*time.Second, 100, 5).atWorst(7)}},
		{"one bad model of five", fiveModels, []measure{{name: "others answered", of: func(p *played) float64 {
			return 100 * float64(p.Answered-p.sum("main", "", func(t TargetReport) int {
				if t.Model == "m1" {
					return t.Answered
				}
				return 0
			})) / float64(p.tally.rep.Requests-p.firstModel())
		}, least: true, bound: 99.9, unit: "%"}}},
		{"two models of one account", plot{"120s", 200, false, "main/m1, main/m2", "", 1, `events: [{from: 20s, to: 80s, model: m1, answer: "500"}]`}.String(), []measure{answeredAtLeast(99.4)}},
		{"1% random 500s, fallback", plot{"200s", 200, false, fallback, "", 3, `events: [{share: 0.01, answer: "500"}]`}.String(), []measure{answeredAtLeast(100), moved}},
		{"20/s, key 1 limited for 30s", steady(2, "", `events: [{connection: k1, answer: "429:30s"}]`), []measure{answeredAtLeast(100), wasted("k1", 3)}},
		{"20/s, 500s from a cold start", steady(3, "", `refusal: 1ms, events: [{answer: "500"}]`), []measure{answeredAtLeast(100), wasted("", 12)}},
		{"20/s, 500s from a cold start, one connection", steady(1, "", `refusal: 1ms, events: [{answer: "500"}]`), []measure{answeredAtLeast(100), wasted("", 12)}},
		{"20/s, hang from a cold start", plot{"90s", 20, true, fallback, ", first_token_timeout: 5s", 3, during("0s", "60s", "hang")}.String(),
			[]measure{answeredAtLeast(100), late, delayed("worst delay", 1, 2), backIn(60*time.Second, 10, 15)}},
	}
}

// fiveModels has one bad one among the models of an account, each asked for as often as the others.
const fiveModels = `
config: |
  providers:
    main: {dialect: openai, base_url: "https://main.example/v1", connections: [{id: k1, api_key: x}, {id: k2, api_key: x}, {id: k3, api_key: x}]}
length: 120s
traffic:
  - {model: main/m1, rate: 40}
  - {model: main/m2, rate: 40}
  - {model: main/m3, rate: 40}
  - {model: main/m4, rate: 40}
  - {model: main/m5, rate: 40}
upstreams:
  main: {events: [{from: 20s, to: 80s, model: m1, answer: "500"}]}
`

// firstModel is how many requests asked for the bad model: all that failed did.
func (p *played) firstModel() int {
	return p.Failed + p.Broken + p.sum("main", "", func(t TargetReport) int {
		if t.Model == "m1" {
			return t.Answered
		}
		return 0
	})
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
		wg.Go(func() { lines[i] = c.play(t, n) })
	}
	wg.Wait()
	t.Logf("medians over %d seeds (bounds in brackets)\n%s", n, strings.Join(lines, "\n"))
}

func (c incident) play(t *testing.T, seeds int) string {
	values := make([][]float64, len(c.want))
	for seed := range seeds {
		f, err := Parse(c.name, []byte(c.schedule))
		if err != nil {
			t.Error(err)
			return c.name
		}
		f.Seed = uint64(seed) + 1
		p, err := watched(f)
		if err != nil {
			t.Error(err)
			return c.name
		}
		for i, m := range c.want {
			v := m.of(p)
			values[i] = append(values[i], v)
			bound := m.bound
			if m.single != 0 {
				bound = m.single
			}
			if !m.keeps(v, bound) {
				t.Errorf("%s, seed %d: %s %s, want %s", c.name, seed+1, m.name, m.show(v), m.show(bound))
			}
		}
	}
	line := fmt.Sprintf("%-44s", c.name)
	for i, m := range c.want {
		slices.Sort(values[i])
		median := values[i][seeds/2]
		if seeds >= 3 && !m.keeps(median, m.bound) {
			t.Errorf("%s: median %s %s, want %s", c.name, m.name, m.show(median), m.show(m.bound))
		}
		line += fmt.Sprintf("  %s %s (%s)", m.name, m.show(median), m.show(m.bound))
	}
	return line
}

// Hedging within its budget cuts the tail of a provider that is slow now and then, for no more
// further calls than the budget allows.
func TestHedges(t *testing.T) {
	t.Parallel()
	run := func(settings string) *Report {
		f, err := Parse("hedge", []byte(plot{"10m", 20, false, fallback, settings, 3, "first: {median: 600ms, spread: 1}"}.String()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := f.Run()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	without, with := run(""), run(", hedge: {after: p95, budget: 5%}")
	share := ratio(with.Attempts-with.Requests, with.Requests)
	t.Logf("without: p99 %v ms; with: p99 %v ms, %.2f%% more calls", without.First.P99, with.First.P99, 100*share)
	if with.First.P99 > without.First.P99*0.8 {
		t.Errorf("p99 of the first content went from %v to %v ms", without.First.P99, with.First.P99)
	}
	if share > 0.055 || share < 0.03 {
		t.Errorf("%.2f%% more calls", 100*share)
	}
}

// A hang holds back what is due in it as well.
func TestHangHoldsBack(t *testing.T) {
	t.Parallel()
	f, err := Parse("hang", []byte(plot{"10s", 10, true, alone, ", first_token_timeout: 2s", 1, "first: 1s, events: [{from: 5s, to: 5500ms, answer: hang}]"}.String()))
	if err != nil {
		t.Fatal(err)
	}
	r, err := f.Run()
	if err != nil {
		t.Fatal(err)
	}
	if r.Wasted != 15 {
		t.Errorf("%d attempts hung, want those of one and a half seconds", r.Wasted)
	}
}
