package admin

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

func TestStories(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, func(o *Options) { o.Stories = 3 })
	at := time.Date(2026, 1, 5, 10, 0, 0, 0, time.UTC)
	key := resilience.Key{Provider: "acme", Connection: "main", Model: "large"}
	for i := range 5 {
		b.Observe(telemetry.Story{
			ID: fmt.Sprintf("r%d", i), At: at, Dialect: "openai", Method: "POST", Path: "/v1/chat/completions", Model: "coding", Route: "coding", Stream: true, Status: 200,
			Duration: 1500 * time.Millisecond, FirstContent: 300 * time.Millisecond, Usage: dialect.Usage{Known: true, Input: 7, Output: 9},
			Recovery: &telemetry.Recovery{Outcome: telemetry.Recovered, Way: "restart", Bytes: 12},
			Attempts: []failover.Record{
				{Key: key, At: at, Outcome: failover.OutcomeFailed, Status: 429, Verdict: resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 2 * time.Second, Rule: "r"}, Duration: 40 * time.Millisecond},
				{Key: key, At: at, Outcome: failover.OutcomeAnswered, Status: 200, FirstContent: 250 * time.Millisecond, Duration: time.Second, Probe: true, Resumes: true},
			},
			Skipped: []failover.Skip{
				{Key: key, Exclusion: resilience.Exclusion{Layer: resilience.LayerBreaker, Kind: resilience.KindTimeout, Until: at, RetryAfter: time.Second}},
				{Key: key, Exclusion: resilience.Exclusion{Layer: resilience.LayerOperator}},
				{Key: key, Unfit: true},
			},
		})
	}
	for _, c := range []struct {
		query string
		want  []string
	}{
		{"", []string{"r4 answered", "r4 failed", "r3 answered", "r3 failed", "r2 answered", "r2 failed"}},
		{"?limit=3", []string{"r4 answered", "r4 failed", "r3 answered"}},
	} {
		var got []string
		for _, a := range want[map[string][]Attempt](b, 200, "GET", "/admin/v1/attempts"+c.query, "")["attempts"] {
			got = append(got, a.RequestID+" "+string(a.Outcome))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("attempts%s: %s", c.query, diff)
		}
	}
	got := want[Request](b, 200, "GET", "/admin/v1/requests/r3", "")
	stamp := resilience.Timestamp{Time: at}
	wanted := Request{
		ID: "r3", At: stamp, Dialect: "openai", Method: "POST", Path: "/v1/chat/completions", Model: "coding", Route: "coding", Stream: true, Status: 200,
		DurationMs: 1500, FirstContentMs: 300, Usage: &Usage{Input: 7, Output: 9}, Recovery: &Recovery{Outcome: telemetry.Recovered, Way: "restart", Bytes: 12},
		Attempts: []Attempt{
			{RequestID: "r3", At: stamp, Provider: "acme", Connection: "main", Model: "large", Outcome: "failed", Status: 429, Scope: ptr(resilience.ScopeConnection),
				Kind: ptr(resilience.KindRateLimit), Rule: "r", RetryAfterMs: 2000, DurationMs: 40},
			{RequestID: "r3", At: stamp, Provider: "acme", Connection: "main", Model: "large", Outcome: "answered", Status: 200, Probe: true, Resumes: true, FirstContentMs: 250, DurationMs: 1000},
		},
		Skipped: []Skipped{
			{Provider: "acme", Connection: "main", Model: "large", Layer: ptr(resilience.LayerBreaker), Kind: ptr(resilience.KindTimeout), Until: stamp, RetryAfterMs: 1000},
			{Provider: "acme", Connection: "main", Model: "large", Layer: ptr(resilience.LayerOperator)},
			{Provider: "acme", Connection: "main", Model: "large", Unfit: true},
		},
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Error(diff)
	}
	if w := b.ask("GET", "/admin/v1/requests/r1", ""); w.Code != 404 {
		t.Errorf("an old story is still there: %s", w.Body)
	}
}
