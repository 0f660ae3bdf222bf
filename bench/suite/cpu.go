package suite

import (
	"context"
	"fmt"
	"time"

	"omniroute/bench/load"
	"omniroute/bench/proc"
	"omniroute/bench/upstream"
)

// cpuCase is a kind of request whose relaying is measured.
type cpuCase struct {
	id, what string
	shape    load.Shape
	model    string
	rate     float64
	bound    float64
	info     bool
}

var cpuCases = []cpuCase{
	{"cpu-chat", "CPU per request, 1 KiB chat", load.Chat, upstream.Fast, 1000, 1.25, false},
	{"cpu-stream", "CPU per request, 100-chunk stream, 5 ms between chunks", load.Stream, upstream.Paced, 40, 1.2, false},
	{"cpu-agent", "CPU per request, 100 KiB agent request", load.Agent, upstream.Fast, 400, 1.25, false},
	{"cpu-burst", "the same, 100-chunk stream sent at once", load.Stream, upstream.Fast, 100, 0, true},
}

// pair is one round of both sides, in nanoseconds of CPU per request.
type pair struct {
	Ours      float64 `json:"ours_ns"`
	Reference float64 `json:"reference_ns"`
	Errors    int     `json:"errors"`
}

// cpu measures what relaying a request costs both sides at the same rate.
func (b *bench) cpu(ctx context.Context) ([]Row, error) {
	if b.ours.pid == 0 {
		return nil, fmt.Errorf("the process id of the gateway is needed; give -pid")
	}
	var made []Row
	for _, c := range cpuCases {
		if !b.wanted([]string{c.id}) {
			continue
		}
		b.say("  %s", c.id)
		row, err := b.cpuRow(ctx, c)
		if err != nil {
			return made, err
		}
		made = append(made, row)
	}
	return made, nil
}

func (b *bench) cpuRow(ctx context.Context, c cpuCase) (Row, error) {
	// Short windows in turn: what else happens on the machine drifts more slowly.
	rounds, window := pick(b, 15, 4), pick(b, 0.7, 0.5)
	n := int(c.rate * window)
	for _, s := range []*side{&b.bare, &b.ours} { // warm both up
		if r := b.offer(ctx, s, c, n); r.Errors() > 0 {
			return Row{}, fmt.Errorf("%s: %s", s.name, r.FirstError())
		}
	}
	var pairs []pair
	for range rounds {
		var p pair
		var err error
		if p.Reference, err = b.cost(ctx, &b.bare, c, n, &p.Errors); err != nil {
			return Row{}, err
		}
		if p.Ours, err = b.cost(ctx, &b.ours, c, n, &p.Errors); err != nil {
			return Row{}, err
		}
		pairs = append(pairs, p)
	}
	row := Row{ID: c.id, What: c.what, Unit: "x", Bound: c.bound, Info: c.info, Raw: pairs}
	var ours, bare, ratio []float64
	errs := 0
	for _, p := range pairs {
		ours, bare, ratio = append(ours, p.Ours), append(bare, p.Reference), append(ratio, p.Ours/p.Reference)
		errs += p.Errors
	}
	if errs > 0 {
		row.Failed = fmt.Sprintf("%d requests failed", errs)
	}
	row.Ours, row.Reference = micros(time.Duration(load.Median(ours))), micros(time.Duration(load.Median(bare)))
	row.Value = load.Median(ratio)
	return row, nil
}

func (b *bench) offer(ctx context.Context, s *side, c cpuCase, n int) *load.Run {
	return load.Plan{Client: s.client, Shape: load.Only(c.shape), Model: s.model(c.model), Rate: c.rate, Count: max(n, 1)}.Go(ctx)
}

// cost returns the CPU time per request, in nanoseconds.
func (b *bench) cost(ctx context.Context, s *side, c cpuCase, n int, errs *int) (float64, error) {
	before, err := proc.CPU(s.pid)
	if err != nil {
		return 0, err
	}
	run := b.offer(ctx, s, c, n)
	after, err := proc.CPU(s.pid)
	if err != nil {
		return 0, err
	}
	*errs += run.Errors()
	if ctx.Err() != nil {
		return 0, context.Cause(ctx)
	}
	return float64(after-before) / float64(len(run.Samples)), nil
}
