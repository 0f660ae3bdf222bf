package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"slices"

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

func (s *Store) load(ctx context.Context) ([]resilience.Record, error) {
	s.skipped = nil
	l := &loading{ctx: ctx, conn: s.conn}
	for _, t := range tables {
		err := l.scan(t, t.joinedScan(), readJoined)
		if errors.Is(err, errAmbiguous) {
			err = l.scan(t, t.plainScan(), plainRow)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.skipped = l.skipped
	return l.all(), nil
}

func readJoined(values []sqldriver.Value) (row, error) {
	text, _ := values[0].(string)
	return splitRow(text)
}

// loading gathers what the scans of one Load give.
type loading struct {
	ctx     context.Context
	conn    *conn
	in      interner
	rows    int
	skipped []Skipped
	// Records go into pieces that are joined once: a slice that grows would be copied over and over.
	full    [][]resilience.Record
	records []resilience.Record
}

// scan takes every row of a table, or none of it when it returns an error.
func (l *loading) scan(t table, sql string, read func([]sqldriver.Value) (row, error)) error {
	l.full, l.records = append(l.full, l.records), nil
	skipped, pieces := len(l.skipped), len(l.full)
	// The rows look at the context by themselves: the driver would set up a wait for every one of them.
	err := l.conn.query(context.WithoutCancel(l.ctx), sql, func(values []sqldriver.Value) error {
		if l.rows++; l.rows%512 == 0 && l.ctx.Err() != nil {
			return l.ctx.Err()
		}
		r, err := read(values)
		if errors.Is(err, errAmbiguous) {
			return err
		}
		if err != nil {
			l.skipped = append(l.skipped, Skipped{Table: t.name, Reason: err.Error()})
			return nil //nolint:nilerr // a row that cannot be read is reported, and the others are read
		}
		rec, reason := r.record(&l.in)
		if reason != "" {
			l.skipped = append(l.skipped, Skipped{t.name, rec.Key, reason})
			return nil
		}
		rec.Layer = t.layer
		l.add(rec)
		return nil
	})
	if err != nil {
		l.skipped, l.full, l.records = l.skipped[:skipped], l.full[:pieces], nil
	}
	return err
}

func (l *loading) add(r resilience.Record) {
	if len(l.records) == cap(l.records) {
		l.full = append(l.full, l.records)
		l.records = make([]resilience.Record, 0, min(max(2*len(l.records), 16), 8192))
	}
	l.records = append(l.records, r)
}

func (l *loading) all() []resilience.Record {
	return slices.Concat(append(l.full[:len(l.full):len(l.full)], l.records)...)
}
