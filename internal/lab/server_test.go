package lab_test

import (
	"context"
	"errors"
	"io"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"

	"github.com/google/go-cmp/cmp"
)

func TestServerDownAndUp(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{})
	if d := cmp.Diff([]int{200}, h.statuses(1)); d != "" {
		t.Fatal(d)
	}
	h.server.Down()
	r := h.ask(t.Context(), "m", false)
	for i := 0; i < 3 && !errors.Is(r.Err, syscall.ECONNREFUSED); i++ {
		r = h.ask(t.Context(), "m", false) // the pool's connection goes first
	}
	if !errors.Is(r.Err, syscall.ECONNREFUSED) {
		t.Errorf("got %+v", r)
	}
	if err := h.server.Up(); err != nil {
		t.Skip(err) // another process took the port
	}
	if d := cmp.Diff([]int{200}, h.statuses(1)); d != "" {
		t.Error(d)
	}
}

// TestStop shows that answers in flight may end, and end anyway with the context.
func TestStop(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{})
		soon, never := make(chan result, 1), make(chan result, 1)
		go func() { soon <- h.ask(t.Context(), "fault/slow-headers:3s", false) }()
		go func() { never <- h.ask(t.Context(), "fault/hang", false) }()
		if err := h.p.Await(t.Context(), 2, 2); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := h.server.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
		if r := <-soon; r.Status != 200 {
			t.Errorf("the slow one got %+v", r)
		}
		if r := <-never; !errors.Is(r.Err, io.EOF) && !isReset(r.Err) {
			t.Errorf("the hung one got %+v", r)
		}
		if n := h.p.InFlight(); n != 0 {
			t.Errorf("%d still in flight", n)
		}
		if err := h.server.Stop(ctx); err != nil {
			t.Errorf("stopping again: %v", err)
		}
	})
}
