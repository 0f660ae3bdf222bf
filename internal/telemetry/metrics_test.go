package telemetry

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/resilience"
)

// world is a configuration with two providers, one of them with two keys, and a combo.
func world() resilience.Config {
	return resilience.Config{
		Providers: map[string]resilience.Provider{
			"acme": {Connections: []resilience.Connection{{ID: "k1"}, {ID: "k2"}}, Models: []string{"large", "small"}},
			"beta": {Connections: []resilience.Connection{{ID: "only"}}, Models: []string{"large"}},
		},
		Combos: map[string][]resilience.Key{"coding": {{Provider: "acme", Connection: "k1", Model: "large"}}},
	}
}

func start(t testing.TB) (*resilience.Engine, *Metrics) {
	t.Helper()
	c := world()
	stopped := time.Now() // an early probe would let a provider back in while a slow machine still looks
	e, err := resilience.New(resilience.Options{Config: c, Now: func() time.Time { return stopped }})
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{Engine: e, Config: c, Version: "v1", Waiting: func() int { return 3 }, Panics: func() int64 { return 2 }})
	t.Cleanup(m.Close)
	return e, m
}

var (
	large = resilience.Key{Provider: "acme", Connection: "k1", Model: "large"}
	begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

// answered is the story of a request that its first attempt answered.
func answered() Story {
	return Story{
		ID: "r1", At: begin, Model: "coding", Route: "coding", Stream: true, Status: 200,
		Duration: 2 * time.Second, FirstContent: 300 * time.Millisecond,
		Usage: dialect.Usage{Known: true, Input: 100, Output: 20, Reasoning: 5},
		Attempts: []failover.Record{{
			Key: large, At: begin, Outcome: failover.OutcomeAnswered, Status: 200,
			FirstContent: 299 * time.Millisecond, Duration: 2 * time.Second,
		}},
	}
}

// failing is the story of a request that waited, failed over and came to no answer.
func failing() Story {
	v := resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
	return Story{
		At: begin, Route: "coding", Status: 429, Code: dialect.CodeAllTargetsUnavailable, Duration: 3 * time.Second,
		Attempts: []failover.Record{
			{Key: large, At: begin, Outcome: failover.OutcomeFailed, Verdict: v, Status: 429, Duration: 500 * time.Millisecond},
			{Key: large, At: begin.Add(1500 * time.Millisecond), Outcome: failover.OutcomeFailed, Verdict: v, Status: 429,
				Duration: 500 * time.Millisecond, Probe: true},
		},
	}
}

func TestValuesAfterARun(t *testing.T) {
	t.Parallel()
	e, m := start(t)
	p, err := e.Target(large).Acquire()
	if err != nil {
		t.Fatal(err)
	}
	p.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 30 * time.Second})
	other := e.Target(resilience.Key{Provider: "beta", Connection: "only", Model: "large"})
	var permits [5]resilience.Permit // at once, since the second failure cools the connection
	for i := range permits {
		if permits[i], err = other.Acquire(); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range permits {
		p.Failure(resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
	}
	m.Observe(answered())
	m.Observe(failing())
	m.Observe(Story{At: begin, Status: 401, Code: dialect.CodeInvalidAPIKey})
	m.Observe(Story{At: begin, Route: "coding", Status: 418, Code: "im_a_teapot"})
	broke := answered()
	broke.Recovery = &Recovery{Outcome: NotRecovered, Way: "restart", Bytes: 12}
	broke.Broke, broke.Attempts[0].Outcome = "provider/network", failover.OutcomeFailed
	broke.Attempts[0].Verdict = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindNetwork}
	m.Observe(broke)

	for line, want := range map[string]float64{
		`omniroute_requests_total{route="coding",status="200"}`:                                                                         2,
		`omniroute_requests_total{route="coding",status="429"}`:                                                                         1,
		`omniroute_requests_total{route="coding",status="4xx"}`:                                                                         1,
		`omniroute_requests_total{route="(none)",status="401"}`:                                                                         1,
		`omniroute_request_errors_total{code="all_targets_unavailable"}`:                                                                1,
		`omniroute_request_errors_total{code="upstream"}`:                                                                               1,
		`omniroute_recoveries_total{outcome="failed",route="coding",way="restart"}`:                                                     1,
		`omniroute_broken_answers_total{route="coding"}`:                                                                                1,
		`omniroute_request_duration_seconds_sum{route="coding",stream="true"}`:                                                          4,
		`omniroute_request_duration_seconds_count{route="coding",stream="false"}`:                                                       1,
		`omniroute_first_content_seconds_bucket{route="coding",stream="true",le="0.25"}`:                                                0,
		`omniroute_first_content_seconds_bucket{route="coding",stream="true",le="0.5"}`:                                                 2,
		`omniroute_attempt_first_content_seconds_count{connection="k1",model="large",provider="acme"}`:                                  2,
		`omniroute_wait_seconds_sum{route="coding"}`:                                                                                    2,
		`omniroute_attempts_total{connection="k1",kind="unknown",model="large",outcome="answered",provider="acme",scope="none"}`:        1,
		`omniroute_attempts_total{connection="k1",kind="rate_limit",model="large",outcome="failed",provider="acme",scope="connection"}`: 2,
		`omniroute_probes_total{connection="k1",outcome="failed",provider="acme"}`:                                                      1,
		`omniroute_tokens_total{connection="k1",model="large",provider="acme",type="input"}`:                                            100,
		`omniroute_tokens_total{connection="k1",model="large",provider="acme",type="reasoning"}`:                                        5,
		`omniroute_breaker_state{connection="",provider="beta",state="OPEN"}`:                                                           1,
		`omniroute_breaker_state{connection="",provider="beta",state="CLOSED"}`:                                                         0,
		`omniroute_breaker_state{connection="",provider="acme",state="CLOSED"}`:                                                         1,
		`omniroute_breaker_transitions_total{connection="",provider="beta",to="DEGRADED"}`:                                              1,
		`omniroute_breaker_transitions_total{connection="",provider="beta",to="OPEN"}`:                                                  1,
		`omniroute_connection_state{connection="k1",provider="acme",state="cooling"}`:                                                   1,
		`omniroute_connection_state{connection="k2",provider="acme",state="ready"}`:                                                     1,
		`omniroute_exclusions{kind="rate_limit",layer="connection",provider="acme"}`:                                                    1,
		`omniroute_exclusions{kind="server_error",layer="breaker",provider="beta"}`:                                                     1,
		`omniroute_gate_events_total{layer="connection",provider="acme",type="cooling"}`:                                                1,
		`omniroute_provider_available{provider="acme"}`:                                                                                 1,
		`omniroute_provider_available{provider="beta"}`:                                                                                 0,
		`omniroute_persistence_state{state="off"}`:                                                                                      1,
		`omniroute_attempt_duration_seconds_count{connection="k1",model="large",provider="acme"}`:                                       4,
		`omniroute_cluster_state{state="single"}`:                                                                                       1,
		`omniroute_cluster_nodes{state="live"}`:                                                                                         0,
		`omniroute_local_outage`:                                                                                                        0,
		`omniroute_waiting_requests`:                                                                                                    3,
		`omniroute_panics_total`:                                                                                                        2,
	} {
		got, ok := scrape(t, m)[line]
		if !ok {
			t.Errorf("%s is missing", line)
		} else if got != want {
			t.Errorf("%s = %v, want %v", line, got, want)
		}
	}
	retry := scrape(t, m)[`omniroute_connection_retry_after_seconds{connection="k1",provider="acme"}`]
	if retry <= 25 || retry > 30 {
		t.Errorf("k1 is excluded for %v more seconds, want just under 30", retry)
	}
}

