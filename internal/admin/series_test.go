package admin

import (
	"fmt"
	"testing"
	"time"

	"omniroute/failover"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

func TestSeries(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	if s := want[Series](b, 200, "GET", "/admin/v1/series", ""); len(s.Steps) != 0 || len(s.Timelines) != 0 || s.Recent.FirstContent != nil || s.StepMs != 10_000 {
		t.Errorf("before any request: %+v", s)
	}
	at := time.Now().Add(-time.Second)
	key := resilience.Key{Provider: "acme", Connection: "main", Model: "large"}
	b.Observe(telemetry.Story{ID: "a", At: at, Status: 200, Duration: time.Second, FirstContent: 400 * time.Millisecond, Attempts: []failover.Record{
		{Key: key, At: at, Outcome: failover.OutcomeFailed}, {Key: key, At: at.Add(250 * time.Millisecond), Outcome: failover.OutcomeAnswered},
	}})
	b.Observe(telemetry.Story{ID: "b", At: at, Status: 503})
	b.fail("acme", "main", "large", limited)
	s := want[Series](b, 200, "GET", "/admin/v1/series", "")
	r := s.Recent
	if r.Requests != 2 || r.Failed != 1 || r.Recovered != 1 || r.DelayMs != 250 || r.Attempts != 2 || r.Wasted != 1 || r.FirstContent.Count != 1 {
		t.Errorf("%+v", r)
	}
	if p := r.FirstContent; p.P50 < 370 || p.P99 > 430 {
		t.Errorf("%+v", p)
	}
	if s.Providers["acme"] != (Asked{2, 1}) || len(s.Steps) == 0 {
		t.Errorf("%+v", s)
	}
	if l := s.Timelines; len(l) != 1 || l[0].Layer != resilience.LayerConnection || l[0].Connection != "main" ||
		l[0].States[0].State != "cooling" || l[0].States[0].Kind != "rate_limit" || l[0].States[0].Until.IsZero() {
		t.Errorf("%+v", l)
	}
}

// TestSeriesBeginsWithWhatIsOut: after a restart no event tells of what was restored.
func TestSeriesBeginsWithWhatIsOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	b.stop()
	b.fail("acme", "main", "large", limited)
	b.Restored()
	if l := b.Series(time.Now()).Timelines; len(l) != 1 || l[0].States[0].State != "cooling" {
		t.Errorf("%+v", l)
	}
}

// TestStrangersPushNobodyOut: any number of requests without a client's key leaves the stories and the series as they
// were, and the last of them can be asked for.
func TestStrangersPushNobodyOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	at := time.Now().Add(-time.Second)
	b.Observe(telemetry.Story{ID: "client", At: at, Status: 200})
	for i := range 2000 {
		b.Observe(telemetry.Story{ID: fmt.Sprint("stranger-", i), At: at, Status: 401, Code: "invalid_api_key", Stranger: true})
	}
	for id, status := range map[string]int{"client": 200, "stranger-1999": 200, "stranger-1900": 200, "stranger-1899": 404} {
		if w := b.ask("GET", "/admin/v1/requests/"+id, ""); w.Code != status {
			t.Errorf("%s: %d, want %d", id, w.Code, status)
		}
	}
	if s := want[Series](b, 200, "GET", "/admin/v1/series", ""); s.Recent.Requests != 1 {
		t.Errorf("%d requests were counted", s.Recent.Requests)
	}
	n := 0
	b.Stories(func(telemetry.Story) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d stories are kept", n)
	}
}
