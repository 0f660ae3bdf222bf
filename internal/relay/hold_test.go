package relay

import (
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
)

// fill fills a buffer within a share and returns it, nil where there is no room.
func fill(t *testing.T, s Share, n int) *Buffer {
	t.Helper()
	b := NewBuffer()
	b.Within(s)
	switch err := b.Fill(strings.NewReader(strings.Repeat("x", n)), int64(n), 1<<30); {
	case errors.Is(err, ErrNoRoom):
		b.Release()
		return nil
	case err != nil || len(b.B) != n:
		t.Fatalf("%d bytes of %d: %v", len(b.B), n, err)
	}
	return b
}

// TestHold: one caller with many large bodies gets half of what there is, and another's fit beside them at once.
func TestHold(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	var h Hold
	share := func(caller uint64) Share { return Share{Of: &h, Most: 16 * mib, Caller: caller, Fair: true} }
	var held []*Buffer
	for range 50 {
		if b := fill(t, share(1), mib); b != nil {
			held = append(held, b)
		}
	}
	if len(held) != 8 || h.Total() != 8*mib {
		t.Errorf("one caller has %d bodies, %d bytes of 16 MiB", len(held), h.Total())
	}
	for i, n := range []int{1, 5000, 4 * mib} {
		b := fill(t, share(uint64(2+i)), n)
		if b == nil {
			t.Fatalf("no room for another's %d bytes", n)
		}
		held = append(held, b)
	}
	if b := fill(t, share(9), 8*mib); b != nil {
		t.Error("there is more than there is")
	}
	for _, b := range held {
		b.Retain()
		b.Release()
		b.Release()
	}
	if h.Total() != 0 || len(h.by) != 0 {
		t.Errorf("%d bytes are held of nobody, by %v", h.Total(), h.by)
	}
	if b := fill(t, share(1), 16*mib); b == nil {
		t.Error("a caller's only body may have all")
	} else {
		b.Release()
	}
}

// TestHoldWithoutFairness: where all are one caller the whole of it is theirs.
func TestHoldWithoutFairness(t *testing.T) {
	t.Parallel()
	var h Hold
	var held []*Buffer
	for range 9 {
		if b := fill(t, Share{Of: &h, Most: 8 << 10}, 1<<10); b != nil {
			held = append(held, b)
		}
	}
	if len(held) != 8 {
		t.Errorf("%d bodies of 1 KiB in 8 KiB", len(held))
	}
	for _, b := range held {
		b.Release()
	}
}

// TestHoldIsGivenBack: however bodies end, in the middle too, nothing stays taken.
func TestHoldIsGivenBack(t *testing.T) {
	t.Parallel()
	var h Hold
	var all sync.WaitGroup
	for i := range 32 {
		all.Go(func() {
			for n := range 64 {
				b := NewBuffer()
				b.Within(Share{Of: &h, Most: 256 << 10, Caller: uint64(i % 5), Fair: true})
				r := io.Reader(strings.NewReader(strings.Repeat("x", n*997)))
				if n%3 == 0 {
					r = io.MultiReader(r, failing{})
				}
				_ = b.Fill(r, int64(n%2*n*997)-1, 32<<10)
				b.Release()
			}
		})
	}
	all.Wait()
	if h.Total() != 0 || len(h.by) != 0 {
		t.Errorf("%d bytes are held of nobody, by %v", h.Total(), h.by)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("cut") }