// TestPlacesAreShown for connections with and without a limit.
func TestPlacesAreShown(t *testing.T) {
	t.Parallel()
	c := world()
	e, err := resilience.New(resilience.Options{Config: c})
	if err != nil {
		t.Fatal(err)
	}
	set := new(failover.PlaceSet)
	set.Limit(map[resilience.Key]int{{Provider: "acme", Connection: "k1"}: 8, {Provider: "acme", Connection: "k2"}: 0})
	m := New(Options{Engine: e, Config: c, Places: set.Each, Headroom: func(f func(string, string, float64)) {
		f("acme", "k1", 0.5)
		f("acme", "k1", 0.25) // of another limit
		f("acme", "k2", 1)
	}})
	t.Cleanup(m.Close)
	for line, want := range map[string]float64{
		`omniroute_connection_max_calls{connection="k1",provider="acme"}`:      8,
		`omniroute_connection_calls{connection="k2",provider="acme"}`:          0,
		`omniroute_connection_headroom_ratio{connection="k1",provider="acme"}`: 0.25,
		`omniroute_queue_waiting_requests{connection="k1",provider="acme"}`:    0,
	} {
		if got, ok := scrape(t, m)[line]; !ok || got != want {
			t.Errorf("%s = %v, %v; want %v", line, got, ok, want)
		}
	}
	if _, ok := scrape(t, m)[`omniroute_connection_max_calls{connection="k2",provider="acme"}`]; ok {
		t.Error("a connection without a limit has one")
	}
}

