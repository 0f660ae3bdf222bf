package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"

	"omniroute/resilience"
)

// Skipped is a row that could not be understood, most likely after an edit by hand. It stays in
// the file until the engine writes a record with the same key.
type Skipped struct {
	Table  string
	Key    resilience.Key // empty when not even that could be read
	Reason string
}

// String is a sentence for the log.
func (s Skipped) String() string {
	return "row " + s.Key.String() + " of " + s.Table + " was skipped: " + s.Reason
}

// Skipped returns the rows that the last Load left out.
func (s *Store) Skipped() []Skipped {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Skipped(nil), s.skipped...)
}

// Load returns every record, in the order of the layers and of the keys. Rows that make no
// sense are left out, see Skipped. Where the file turns out to be damaged, it is moved aside,
// see Moved, and Load returns the empty new store.
func (s *Store) Load(ctx context.Context) ([]resilience.Record, error) {
	if err := ctx.Err(); err != nil {
		return nil, explain(s.path, "read", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.present(ctx); err != nil {
		return nil, err
	}
	records, err := s.load(ctx)
	if err = explain(s.path, "read", err); errors.Is(err, ErrDamaged) {
		s.skipped = nil
		_ = s.disconnect()
		if err := s.setAside(err); err != nil {
			return nil, err
		}
		return nil, s.connect(ctx)
	}
	return records, err
}

func (s *Store) load(ctx context.Context) (records []resilience.Record, err error) {
	s.skipped = nil
	var in interner
	n := 0
	for _, t := range tables {
		err := s.conn.query(ctx, t.scan(), nil, func(row []sqldriver.Value) error {
			if n++; n%512 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			text, _ := row[0].(string)
			r, reason := parseRow(text, &in)
			if reason != "" {
				s.skipped = append(s.skipped, Skipped{t.name, r.Key, reason})
				return nil
			}
			r.Layer = t.layer
			records = append(records, r)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return records, ctx.Err()
}
