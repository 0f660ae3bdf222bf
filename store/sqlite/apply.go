package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"

	"omniroute/resilience"
	"omniroute/store"
)

// Apply makes all changes in one transaction or none. It returns ErrBusy, ErrNoSpace, ErrDenied,
// ErrDamaged, ErrReplaced or ErrClosed inside a *store.Error, or wraps the error of ctx; after each of
// them but the last the same batch may be tried again.
func (s *Store) Apply(ctx context.Context, changes []resilience.Change) error {
	if err := ctx.Err(); err != nil {
		return explain(s.path, "write", err)
	}
	for _, c := range changes {
		if _, ok := tableOf(c.Record.Layer); !ok {
			return &store.Error{Store: s.path, Err: fmt.Errorf("the record of %v is of layer %v, which has no table", c.Record.Key, c.Record.Layer)}
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(changes) == 0 {
		return nil
	}
	if err := s.present(ctx); err != nil {
		return err
	}
	var w writer
	return explain(s.path, "write", s.conn.transact(ctx, func() error {
		for i, c := range changes {
			// Looked at here and not given to the statements, where each would start a watcher.
			if i%64 == 63 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := w.write(s, c); err != nil {
				return err
			}
		}
		return ctx.Err()
	}))
}

func tableOf(l resilience.Layer) (int, bool) {
	i := int(l) - int(resilience.LayerBreaker)
	return i, i >= 0 && i < len(tables)
}

// writer holds the arguments of a statement, reused from change to change.
type writer struct{ args [12]sqldriver.NamedValue }

func (w *writer) write(s *Store, c resilience.Change) error {
	i, _ := tableOf(c.Record.Layer)
	r := c.Record
	n := 0
	add := func(v sqldriver.Value) {
		w.args[n] = sqldriver.NamedValue{Ordinal: n + 1, Value: v}
		n++
	}
	add(r.Key.Provider)
	add(r.Key.Connection)
	add(r.Key.Model)
	stmt := s.stmts[i].remove
	if !c.Delete {
		stmt = s.stmts[i].upsert
		add(r.State)
		add(r.Kind.String())
		add(int64(r.Level))
		add(int64(r.Failures))
		add(r.SinceMs)
		add(r.UntilMs)
		add(r.UpdatedMs)
		add(r.Detail)
		if tables[i].lockoutMs != "" {
			add(r.LockoutMs)
		}
	}
	_, err := stmt.ExecContext(context.Background(), w.args[:n])
	return err
}