// TestExclusionsThatEndAreZero: a series that vanishes would keep an alert's last value.
func TestExclusionsThatEndAreZero(t *testing.T) {
	t.Parallel()
	e, m := start(t)
	p, err := e.Target(large).Acquire()
	if err != nil {
		t.Fatal(err)
	}
	p.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindQuotaExhausted})
	const line = `omniroute_exclusions{kind="quota_exhausted",layer="connection",provider="acme"}`
	if got := scrape(t, m)[line]; got != 1 {
		t.Fatalf("%s = %v, want 1", line, got)
	}
	e.MarkAccountAvailable(resilience.Key{Provider: "acme", Connection: "k1"})
	if got, ok := scrape(t, m)[line]; got != 0 || !ok {
		t.Errorf("%s = %v, %v after its end, want 0, true", line, got, ok)
	}
}

// TestHedges counts what came of second attempts, and the losers by their outcome.
func TestHedges(t *testing.T) {
	t.Parallel()
	_, m := start(t)
	attempt := func(o failover.Outcome, hedge bool, first time.Duration) failover.Record {
		return failover.Record{Key: large, At: begin, Outcome: o, Hedge: hedge, FirstContent: first, Duration: time.Second}
	}
	for _, pair := range [][2]failover.Record{
		{attempt(failover.OutcomeHedgeLost, false, 0), attempt(failover.OutcomeAnswered, true, time.Second)},
		{attempt(failover.OutcomeHedgeLost, false, 0), attempt(failover.OutcomeFailed, true, time.Second)}, // it won and broke off
		{attempt(failover.OutcomeAnswered, false, time.Second), attempt(failover.OutcomeHedgeLost, true, 0)},
		{attempt(failover.OutcomeAnswered, false, time.Second), attempt(failover.OutcomeFailed, true, 0)},
		{attempt(failover.OutcomeCanceled, false, 0), attempt(failover.OutcomeCanceled, true, 0)},
	} {
		m.Observe(Story{At: begin, Route: "coding", Status: 200, Duration: time.Second, Attempts: pair[:]})
	}
	all := scrape(t, m)
	for line, want := range map[string]float64{
		`omniroute_hedges_total{result="won",route="coding"}`:                                                                      2,
		`omniroute_hedges_total{result="lost",route="coding"}`:                                                                     1,
		`omniroute_hedges_total{result="failed",route="coding"}`:                                                                   1,
		`omniroute_hedges_total{result="canceled",route="coding"}`:                                                                 1,
		`omniroute_attempts_total{connection="k1",kind="unknown",model="large",outcome="hedge_lost",provider="acme",scope="none"}`: 3,
	} {
		if got := all[line]; got != want {
			t.Errorf("%s = %v, want %v", line, got, want)
		}
	}
}

func TestConfigureForgets(t *testing.T) {
	t.Parallel()
	e, m := start(t)
	m.Observe(answered())
	c := world()
	delete(c.Providers, "acme")
	c.Combos = nil
	if err := e.Configure(c); err != nil {
		t.Fatal(err)
	}
	m.Configure(c)
	for line := range scrape(t, m) {
		if strings.Contains(line, "acme") || strings.Contains(line, `route="coding"`) {
			t.Errorf("still shown after its end: %s", line)
		}
	}
	m.Observe(answered()) // a request that began before
	if got := scrape(t, m)[`omniroute_requests_total{route="(unlisted)",status="200"}`]; got != 1 {
		t.Errorf("the late request is counted %v times as unlisted, want 1", got)
	}
}

