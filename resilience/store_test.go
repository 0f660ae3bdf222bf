package resilience

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"time"
)

// mapStore is a store whose troubles a test decides.
type mapStore struct {
	mu      sync.Mutex
	records map[RecordID]Record
	fail    error // what calls return
	torn    bool  // a failing Apply is carried out nevertheless
	hang    bool  // calls wait for their context
	deaf    chan struct{}
	applies int
	changes int
}

func newStore() *mapStore { return &mapStore{records: map[RecordID]Record{}} }

func (s *mapStore) set(change func(*mapStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *mapStore) snapshot() map[RecordID]Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.records)
}

func (s *mapStore) counts() (applies, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applies, s.changes
}

// trouble waits or fails as it was told.
func (s *mapStore) trouble(ctx context.Context) error {
	s.mu.Lock()
	hang, deaf, fail := s.hang, s.deaf, s.fail
	s.mu.Unlock()
	if deaf != nil {
		<-deaf
	}
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return fail
}

func (s *mapStore) Load(ctx context.Context) ([]Record, error) {
	if err := s.trouble(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Record
	for _, r := range s.records {
		out = append(out, r)
	}
	return out, nil
}

func (s *mapStore) Apply(ctx context.Context, changes []Change) error {
	err := s.trouble(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.torn {
		return err
	}
	s.applies++
	s.changes += len(changes)
	for _, c := range changes {
		if c.Delete {
			delete(s.records, c.Record.ID())
		} else {
			s.records[c.Record.ID()] = c.Record
		}
	}
	return err
}

var errStore = errors.New("disk full")

// live starts an engine on synctest's clock.
func live(t *testing.T, s Store, o Options) *Engine {
	t.Helper()
	o.Store, o.Logger = s, quiet
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whatever the test did
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.Stop(ctx)
	})
	return e
}

func stop(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}
