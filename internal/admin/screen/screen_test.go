package screen

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/internal/admin"
	"omniroute/internal/route"
	"omniroute/resilience"
)

var update = flag.Bool("update", false, "write the golden files")

func ptr[T any](v T) *T { return &v }

var now = resilience.Timestamp{Time: time.Date(2026, 1, 5, 10, 0, 0, 0, time.Local)}

func example() admin.Status {
	return admin.Status{Version: "1.2.3", Waiting: 3, Status: resilience.Status{
		Now: now, Persistence: "degraded", Local: true,
		Providers: []resilience.ProviderStatus{
			{ID: "acme", Breaker: resilience.BreakerStatus{State: resilience.Open, Failures: 5, FailureThreshold: 5, RetryAfterMs: 1830, LastKind: ptr(resilience.KindServerError)}, Connections: []resilience.ConnectionStatus{
				{ID: "main", State: resilience.Cooling, Kind: ptr(resilience.KindRateLimit), RetryAfterMs: 95_000, BackoffLevel: 4},
				{ID: "spare", State: resilience.Ready},
				{ID: "old", State: resilience.Quarantined, Kind: ptr(resilience.KindBilling), BackoffLevel: 1},
				{ID: "eu", State: resilience.Probing, BackoffLevel: 2, Breaker: &resilience.BreakerStatus{State: resilience.HalfOpen}},
			}},
			{ID: "beta", Breaker: resilience.BreakerStatus{State: resilience.Degraded, Failures: 3, FailureThreshold: 5, LastKind: ptr(resilience.KindTimeout)}, Connections: []resilience.ConnectionStatus{
				{ID: "only", State: resilience.Cooling, Kind: ptr(resilience.KindTimeout), RetryAfterMs: 2000, Models: []string{"large", "small"}},
			}},
			{ID: "domain", Breaker: resilience.BreakerStatus{State: resilience.Open, RetryAfterMs: 60_000}, Connections: []resilience.ConnectionStatus{
				{ID: "own", State: resilience.Excluded, Breaker: &resilience.BreakerStatus{State: resilience.Closed}},
			}},
			{ID: "idle", Breaker: resilience.BreakerStatus{State: resilience.Closed}},
		},
		Combos: []resilience.ComboStatus{{ID: "coding", Kind: ptr(resilience.KindServerError)}, {ID: "well", Available: true}},
		Lockouts: []resilience.LockoutStatus{
			{Provider: "acme", Connection: "main", Model: "large", Kind: resilience.KindModelNotFound, Failures: 1, Locked: true, RetryAfterMs: 3_700_000},
			{Provider: "acme", Connection: "spare", Model: strings.Repeat("a-very-long-model-name/", 5), Kind: resilience.KindMalformedResponse, Failures: 2, RetryAfterMs: 200_000_000},
		},
		Operator: []resilience.OperatorStatus{
			{Key: resilience.Key{Provider: "beta"}, Reason: "maintenance"},
			{Key: resilience.Key{Provider: "acme", Connection: "eu"}, Until: resilience.Timestamp{Time: now.Add(90 * time.Second)}, Reason: strings.Repeat("a long story ", 10)},
		},
	}}
}

// well is the status of a gateway with nothing out.
func well() admin.Status {
	return admin.Status{Version: "1.2.3", Panic: true, Status: resilience.Status{Now: now, Persistence: "ok", Providers: []resilience.ProviderStatus{
		{ID: "acme", Available: true, Breaker: resilience.BreakerStatus{State: resilience.Closed}, Connections: []resilience.ConnectionStatus{{ID: "main", State: resilience.Ready}}},
	}}}
}

var explanation = admin.Explanation{Route: "acme/large", Candidates: []route.Candidate{
	{Provider: "acme", Connection: "main", Model: "large", Layer: ptr(resilience.LayerConnection), Kind: ptr(resilience.KindRateLimit), RetryAfterMs: 1500, Reason: "the connection cools down (openai.rate_limit)"},
	{Provider: "acme", Connection: "spare", Model: "large", Eligible: true, Reason: "nothing is known against it"},
	{Provider: "beta", Connection: "only", Model: strings.Repeat("long/", 20), Layer: ptr(resilience.LayerOperator), Reason: strings.Repeat("an operator took it out ", 9)},
}}

