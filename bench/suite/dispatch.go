package suite

import (
	"context"
	"fmt"
	"slices"
	"time"

	"omniroute/bench/load"
)

// dispatch measures, at the upstream, the time from the last byte of a failure to the arrival of
// the next attempt. Both ways over the loopback are in it.
func (b *bench) dispatch(ctx context.Context) ([]Row, error) {
	if b.URL != "" {
		return nil, nil // it needs our configuration
	}
	if _, err := b.control.Turns(ctx); err != nil {
		return nil, err
	}
	n := pick(b, 1000, 100)
	run := load.Plan{Client: b.ours.client, Shape: load.Only(load.Chat), Model: b.ours.model("turn"), Rate: 200, Count: n}.Go(ctx)
	turns, err := b.control.Turns(ctx)
	if err != nil {
		return nil, err
	}
	slices.Sort(turns)
	p50, p99 := load.Quantile(turns, 0.5), load.Quantile(turns, 0.99)
	raw := make([]int64, len(turns))
	for i, t := range turns {
		raw[i] = t.Microseconds()
	}
	row := Row{ID: "dispatch", What: "from a failure's last byte to the next attempt's arrival, p99",
		Ours: fmt.Sprintf("%s (median %s)", micros(p99), micros(p50)), Value: float64(p99) / float64(time.Millisecond), Unit: "ms", Bound: 1, Raw: raw}
	switch {
	case run.Errors() > 0:
		row.Failed = fmt.Sprintf("%d of %d requests failed: %s", run.Errors(), n, run.FirstError())
	case len(turns) < n*9/10:
		row.Failed = fmt.Sprintf("only %d of %d requests met the failing target", len(turns), n)
	}
	return []Row{row}, nil
}
