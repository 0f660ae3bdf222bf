package telemetry

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/failover"
	"omniroute/resilience"
)

// recovered is the story of a request that its second attempt answered, half a second late.
func recovered(at time.Time) Story {
	s := answered()
	s.At = at
	s.Attempts = []failover.Record{
		{Key: large, At: at, Outcome: failover.OutcomeFailed, Status: 500, Duration: 400 * time.Millisecond},
		{Key: resilience.Key{Provider: "beta", Connection: "only", Model: "large"}, At: at.Add(500 * time.Millisecond), Outcome: failover.OutcomeAnswered, Status: 200},
	}
	return s
}

// waitedFor is the story of a request that found its target out and waited 300 ms for it.
func waitedFor() Story {
	s := answered()
	s.Attempts = []failover.Record{{Key: large, At: begin.Add(300 * time.Millisecond), Outcome: failover.OutcomeAnswered, Status: 200}}
	return s
}

func TestSeriesCounts(t *testing.T) {
	t.Parallel()
	s := NewSeries()
	ended := func(status int, broke string) Story {
		x := answered()
		x.Status, x.Broke, x.FirstContent = status, broke, 0
		return x
	}
	for _, story := range []Story{
		answered(), recovered(begin), waitedFor(), ended(503, ""), ended(429, ""), ended(200, "cut"),
		ended(499, ""), ended(400, ""), // neither is a failure that anybody but the client made
	} {
		s.Observe(story)
	}
	c, loads := s.Total(begin.Add(2*time.Second), time.Minute)
	c.FirstContent = Spread{}
	if diff := cmp.Diff(Counts{Requests: 8, Failed: 3, Canceled: 1, Recovered: 2, Delay: 800 * time.Millisecond, Attempts: 9, Wasted: 1}, c, cmp.AllowUnexported(Spread{})); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(map[string]Load{"acme": {Attempts: 8, Wasted: 1}, "beta": {Attempts: 1}}, loads); diff != "" {
		t.Error(diff)
	}
}

// TestSeriesRing: an hour and no more, without a gap, whatever order the requests end in.
func TestSeriesRing(t *testing.T) {
	t.Parallel()
	s := NewSeries()
	if got := s.Points(begin); len(got) != 0 {
		t.Errorf("nothing was asked, and there are %d points", len(got))
	}
	at := func(d time.Duration) {
		x := answered()
		x.At = begin.Add(d)
		s.Observe(x)
	}
	at(0)
	at(30 * time.Second)
	points := s.Points(begin.Add(time.Minute))
	if len(points) != 7 || points[0].Requests != 1 || points[1].Requests != 0 || points[3].Requests != 1 || points[6].Requests != 0 {
		t.Errorf("%d points: %v", len(points), points)
	}
	for i := 1; i < len(points); i++ {
		if points[i].At.Sub(points[i-1].At) != SeriesStep {
			t.Errorf("a gap before %v", points[i].At)
		}
	}
	at(SeriesSpan + 30*time.Second) // takes the slot of the one at 30s
	if c, _ := s.Total(begin.Add(SeriesSpan+31*time.Second), 2*SeriesSpan); c.Requests != 1 {
		t.Errorf("%d requests in the last hour, want 1", c.Requests)
	}
	if _, loads := s.Total(begin.Add(3*SeriesSpan), time.Minute); len(loads) != 0 || len(s.providers) != 0 {
		t.Error("a provider that nobody has asked for an hour is kept")
	}
}

func TestSpreadIsNear(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		ms := rapid.SliceOfN(rapid.Float64Range(1, 600_000), 1, 200).Draw(t, "ms")
		q := rapid.Float64Range(0.01, 1).Draw(t, "q")
		var s Spread
		for _, x := range ms {
			s.add(time.Duration(x * float64(time.Millisecond)))
		}
		if s.Count() != uint64(len(ms)) {
			t.Fatalf("%d of %d", s.Count(), len(ms))
		}
		rank := int(math.Ceil(q * float64(len(ms))))
		got := s.Quantile(q).Seconds() * 1000 * 1.08
		below := 0
		for _, x := range ms {
			if x <= got {
				below++
			}
		}
		if below < rank {
			t.Errorf("%v%% of %v: %v is above only %d, want %d", q*100, ms, got, below, rank)
		}
		above := 0
		for _, x := range ms {
			if x >= got/1.08/1.08 {
				above++
			}
		}
		if above < len(ms)-rank+1 {
			t.Errorf("%v%% of %v: %v is too high", q*100, ms, got)
		}
	})
	var s Spread
	s.add(0)
	s.add(24 * time.Hour)
	if s.Count() != 2 || s.Quantile(0.5) != time.Millisecond || s.Quantile(1) < 10*time.Minute {
		t.Errorf("out of range: %v, %v", s.Quantile(0.5), s.Quantile(1))
	}
	if new(Spread).Quantile(0.5) != 0 {
		t.Error("an empty spread has a middle")
	}
}

func BenchmarkSeriesObserve(b *testing.B) {
	s := NewSeries()
	story := answered()
	b.ReportAllocs()
	for b.Loop() {
		s.Observe(story)
	}
}
