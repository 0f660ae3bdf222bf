// Package storetest is the suite that every resilience.Store must pass, so that the engine may
// rely on the same promises whatever is behind them.
//
// A store's own tests call Run with a way to make a fresh medium:
//
//	storetest.Run(t, func(t testing.TB) storetest.Medium {
//		file := filepath.Join(t.TempDir(), "state.db")
//		return storetest.Medium{Open: func(t storetest.TB) resilience.Store { … }}
//	})
package storetest

import (
	"context"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniroute/resilience"
)

// TB is what the suite and an opener need of a running test: both *testing.T and *rapid.T are one.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// Medium is one place that holds records: a file, a key prefix on a server, a piece of memory.
type Medium struct {
	// Open returns a store over the medium, or fails the test. The suite has at most one store
	// open on a medium at a time and closes it, where it is an io.Closer, before it opens the
	// next and at the end of the test.
	Open func(t TB) resilience.Store
	// Volatile says that the records end with the store, so that nothing can be reopened.
	Volatile bool
}

// Run checks everything that the engine relies on. It calls fresh for a new, empty medium for
// each check; what the medium needs to be removed belongs into t.Cleanup.
func Run(t *testing.T, fresh func(t testing.TB) Medium) {
	t.Helper()
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := open(t, fresh(t))
			t.Cleanup(func() { s.close(t) })
			c.check(t, s)
		})
	}
	t.Run("survives a reopen", func(t *testing.T) {
		t.Parallel()
		s := open(t, fresh(t))
		t.Cleanup(func() { s.close(t) })
		if s.medium.Volatile {
			t.Skip("this store keeps nothing beyond its life")
		}
		checkReopen(t, s)
	})
	t.Run("model", func(t *testing.T) {
		t.Parallel()
		checkModel(t, fresh)
	})
}

// subject is the store under test on its medium.
type subject struct {
	medium Medium
	store  resilience.Store
}

func open(t TB, m Medium) *subject {
	t.Helper()
	return &subject{medium: m, store: m.Open(t)}
}

func (s *subject) reopen(t TB) {
	t.Helper()
	s.close(t)
	s.store = s.medium.Open(t)
}

func (s *subject) close(t TB) {
	t.Helper()
	if c, ok := s.store.(io.Closer); ok {
		if err := c.Close(); err != nil {
			t.Fatalf("Close: %v", err)
		}
	}
}

func (s *subject) apply(t TB, changes ...resilience.Change) {
	t.Helper()
	if err := s.store.Apply(context.Background(), changes); err != nil {
		t.Fatalf("Apply of %d changes: %v", len(changes), err)
	}
}

// load returns the records by identity and fails when one is returned twice.
func (s *subject) load(t TB) map[resilience.RecordID]resilience.Record {
	t.Helper()
	records, err := s.store.Load(context.Background())
	if err != nil {
		t.Fatalf("Load: %v", err)
	}
	byID := make(map[resilience.RecordID]resilience.Record, len(records))
	for _, r := range records {
		if _, twice := byID[r.ID()]; twice {
			t.Fatalf("Load returned %+v twice", r.ID())
		}
		byID[r.ID()] = r
	}
	return byID
}

// want fails unless the store holds exactly these records.
func (s *subject) want(t TB, records ...resilience.Record) {
	t.Helper()
	byID := make(map[resilience.RecordID]resilience.Record, len(records))
	for _, r := range records {
		byID[r.ID()] = r
	}
	s.wantMap(t, byID)
}

func (s *subject) wantMap(t TB, want map[resilience.RecordID]resilience.Record) {
	t.Helper()
	if diff := cmp.Diff(want, s.load(t)); diff != "" {
		t.Fatalf("stored records differ (-want +got):\n%s", diff)
	}
}
