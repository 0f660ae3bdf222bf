package monitoring

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	"google.golang.org/protobuf/encoding/protojson"

	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/dialect"
	"omniroute/internal/telemetry"
	"omniroute/internal/trace"
	"omniroute/resilience"
)

// TestSpansAreOTLP: the protocol's own messages read what is sent, every member of it.
func TestSpansAreOTLP(t *testing.T) {
	t.Parallel()
	got := make(chan []byte, 1)
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("%v %v", err, r.Header)
		}
		got <- body
	}))
	defer s.Close()
	x := trace.New("v1", slog.New(slog.DiscardHandler))
	x.Configure(&config.Tracing{URL: s.URL, Sample: 1, Service: "gw"})
	x.Observe(telemetry.Story{
		At: time.Now(), Path: "/v1/chat/completions", Model: "m", Status: 503, Code: "all_targets_unavailable", Stream: true, Duration: time.Second, FirstContent: time.Millisecond,
		Usage:    dialect.Usage{Known: true, Input: 1, Output: 2},
		Attempts: []failover.Record{{Key: resilience.Key{Provider: "p", Connection: "c", Model: "m"}, At: time.Now(), Outcome: failover.OutcomeFailed, Probe: true}},
	})
	x.Stop(context.Background())
	var q collector.ExportTraceServiceRequest
	if err := protojson.Unmarshal(<-got, &q); err != nil {
		t.Fatal(err)
	}
	spans := q.GetResourceSpans()[0].GetScopeSpans()[0].GetSpans()
	if len(spans) != 2 || spans[0].GetName() != "chat m" || spans[0].GetStatus().GetCode().String() != "STATUS_CODE_ERROR" || spans[1].GetKind().String() != "SPAN_KIND_CLIENT" || len(spans[0].GetEvents()) != 1 {
		t.Errorf("%v", spans)
	}
}
