package load

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Plan is a run of the generator.
type Plan struct {
	Client *Client
	// Shape makes request n; requests of several shapes are told apart by n.
	Shape func(n int) Shape
	Model string
	// Rate is in requests a second, Count how many there are.
	Rate  float64
	Count int
}

// Only is a Plan.Shape of one shape.
func Only(s Shape) func(int) Shape { return func(int) Shape { return s } }

// Go sends the plan's requests, each at its time, and returns when all have been answered. When
// ctx ends, requests that are not due yet are not sent and the others end as errors.
func (p Plan) Go(ctx context.Context) *Run {
	samples := make([]Sample, p.Count)
	var wg sync.WaitGroup
	start := time.Now()
	bodies := map[string][]byte{}
	sent := 0
	for n := range p.Count {
		due := time.Duration(float64(n) / p.Rate * float64(time.Second))
		if !sleepUntil(ctx, start.Add(due)) {
			break
		}
		shape := p.Shape(n)
		body := bodies[shape.Name]
		if body == nil {
			body = shape.Body(p.Model)
			bodies[shape.Name] = body
		}
		s := &samples[n]
		s.Due = due
		sent++
		wg.Go(func() { p.Client.ask(ctx, shape.Stream, body, start.Add(due), s) })
	}
	took := time.Since(start)
	wg.Wait()
	return &Run{Took: took, Samples: samples[:sent]}
}

// Saturate sends requests from so many clients, each as soon as its last was answered, and
// returns how many were answered a second. It is for finding out what a gateway can do; its
// latencies would say nothing.
func Saturate(ctx context.Context, c *Client, shape Shape, model string, clients int, d time.Duration) (rate float64, run *Run) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	body := shape.Body(model)
	var wg sync.WaitGroup
	var answered atomic.Int64
	failed := make(chan Sample, 1)
	start := time.Now()
	for range clients {
		wg.Go(func() {
			for ctx.Err() == nil {
				var s Sample
				c.ask(ctx, shape.Stream, body, time.Now(), &s)
				if s.Good() {
					answered.Add(1)
				} else if ctx.Err() == nil {
					select {
					case failed <- s:
					default:
					}
				}
			}
		})
	}
	wg.Wait()
	run = &Run{Took: time.Since(start)}
	select {
	case s := <-failed:
		run.Samples = append(run.Samples, s)
	default:
	}
	return float64(answered.Load()) / run.Took.Seconds(), run
}
