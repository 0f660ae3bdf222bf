package trace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// collector takes what a collector would; answer says what to answer to each, nil means 200.
type collector struct {
	mu     sync.Mutex
	spans  []otlpSpan
	bodies []string
	heads  []http.Header
	tries  int
	answer func(n int) (int, error)
}

func (c *collector) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tries++
	status := 200
	if c.answer != nil {
		if status, err = c.answer(c.tries); err != nil {
			return nil, err
		}
	}
	if status == 200 {
		if r.URL.Path != "/v1/traces" {
			return nil, fmt.Errorf("asked for %s", r.URL)
		}
		var q otlpRequest
		if err := json.Unmarshal(body, &q); err != nil {
			return nil, err
		}
		c.spans = append(c.spans, q.ResourceSpans[0].ScopeSpans[0].Spans...)
		c.bodies, c.heads = append(c.bodies, string(body)), append(c.heads, r.Header)
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}}, nil
}

func newExporter(c *collector, share float64) (*Exporter, *strings.Builder) {
	var log strings.Builder
	x := New("1.2.3", slog.New(slog.NewTextHandler(&log, nil)))
	x.client.Transport = c
	x.Configure(&config.Tracing{URL: "http://collector:4318/", Sample: share, Service: "gw", Headers: []config.Header{{Name: "Authorization", Value: config.NewSecret("Bearer collector-secret")}}})
	return x, &log
}

var (
	begin = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	key   = resilience.Key{Provider: "acme", Connection: "k1", Model: "large"}
)

// story is of a request that failed over: the first attempt was refused, the second, a probe beside it, answered.
func story() telemetry.Story {
	other := key
	other.Connection = "k2"
	return telemetry.Story{
		ID: "req_1", At: begin, Dialect: "openai", Method: "POST", Path: "/v1/chat/completions", Model: "coding", Route: "coding", Stream: true, Status: 200,
		Usage: dialect.Usage{Known: true, Input: 10, Output: 20, CacheRead: 3}, Duration: 3 * time.Second, FirstContent: 2 * time.Second,
		Attempts: []failover.Record{
			{Key: key, At: begin.Add(time.Millisecond), Duration: time.Second, Status: 429, Outcome: failover.OutcomeFailed,
				Verdict: resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, Rule: "openai.429", Evidence: "words of an upstream"}},
			{Key: other, At: begin.Add(time.Second), Duration: 2 * time.Second, FirstContent: time.Second, Status: 200, Outcome: failover.OutcomeAnswered, Probe: true, Hedge: true},
		},
	}
}

func attrsOf(s otlpSpan) string {
	var all []string
	for _, a := range s.Attributes {
		v := ""
		switch {
		case a.Value.String != nil:
			v = *a.Value.String
		case a.Value.Int != nil:
			v = *a.Value.Int
		case a.Value.Bool != nil:
			v = fmt.Sprint(*a.Value.Bool)
		}
		all = append(all, strings.TrimPrefix(a.Key, "omniroute.")+"="+v)
	}
	return strings.Join(all, " ")
}

