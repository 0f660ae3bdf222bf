package suite

import (
	"context"
	"fmt"
	"time"

	"omniroute/bench/load"
	"omniroute/bench/upstream"
)

// maxLag is how late the generator may be at p99: later, and it measures the machine.
const maxLag = 2 * time.Millisecond

// latencies are what one run of one side gave, in microseconds from when each request was due.
type latencies struct {
	Side   string  `json:"side"`
	Rate   float64 `json:"rate"`
	First  []int64 `json:"first_us"`
	Late   []int64 `json:"late_us"`
	Errors int     `json:"errors"`

	p50, p99, late time.Duration
}

// ttft compares the time to the first token at half of what the gateway can do.
func (b *bench) ttft(ctx context.Context) ([]Row, error) {
	capacity, run := load.Saturate(ctx, b.ours.client, load.AgentStream, b.ours.model(upstream.Brief), 64, pick(b, 4*time.Second, 1500*time.Millisecond))
	if capacity == 0 {
		return nil, fmt.Errorf("the gateway answers no stream: %s", run.FirstError())
	}
	rate := capacity / 2
	b.say("  capacity is %.0f streams a second; offering %.0f", capacity, rate)
	n := int(rate * pick(b, 6.0, 1.5))
	var raw []latencies
	var added, ours, bare, late []float64
	errs := 0
	measure := func(s *side) latencies {
		l := latency(ctx, s, rate, n)
		errs += l.Errors
		raw = append(raw, l)
		return l
	}
	for range pick(b, 5, 2) {
		r, o := measure(&b.bare), measure(&b.ours)
		bare, ours = append(bare, float64(r.p99)), append(ours, float64(o.p99))
		added = append(added, float64(o.p99-r.p99)/1e6)
		late = append(late, float64(max(r.late, o.late)))
	}
	row := Row{ID: "ttft", What: fmt.Sprintf("time to first token at p99, added, at half capacity (%.0f streams/s)", rate),
		Ours: micros(time.Duration(load.Median(ours))), Reference: micros(time.Duration(load.Median(bare))),
		Value: max(load.Median(added), 0), Unit: "ms", Bound: 2, Raw: raw}
	lag := time.Duration(load.Median(late))
	switch {
	case errs > 0:
		row.Failed = fmt.Sprintf("%d requests failed", errs)
	case lag > maxLag:
		row.Failed = fmt.Sprintf("the machine was too busy to tell: the generator itself was late by %s at p99", micros(lag))
	}
	b.say("  the generator was late by %s at p99", micros(lag))
	return []Row{row}, ctx.Err()
}

func latency(ctx context.Context, s *side, rate float64, n int) latencies {
	run := load.Plan{Client: s.client, Shape: load.Only(load.AgentStream), Model: s.model(upstream.Brief), Rate: rate, Count: n}.Go(ctx)
	first, late := run.Column(load.First), run.Column(load.Late)
	l := latencies{Side: s.name, Rate: rate, Errors: run.Errors(),
		p50: load.Quantile(first, 0.5), p99: load.Quantile(first, 0.99), late: load.Quantile(late, 0.99)}
	for i := range run.Samples {
		l.First = append(l.First, run.Samples[i].First.Microseconds())
		l.Late = append(l.Late, run.Samples[i].Late.Microseconds())
	}
	return l
}
