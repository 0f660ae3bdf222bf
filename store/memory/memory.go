// Package memory keeps gates in the process and nowhere else. Store is what `store: memory:`
// means and what tests use; a restart begins with an empty store. Hub is one that several engines of
// the process share.
package memory

import (
	"context"
	"fmt"
	"sync"

	"omniroute/resilience"
)

// Store is a map of records. The zero value is empty and ready, and every method is safe for
// concurrent use. A Store must not be copied after its first use.
type Store struct {
	mu      sync.Mutex
	records map[resilience.RecordID]resilience.Record
}

var _ resilience.Store = (*Store)(nil)

// New returns an empty store.
func New() *Store { return new(Store) }

// Load returns every record, in no particular order. It fails only when ctx is done.
func (s *Store) Load(ctx context.Context) ([]resilience.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	records := make([]resilience.Record, 0, len(s.records))
	for _, r := range s.records {
		records = append(records, r)
	}
	return records, nil
}

// Apply makes all changes, in order, or none: none when ctx is done or when a record names no
// layer that is stored.
func (s *Store) Apply(ctx context.Context, changes []resilience.Change) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := check(changes); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.records == nil {
		s.records = make(map[resilience.RecordID]resilience.Record, len(changes))
	}
	for _, c := range changes {
		if c.Delete {
			delete(s.records, c.Record.ID())
		} else {
			s.records[c.Record.ID()] = c.Record
		}
	}
	return nil
}

func check(changes []resilience.Change) error {
	for _, c := range changes {
		if l := c.Record.Layer; l < resilience.LayerBreaker || l > resilience.LayerOperator {
			return fmt.Errorf("cannot store the record of %v: layer %v is none that is stored (breaker, connection, model or operator)", c.Record.Key, l)
		}
	}
	return nil
}