// TestPages compares whole pages with golden files; -update writes them.
func TestPages(t *testing.T) {
	t.Parallel()
	long := example()
	long.Providers[1].Connections[0].Models = []string{"a-model-with-a-long-name"}
	fleet := example()
	fleet.Cluster, fleet.NodeCount = resilience.ClusterOK, 103
	fleet.Nodes = []resilience.NodeStatus{{ID: "alpha-3f21aa", Self: true, AgeMs: 240}, {ID: "beta-99e012", AgeMs: 17_300, Stale: true}}
	alone := fleet
	alone.Cluster, alone.NodeCount, alone.Nodes = resilience.ClusterIsolated, 1, []resilience.NodeStatus{{ID: "alpha-3f21aa", Self: true, AgeMs: 61_000, Stale: true}}
	for name, write := range map[string]func(*strings.Builder, Style){
		"status":          func(b *strings.Builder, s Style) { s.Status(b, example(), "http://127.0.0.1:20128") },
		"status_long":     func(b *strings.Builder, s Style) { s.Status(b, long, "http://127.0.0.1:20128") },
		"status_fleet":    func(b *strings.Builder, s Style) { s.Status(b, fleet, "http://127.0.0.1:20128") },
		"status_isolated": func(b *strings.Builder, s Style) { s.Status(b, alone, "http://127.0.0.1:20128") },
		"explain":         func(b *strings.Builder, s Style) { s.Explain(b, "large", explanation) },
		"explain_empty":   func(b *strings.Builder, s Style) { s.Explain(b, "idle/x", admin.Explanation{Route: "idle/x"}) },
		"status_narrow":   func(b *strings.Builder, s Style) { s.Width = 40; s.Status(b, fleet, "http://127.0.0.1:20128") },
		"status_well":     func(b *strings.Builder, s Style) { s.Status(b, well(), "http://127.0.0.1:20128") },
	} {
		var plain, coloured strings.Builder
		write(&plain, Style{})
		write(&coloured, Style{Colour: true})
		golden := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(golden, []byte(plain.String()), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), plain.String()); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if diff := cmp.Diff(plain.String(), ansi.ReplaceAllString(coloured.String(), "")); diff != "" {
			t.Errorf("%s: colours change the text: %s", name, diff)
		}
		if plain.String() == coloured.String() {
			t.Errorf("%s: no colours", name)
		}
		checkLines(t, plain.String(), Width)
	}
}

// TestWhole shows that nothing is cut for an output that is no terminal.
func TestWhole(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	st := example()
	Style{Whole: true}.Status(&b, st, "http://127.0.0.1:20128")
	Style{Whole: true}.Explain(&b, "large", explanation)
	for _, want := range []string{st.Lockouts[1].Model, strings.TrimSpace(st.Operator[1].Reason), "cooling (large, small only) 2.0s timeout", explanation.Candidates[2].Model, explanation.Candidates[2].Reason} {
		if !strings.Contains(b.String(), strings.TrimSpace(want)) {
			t.Errorf("%q is not whole:\n%s", want, &b)
		}
	}
	if strings.Contains(b.String(), "…") {
		t.Errorf("something was cut:\n%s", &b)
	}
}

var ansi = regexp.MustCompile("\x1b\\[[0-9]+m")

func checkLines(t interface{ Errorf(string, ...any) }, page string, width int) {
	for _, line := range strings.Split(page, "\n") {
		if n := utf8.RuneCountInString(line); n > width {
			t.Errorf("%d columns: %s", n, line)
		}
		if strings.ContainsFunc(line, func(r rune) bool { return !unicode.IsPrint(r) }) {
			t.Errorf("not printable: %q", line)
		}
	}
}

// TestAnyNames shows that no name from outside breaks the table or reaches the terminal's controls.
func TestAnyNames(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		st := example()
		width := rapid.IntRange(minWidth, 200).Draw(t, "width")
		text := rapid.OneOf(rapid.String(), rapid.StringN(60, 200, -1), rapid.Just("\x1b[2J\xff\n"))
		st.Version = text.Draw(t, "version")
		st.Providers[0].ID = text.Draw(t, "provider")
		st.Providers[0].Connections[0].ID = text.Draw(t, "connection")
		st.Lockouts[0].Model = text.Draw(t, "model")
		st.Operator[0].Reason = text.Draw(t, "reason")
		var b strings.Builder
		Style{Width: width}.Status(&b, st, text.Draw(t, "address"))
		x := explanation
		x.Candidates = append([]route.Candidate{{Provider: text.Draw(t, "p"), Reason: text.Draw(t, "why")}}, x.Candidates...)
		Style{Width: width}.Explain(&b, text.Draw(t, "asked"), x)
		checkLines(t, b.String(), width)
	})
}

func TestDurations(t *testing.T) {
	t.Parallel()
	for ms, want := range map[int64]string{
		0: "0.0s", 1840: "1.8s", 9_999: "10.0s", 10_000: "10s", 119_999: "119s", 120_000: "2m00s", 190_000: "3m10s", 7_500_000: "2h05m", 277_200_000: "3d5h",
	} {
		if got := duration(ms); got != want {
			t.Errorf("%d: %s, want %s", ms, got, want)
		}
	}
}
