package telemetry

import (
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// TestNothingUnlistedBecomesALabel: what clients ask for must not fill the memory.
func TestNothingUnlistedBecomesALabel(t *testing.T) {
	t.Parallel()
	_, m := start(t)
	tell := func(n int) {
		for i := range n {
			name := fmt.Sprintf("made-up-%d", i)
			s := answered()
			s.Model, s.Route = name, "acme/"+name
			s.Attempts[0].Key.Model = name
			s.Gaps = []*Gaps{new(Gaps)}
			m.Observe(s)
			s.Code, s.Status = name, 400+i
			s.Attempts[0].Key.Provider = name
			m.Observe(s)
		}
	}
	tell(1000)
	before := len(scrape(t, m))
	tell(10_000)
	if after := len(scrape(t, m)); after != before {
		t.Errorf("%d series after 1,000 unknown models, %d after 10,000 more", before, after)
	}
	for line := range scrape(t, m) {
		if strings.Contains(line, "made-up") {
			t.Errorf("a client's word is a label: %s", line)
		}
	}
	line := `omniroute_attempts_total{connection="k1",kind="unknown",model="(unlisted)",outcome="answered",provider="acme",scope="none"}`
	if got := scrape(t, m)[line]; got != 11_000 {
		t.Errorf("%s = %v, want 11000", line, got)
	}
}

func TestExpositionIsValid(t *testing.T) {
	t.Parallel()
	_, m := start(t)
	m.Observe(answered())
	m.Observe(failing())
	problems, err := testutil.GatherAndLint(m.registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "omniroute_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, accept := range []string{"", "application/openmetrics-text; version=1.0.0"} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("Accept", accept)
		w := httptest.NewRecorder()
		m.Handler().ServeHTTP(w, r)
		if w.Code != 200 || w.Body.Len() == 0 {
			t.Errorf("Accept %q: status %d with %d bytes", accept, w.Code, w.Body.Len())
		}
		if accept != "" && !strings.HasSuffix(w.Body.String(), "# EOF\n") {
			t.Errorf("OpenMetrics without its end: %q", tail(w.Body.String()))
		}
	}
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	if problems, err := promlint.New(w.Body).Lint(); err != nil || len(problems) > 0 {
		for _, p := range problems {
			if strings.HasPrefix(p.Metric, "omniroute_") {
				t.Errorf("%s: %s", p.Metric, p.Text)
			}
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// TestHistogramsAreNative reads them as Prometheus does: in protobuf.
func TestHistogramsAreNative(t *testing.T) {
	t.Parallel()
	_, m := start(t)
	m.Observe(answered())
	m.Observe(failing())
	r := httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited")
	w := httptest.NewRecorder()
	m.Handler().ServeHTTP(w, r)
	dec := expfmt.NewDecoder(w.Body, expfmt.ResponseFormat(w.Header()))
	native := map[string]bool{}
	for {
		var f dto.MetricFamily
		if err := dec.Decode(&f); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, one := range f.GetMetric() {
			if h := one.GetHistogram(); h != nil && len(h.GetPositiveSpan()) > 0 {
				native[f.GetName()] = true
			}
		}
	}
	for _, name := range []string{"request_duration_seconds", "first_content_seconds", "attempt_first_content_seconds", "attempt_duration_seconds", "wait_seconds"} {
		if !native["omniroute_"+name] {
			t.Errorf("omniroute_%s has no native buckets", name)
		}
	}
}
