package suite

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"omniroute/bench/load"
	"omniroute/bench/proc"
	"omniroute/bench/upstream"
)

// The load of the fault rows: 1,200 requests in a minute.
const (
	faultRate    = 20
	faultTime    = 60 * time.Second
	slowPrimary  = 250 * time.Millisecond // more than this over a healthy median is a delay
	backWithin   = 15 * time.Second
	delayedLimit = 2 * time.Second
)

// faultCase is a way in which the primary fails under load.
type faultCase struct {
	id, what          string
	fault, connection string
	shape             func(int) load.Shape
	recover           bool // the primary recovers at the end, under load
	unit              string
	bound             float64
}

var faultCases = []faultCase{
	{id: "fault-429", what: "calls on a key that answers 429 with Retry-After 30", fault: "429:30s", connection: "k1",
		shape: mixed, unit: "calls", bound: 3},
	{id: "fault-500", what: "calls wasted on a primary that answers 500, from a cold start", fault: "500",
		shape: mixed, unit: "calls", bound: 12},
	{id: "fault-hang", what: "requests delayed by a primary that hangs, first_token_timeout 5s", fault: "hang",
		shape: load.Only(load.Stream), recover: true, unit: "requests", bound: 40},
}

// mixed takes plain and streamed requests in turn.
func mixed(n int) load.Shape {
	if n%2 == 0 {
		return load.Chat
	}
	return load.Stream
}

// faultResult is what a case measured.
type faultResult struct {
	Requests int `json:"requests"`
	Errors   int `json:"errors"`
	// OnFault counts the calls that the failing part of the primary got, by the upstream's books.
	OnFault   int     `json:"on_fault"`
	Delayed   int     `json:"delayed"`
	Longest   float64 `json:"longest_ms"`
	Median    float64 `json:"median_ms"`
	Healthy   float64 `json:"healthy_median_ms"`
	BackAfter float64 `json:"back_after_ms,omitempty"`
	First     []int64 `json:"first_us"`
	Wrong     string  `json:"wrong,omitempty"`
}

// faults runs the cases at the same time, each with its own gateway and upstream: the load is light.
func (b *bench) faults(ctx context.Context) ([]Row, error) {
	rows := make([]Row, len(faultCases))
	g, ctx := errgroup.WithContext(ctx)
	for i, c := range faultCases {
		if !b.wanted([]string{c.id}) {
			continue
		}
		g.Go(func() error {
			r, err := b.faultRun(ctx, c)
			if err != nil {
				return fmt.Errorf("%s: %w", c.id, err)
			}
			rows[i] = c.row(r)
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return rows, nil
}

func (c faultCase) row(r faultResult) Row {
	row := Row{ID: c.id, What: fmt.Sprintf("%s (%d requests)", c.what, r.Requests), Unit: c.unit, Bound: c.bound, Raw: r, Failed: r.Wrong}
	row.Value = float64(r.OnFault)
	row.Ours = fmt.Sprintf("%d calls, %d client errors, median %.0f ms (healthy %.0f)", r.OnFault, r.Errors, r.Median, r.Healthy)
	if c.recover {
		row.Value = float64(r.Delayed)
		row.Ours = fmt.Sprintf("%d delayed, longest %.0f ms, back after %.1f s, %d client errors", r.Delayed, r.Longest, r.BackAfter/1000, r.Errors)
	}
	return row
}

func faultConfig(a upstream.Addresses) string {
	return fmt.Sprintf(`providers:
  primary:
    dialect: openai
    base_url: %s/v1
    models: [large]
    connections: [{id: k1, api_key: %s}, {id: k2, api_key: %s}]
  fallback:
    dialect: openai
    base_url: %s/v1
    models: [large]
    connections: [{id: only, api_key: %s}]
combos:
  bench: {targets: [primary/large, fallback/large]}
  healthy: {targets: [fallback/large]}
relay: {first_token_timeout: 5s}
`, a.Primary, upstream.Key1, upstream.Key2, a.Fallback, upstream.Key3)
}

func (b *bench) faultRun(ctx context.Context, c faultCase) (r faultResult, err error) {
	var at upstream.Addresses
	up, err := proc.Start(ctx, proc.Spec{Name: "upstream", Path: b.Self, Args: []string{"upstream"}, Answer: &at})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, up.Stop()) }()
	g, err := b.gateway(ctx, filepath.Join(b.dir, c.id), faultConfig(at), nil)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, g.stop()) }()
	control := upstream.NewControl(at.Control)
	client := load.NewClient(g.url, "")
	defer client.Close()
	// A healthy run through the fallback alone says what is fast; the primary stays cold.
	healthy := load.Plan{Client: client, Shape: c.shape, Model: "healthy", Rate: faultRate, Count: 40}.Go(ctx)
	if healthy.Errors() > 0 {
		return r, errors.New(healthy.FirstError())
	}
	r.Healthy = ms(load.Quantile(healthy.Column(load.First), 0.5))

	if err := control.Fault(ctx, "primary", c.connection, c.fault); err != nil {
		return r, err
	}
	plan := load.Plan{Client: client, Shape: c.shape, Model: "bench", Rate: faultRate, Count: int(faultRate * pick(b, faultTime, faultTime/6).Seconds())}
	run := plan.Go(ctx)
	counts, err := control.Counts(ctx, "primary")
	if err != nil {
		return r, err
	}
	for _, n := range counts {
		if n.Outcome != "ok" {
			r.OnFault += n.N
		}
	}
	r.sum(run)
	if c.recover {
		if err := r.recovery(ctx, control, plan); err != nil {
			return r, err
		}
	}
	r.judge(c)
	return r, ctx.Err()
}

func (r *faultResult) sum(run *load.Run) {
	r.Requests, r.Errors = len(run.Samples), run.Errors()
	first := run.Column(load.First)
	r.Median, r.Longest = ms(load.Quantile(first, 0.5)), ms(load.Quantile(first, 1))
	for _, f := range first {
		r.First = append(r.First, f.Microseconds())
		if ms(f) > r.Healthy+ms(slowPrimary) {
			r.Delayed++
		}
	}
	if r.Errors > 0 {
		r.Wrong = "client errors: " + run.FirstError()
	}
}

// recovery makes the primary well and goes on until it serves everything again.
func (r *faultResult) recovery(ctx context.Context, control *upstream.Control, plan load.Plan) error {
	if err := control.Fault(ctx, "primary", "", ""); err != nil {
		return err
	}
	plan.Count = int(plan.Rate * (backWithin + 5*time.Second).Seconds())
	run := plan.Go(ctx)
	back := -1
	for i := range run.Samples {
		switch s := &run.Samples[i]; {
		case !s.Good():
			r.Errors++
			r.Wrong = "client errors after the recovery: " + s.Err
		case s.Provider != "primary":
			back = -1
		case back < 0:
			back = i
		}
	}
	if back < 0 {
		r.Wrong = "the primary did not come back"
		return nil
	}
	r.BackAfter = ms(run.Samples[back].Due + run.Samples[back].First)
	return nil
}

// judge adds what a bound on one number does not say.
func (r *faultResult) judge(c faultCase) {
	switch {
	case r.Wrong != "":
	case r.OnFault == 0:
		r.Wrong = "nothing reached the failing upstream"
	case c.recover && r.Longest-r.Healthy > ms(delayedLimit):
		r.Wrong = fmt.Sprintf("a request was delayed by %.0f ms", r.Longest-r.Healthy)
	case c.recover && r.BackAfter > ms(backWithin):
		r.Wrong = fmt.Sprintf("the primary was back only after %.0f s", r.BackAfter/1000)
	}
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
