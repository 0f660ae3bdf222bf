package admin

import (
	"net/http"
	"time"

	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// recently is the span that Series.Recent sums up.
const recently = 5 * time.Minute

// Series is the answer to GET /admin/v1/series: the traffic of the last hour in steps, and when
// which breaker and connection was out.
type Series struct {
	Now    resilience.Timestamp `json:"now"`
	StepMs int64                `json:"step_ms"`
	// Recent sums up the last five minutes, Providers tells what each provider was asked in them.
	Recent    Traffic          `json:"recent"`
	Providers map[string]Asked `json:"providers"`
	// Steps begin with the first request of the last hour, oldest first.
	Steps     []Step     `json:"steps"`
	Timelines []Timeline `json:"timelines"`
}

// Traffic is what became of the requests that ended in some span of time.
type Traffic struct {
	Requests uint64 `json:"requests"`
	// Failed are those that the client saw fail through no fault of its own: a 5xx, a 429, or an answer
	// that ended in the middle.
	Failed   uint64 `json:"failed"`
	Canceled uint64 `json:"canceled"`
	// Recovered were answered after a failed attempt or a wait for a target, which cost them DelayMs in all.
	Recovered uint64 `json:"recovered"`
	DelayMs   int64  `json:"delay_ms"`
	Attempts  uint64 `json:"attempts"`
	Wasted    uint64 `json:"wasted"`
	// FirstContent is null where no client got any content.
	FirstContent *Percentiles `json:"first_content"`
}

// Percentiles are of a time, in milliseconds, within 8%.
type Percentiles struct {
	Count uint64 `json:"count"`
	P50   int64  `json:"p50_ms"`
	P95   int64  `json:"p95_ms"`
	P99   int64  `json:"p99_ms"`
}

// Asked is how many upstream calls a provider got, and how many of them failed.
type Asked struct {
	Attempts uint64 `json:"attempts"`
	Wasted   uint64 `json:"wasted"`
}

// Step is the traffic of one step.
type Step struct {
	At resilience.Timestamp `json:"at"`
	Traffic
}

// Timeline is the history of one breaker, connection or operators' exclusion in the last hour.
type Timeline struct {
	Layer resilience.Layer `json:"layer"`
	resilience.Key
	// States are in the order of time. Before the first it was well.
	States []TimelineState `json:"states"`
}

// TimelineState is what a gate changed to. Until is null where it has no end or none is known.
type TimelineState struct {
	At    resilience.Timestamp `json:"at"`
	State string               `json:"state"`
	Kind  string               `json:"kind,omitempty"`
	Until resilience.Timestamp `json:"until"`
}

// Series returns what was counted in the hour before now.
func (a *Admin) Series(now time.Time) Series {
	total, loads := a.series.Total(now, recently)
	s := Series{
		Now: resilience.Timestamp{Time: now}, StepMs: telemetry.SeriesStep.Milliseconds(), Recent: trafficOf(&total),
		Providers: make(map[string]Asked, len(loads)), Steps: []Step{}, Timelines: []Timeline{},
	}
	for id, l := range loads {
		s.Providers[id] = Asked(l)
	}
	points := a.series.Points(now)
	for i := range points {
		s.Steps = append(s.Steps, Step{At: resilience.Timestamp{Time: points[i].At}, Traffic: trafficOf(&points[i].Counts)})
	}
	for _, l := range a.lines.List(now) {
		line := Timeline{Layer: l.Layer, Key: l.Key, States: make([]TimelineState, 0, len(l.States))}
		for _, x := range l.States {
			line.States = append(line.States, TimelineState{resilience.Timestamp{Time: x.At}, x.State, x.Kind, resilience.Timestamp{Time: x.Until}})
		}
		s.Timelines = append(s.Timelines, line)
	}
	return s
}

func trafficOf(c *telemetry.Counts) Traffic {
	t := Traffic{
		Requests: c.Requests, Failed: c.Failed, Canceled: c.Canceled, Recovered: c.Recovered, DelayMs: ms(c.Delay),
		Attempts: c.Attempts, Wasted: c.Wasted,
	}
	if n := c.FirstContent.Count(); n > 0 {
		f := &c.FirstContent
		t.FirstContent = &Percentiles{n, ms(f.Quantile(0.5)), ms(f.Quantile(0.95)), ms(f.Quantile(0.99))}
	}
	return t
}

func (a *Admin) seriesOf(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, a.Series(time.Now()))
	return nil
}
