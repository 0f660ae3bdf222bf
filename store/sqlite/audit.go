package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"time"

	"omniroute/resilience"
)

var _ resilience.Auditor = (*Store)(nil)

const (
	auditInsert = `INSERT INTO operator_audit (at_ms, actor, peer, action, provider, connection, model, detail) VALUES (?, ?, ?, ?, ?, ?, ?, ?)`
	auditColumn = `at_ms, actor, peer, action, provider, connection, model, detail`
)

// Record keeps what an operator did, and drops the oldest entries beyond resilience.MaxAudits.
func (s *Store) Record(ctx context.Context, a resilience.Audit) error {
	if err := ctx.Err(); err != nil {
		return explain(s.path, "write", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.present(ctx); err != nil {
		return err
	}
	return explain(s.path, "write", s.conn.transact(ctx, func() error {
		stmt, err := s.conn.prepare(ctx, auditInsert)
		if err != nil {
			return err
		}
		defer func() { _ = stmt.Close() }() // it only frees memory
		values := []sqldriver.Value{a.At.UnixMilli(), a.Actor, a.Peer, a.Action, a.Provider, a.Connection, a.Model, a.Detail}
		args := make([]sqldriver.NamedValue, len(values))
		for i, v := range values {
			args[i] = sqldriver.NamedValue{Ordinal: i + 1, Value: v}
		}
		if _, err := stmt.ExecContext(ctx, args); err != nil {
			return err
		}
		return s.conn.exec(ctx, fmt.Sprintf("DELETE FROM operator_audit WHERE id <= (SELECT max(id) FROM operator_audit) - %d", s.opts.audits))
	}))
}

// Audits returns what operators did, the newest first.
func (s *Store) Audits(ctx context.Context, limit int) ([]resilience.Audit, error) {
	if err := ctx.Err(); err != nil {
		return nil, explain(s.path, "read", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.present(ctx); err != nil {
		return nil, err
	}
	var all []resilience.Audit
	err := s.conn.query(ctx, fmt.Sprintf("SELECT "+auditColumn+" FROM operator_audit ORDER BY id DESC LIMIT %d", limit), func(v []sqldriver.Value) error {
		ms, _ := v[0].(int64)
		text := func(i int) string { s, _ := v[i].(string); return s }
		all = append(all, resilience.Audit{
			At: resilience.Timestamp{Time: time.UnixMilli(ms)}, Actor: text(1), Peer: text(2), Action: text(3),
			Key: resilience.Key{Provider: text(4), Connection: text(5), Model: text(6)}, Detail: text(7),
		})
		return nil
	})
	return all, explain(s.path, "read", err)
}
