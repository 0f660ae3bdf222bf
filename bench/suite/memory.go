package suite

import (
	"context"
	"fmt"
	"sync"
	"time"

	"omniroute/bench/load"
	"omniroute/bench/proc"
	"omniroute/bench/upstream"
)

// memorySample is the resident memory of both sides in bytes.
type memorySample struct {
	Streams   int   `json:"streams"`
	Ours      int64 `json:"ours"`
	Reference int64 `json:"reference"`
}

const mib = 1 << 20

// memory measures both processes before anything was asked of them, and with a thousand open
// streams. It must come first.
func (b *bench) memory(ctx context.Context) ([]Row, error) {
	if b.ours.pid == 0 {
		return nil, fmt.Errorf("the process id of the gateway is needed; give -pid")
	}
	if err := pause(ctx, time.Second); err != nil {
		return nil, err
	}
	idle, err := b.resident(0)
	if err != nil {
		return nil, err
	}
	rows := []Row{{ID: "memory-idle", What: "resident memory, idle", Value: float64(idle.Ours) / mib, Unit: "MiB", Bound: 40,
		Ours: number(float64(idle.Ours)/mib, "MiB"), Reference: number(float64(idle.Reference)/mib, "MiB"), Raw: []memorySample{idle}}}

	streams := pick(b, 1000, 200)
	samples := []memorySample{idle}
	with := memorySample{Streams: streams}
	for _, s := range []*side{&b.bare, &b.ours} {
		got, err := b.held(ctx, s, streams)
		if err != nil {
			return rows, err
		}
		if s == &b.ours {
			with.Ours = got
		} else {
			with.Reference = got
		}
	}
	samples = append(samples, with)
	each := func(now, before int64) float64 { return float64(now-before) / float64(streams) / 1024 }
	ours := each(with.Ours, idle.Ours)
	return append(rows, Row{ID: "memory-stream", What: fmt.Sprintf("resident memory, each of %d open streams", streams),
		Value: ours, Unit: "KiB", Bound: 48, Ours: number(ours, "KiB"),
		Reference: number(each(with.Reference, idle.Reference), "KiB"), Raw: samples}), nil
}

func (b *bench) resident(streams int) (m memorySample, err error) {
	m.Streams = streams
	if m.Ours, err = proc.Memory(b.ours.pid); err != nil {
		return m, err
	}
	m.Reference, err = proc.Memory(b.bare.pid)
	return m, err
}

// held opens streams, a few at a time, and returns the side's memory while they are open.
func (b *bench) held(ctx context.Context, s *side, streams int) (int64, error) {
	body := load.Stream.Body(s.model(upstream.Held))
	var mu sync.Mutex
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	var wg sync.WaitGroup
	failed := make(chan error, 1)
	slots := make(chan struct{}, 20)
	for range streams {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			end, err := s.client.Open(ctx, body)
			if err != nil {
				select {
				case failed <- err:
				default:
				}
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ends = append(ends, end)
		})
	}
	wg.Wait()
	select {
	case err := <-failed:
		return 0, fmt.Errorf("%s: %d of %d streams opened: %w", s.name, len(ends), streams, err)
	default:
	}
	// Long enough that every stream has passed on some content, and the collector has run.
	if err := pause(ctx, pick(b, 5*time.Second, 2*time.Second)); err != nil {
		return 0, err
	}
	return proc.Memory(s.pid)
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