// TestSpans: one for the request, going on with the client's trace, and one for each attempt below it, with its times,
// its verdict and what kind of attempt it was.
func TestSpans(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{}
		x, _ := newExporter(c, 0)
		const trace, parent = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
		s := story()
		s.TraceParent = "00-" + trace + "-" + parent + "-01"
		x.Observe(s)
		s.TraceParent = "00-" + trace + "-" + parent + "-00" // the client wants no trace
		x.Observe(s)
		time.Sleep(2 * batchTime)
		synctest.Wait()
		if len(c.spans) != 3 {
			t.Fatalf("%d spans came", len(c.spans))
		}
		root := c.spans[0]
		for i, want := range []string{
			"gen_ai.operation.name=chat gen_ai.request.model=coding http.request.method=POST url.path=/v1/chat/completions http.response.status_code=200 request_id=req_1 route=coding dialect=openai stream=true attempts=2 gen_ai.usage.input_tokens=10 gen_ai.usage.output_tokens=20 gen_ai.usage.cache_read.input_tokens=3",
			"gen_ai.operation.name=chat gen_ai.provider.name=acme connection=k1 gen_ai.request.model=large http.response.status_code=429 outcome=failed verdict.scope=connection verdict.kind=rate_limit verdict.rule=openai.429 error.type=rate_limit",
			"gen_ai.operation.name=chat gen_ai.provider.name=acme connection=k2 gen_ai.request.model=large http.response.status_code=200 outcome=answered probe=true hedge=true",
		} {
			s := c.spans[i]
			if got := attrsOf(s); got != want {
				t.Errorf("span %d has\n%s\nwant\n%s", i, got, want)
			}
			above := root.SpanID
			if i == 0 {
				above = parent
			}
			if s.TraceID != trace || s.Parent != above || len(s.SpanID) != 16 {
				t.Errorf("span %d is %s below %s in %s", i, s.SpanID, s.Parent, s.TraceID)
			}
		}
		if root.Name != "chat coding" || root.Kind != kindServer || root.Start != nano(begin) || root.End != nano(begin.Add(3*time.Second)) || root.Status != nil || root.Events[0].At != nano(begin.Add(2*time.Second)) {
			t.Errorf("%+v", root)
		}
		if one := c.spans[1]; one.Name != "chat large" || one.Kind != kindClient || one.Status == nil || one.Status.Code != statusError || one.Status.Message != "connection/rate_limit" || one.End != nano(begin.Add(1001*time.Millisecond)) {
			t.Errorf("%+v", one)
		}
		if c.heads[0].Get("Authorization") != "Bearer collector-secret" || strings.Contains(c.bodies[0], "secret") || strings.Contains(c.bodies[0], "words of an upstream") ||
			!strings.Contains(c.bodies[0], `{"key":"service.name","value":{"stringValue":"gw"}}`) {
			t.Errorf("%v %s", c.heads[0], c.bodies[0])
		}
		x.Stop(t.Context())
	})
}

// TestSampling is by chance only where the client does not say.
func TestSampling(t *testing.T) {
	t.Parallel()
	n := 0
	for range 1000 {
		s := story()
		n += len(appendSpans(nil, &s, 0.3)) / 3
	}
	if n < 200 || n > 400 {
		t.Errorf("%d of 1000 requests were traced, a share of 0.3", n)
	}
	for _, bad := range []string{
		"", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0", "01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
		"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "00-4bf92f3577b34da6a3ce929d0e0e473g-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4736_00f067aa0ba902b7-01",
	} {
		if _, _, _, ok := parseParent(bad); ok {
			t.Errorf("%q is taken for a parent", bad)
		}
	}
}

// TestCollectorAway: nobody waits for a collector that is away, what cannot be sent is counted and logged once, and
// spans go on when it is back; a stop sends what waits and does not hang.
func TestCollectorAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := &collector{answer: func(n int) (int, error) {
			if n%2 == 0 {
				return 503, nil
			}
			return 0, errors.New("connection refused")
		}}
		x, log := newExporter(c, 1)
		before := time.Now()
		for range 2 * maxQueue {
			x.Observe(story())
		}
		if time.Since(before) != 0 {
			t.Error("Observe waits")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if sent, dropped := x.Counts(); sent != 0 || dropped != 6*maxQueue {
			t.Errorf("%d sent and %d dropped of %d", sent, dropped, 6*maxQueue)
		}
		if n := strings.Count(log.String(), "takes no traces"); n != 1 || strings.Contains(log.String(), "secret") {
			t.Errorf("told %d times:\n%s", n, log)
		}
		c.mu.Lock()
		c.answer = nil
		c.mu.Unlock()
		x.Observe(story())
		x.Stop(t.Context())
		if sent, _ := x.Counts(); sent != 3 || len(c.spans) != 3 {
			t.Errorf("%d spans were sent once it was back", sent)
		}
		x.Observe(story()) // after the stop: it only waits
	})
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-hang }))
	defer s.Close()
	defer close(hang)
	x := New("", slog.New(slog.DiscardHandler))
	x.Configure(&config.Tracing{URL: s.URL, Sample: 1})
	x.Observe(story())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	x.Stop(ctx)
	if _, dropped := x.Counts(); dropped != 3 {
		t.Errorf("%d dropped by a collector that hangs", dropped)
	}
}

// TestOffCostsNothing: without a collector a story allocates nothing and starts nothing.
func TestOffCostsNothing(t *testing.T) {
	x := New("", slog.New(slog.DiscardHandler))
	x.Configure(nil)
	s := story()
	if n := testing.AllocsPerRun(100, func() { x.Observe(s) }); n > 0 {
		t.Errorf("it allocates %v times", n)
	}
	x.Stop(t.Context())
}
