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

	few, many := pick(b, 100, 50), pick(b, 1000, 250)
	var at [2]memorySample
	for _, s := range []*side{&b.bare, &b.ours} {
		got, err := b.held(ctx, s, few, many)
		if err != nil {
			return rows, err
		}
		for i, streams := range []int{few, many} {
			at[i].Streams = streams
			if s == &b.ours {
				at[i].Ours = got[i]
			} else {
				at[i].Reference = got[i]
			}
		}
	}
	each := func(more int64, streams int) float64 { return float64(more) / float64(streams) / 1024 }
	further := many - few
	ours := each(at[1].Ours-at[0].Ours, further)
	return append(rows, Row{ID: "memory-stream", What: fmt.Sprintf("resident memory, each open stream from %d to %d", few, many),
		Value: ours, Unit: "KiB", Bound: 48, Ours: number(ours, "KiB"),
		Reference: number(each(at[1].Reference-at[0].Reference, further), "KiB"), Raw: []memorySample{idle, at[0], at[1]}}), nil
}

func (b *bench) resident(streams int) (m memorySample, err error) {
	m.Streams = streams
	if m.Ours, err = proc.Memory(b.ours.pid); err != nil {
		return m, err
	}
	m.Reference, err = proc.Memory(b.bare.pid)
	return m, err
}

// held opens streams, a few at a time, and returns the side's memory at each of these numbers of open ones.
func (b *bench) held(ctx context.Context, s *side, numbers ...int) (memory []int64, err error) {
	body := load.Stream.Body(s.model(upstream.Held))
	var mu sync.Mutex
	var ends []func()
	defer func() {
		for _, end := range ends {
			end()
		}
	}()
	failed := make(chan error, 1)
	for _, streams := range numbers {
		var wg sync.WaitGroup
		slots := make(chan struct{}, 20)
		for range streams - len(ends) {
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
			return nil, fmt.Errorf("%s: %d of %d streams opened: %w", s.name, len(ends), streams, err)
		default:
		}
		// Long enough that every stream has passed on some content.
		if err := pause(ctx, pick(b, 5*time.Second, 2*time.Second)); err != nil {
			return nil, err
		}
		now, err := proc.Memory(s.pid)
		if err != nil {
			return nil, err
		}
		memory = append(memory, now)
	}
	return memory, nil
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