func TestConfigureKeepsCounting(t *testing.T) {
	t.Parallel()
	_, m := start(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				m.Observe(answered())
			}
		})
	}
	for range 50 {
		m.Configure(world())
		scrape(t, m)
	}
	wg.Wait()
	if got := scrape(t, m)[`omniroute_requests_total{route="coding",status="200"}`]; got != 2000 {
		t.Errorf("counted %v of 2000 requests", got)
	}
}

func TestWaited(t *testing.T) {
	t.Parallel()
	at := func(from, took int) failover.Record {
		return failover.Record{At: begin.Add(time.Duration(from) * time.Millisecond), Duration: time.Duration(took) * time.Millisecond, Outcome: failover.OutcomeFailed}
	}
	running := at(50, 0)
	running.Outcome = failover.OutcomeRunning
	for name, c := range map[string]struct {
		s    Story
		want int
	}{
		"answered at once": {Story{Duration: time.Second, FirstContent: 1, Attempts: []failover.Record{at(0, 1000)}}, 0},
		"work is no wait":  {Story{Duration: 20 * time.Millisecond, Attempts: []failover.Record{at(0, 10), at(10, 10)}}, 0},
		"before the first": {Story{Duration: 90 * time.Millisecond, Attempts: []failover.Record{at(40, 50)}}, 40},
		"between":          {Story{Duration: 100 * time.Millisecond, Attempts: []failover.Record{at(0, 10), at(70, 30)}}, 60},
		"overlapping":      {Story{Duration: 100 * time.Millisecond, Attempts: []failover.Record{at(0, 90), at(10, 20), at(95, 5)}}, 5},
		"after the last":   {Story{Duration: 100 * time.Millisecond, Attempts: []failover.Record{at(0, 10)}}, 90},
		"no attempt":       {Story{Duration: 250 * time.Millisecond}, 250},
		"one is under way": {Story{Duration: 300 * time.Millisecond, Attempts: []failover.Record{at(0, 10), running}}, 40},
	} {
		c.s.At = begin
		if got := waited(&c.s); got != time.Duration(c.want)*time.Millisecond {
			t.Errorf("%s: waited %v, want %d ms", name, got, c.want)
		}
	}
}

func TestStatusLabels(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]string{200: "200", 206: "2xx", 404: "404", 418: "4xx", 499: "499", 503: "503", 599: "5xx", 101: "other", 0: "other", -1: "other", 999: "other"} {
		if got := statuses[statusIndex(status)]; got != want {
			t.Errorf("%d is counted as %q, want %q", status, got, want)
		}
	}
}

// TestObserveIsCheap holds the hot path to its allocations; the benchmark tells its time.
func TestObserveIsCheap(t *testing.T) {
	_, m := start(t)
	for name, s := range map[string]Story{"answered": answered(), "failed": failing()} {
		if n := testing.AllocsPerRun(1000, func() { m.Observe(s) }); n > 0 {
			t.Errorf("Observe allocates %v times for a request that was %s", n, name)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	for name, s := range map[string]Story{"answered": answered(), "failed": failing()} {
		b.Run(name, func(b *testing.B) {
			_, m := start(b)
			b.ReportAllocs()
			for b.Loop() {
				m.Observe(s)
			}
		})
	}
	b.Run("parallel", func(b *testing.B) {
		_, m := start(b)
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			s := answered()
			for pb.Next() {
				m.Observe(s)
			}
		})
	})
}

// BenchmarkScrape gathers what one request leaves, with the runtime's own metrics.
func BenchmarkScrape(b *testing.B) {
	_, m := start(b)
	m.Observe(answered())
	for b.Loop() {
		if _, err := m.registry.Gather(); err != nil {
			b.Fatal(err)
		}
	}
}

// scrape reads the text format into lines and their values.
func scrape(t *testing.T, m *Metrics) map[string]float64 {
	t.Helper()
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(strings.NewReader(w.Body.String()))
	if err != nil {
		t.Fatal(err)
	}
	if len(families) == 0 {
		t.Fatal("nothing was scraped")
	}
	lines := map[string]float64{}
	for line := range strings.Lines(w.Body.String()) {
		line = strings.TrimSpace(line)
		i := strings.LastIndexByte(line, ' ')
		if line == "" || line[0] == '#' || !strings.HasPrefix(line, "omniroute_") {
			continue
		}
		var v float64
		if _, err := fmt.Sscan(line[i+1:], &v); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		lines[line[:i]] = v
	}
	return lines
}

func tail(s string) string { return s[max(0, len(s)-60):] }
