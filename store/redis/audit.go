package redis

import (
	"context"
	"encoding/json"

	"github.com/redis/rueidis"

	"omniroute/resilience"
)

var _ resilience.Auditor = (*Store)(nil)

func (s *Store) auditKey() string { return s.o.Prefix + "audit" }

// Record keeps what an operator did in a list that all nodes share, at most resilience.MaxAudits of them.
func (s *Store) Record(ctx context.Context, a resilience.Audit) error {
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	client, err := s.connected(ctx)
	if err != nil {
		return explain(s.String(), err)
	}
	for _, r := range client.DoMulti(ctx,
		client.B().Lpush().Key(s.auditKey()).Element(rueidis.BinaryString(text)).Build(),
		client.B().Ltrim().Key(s.auditKey()).Start(0).Stop(int64(s.o.audits)-1).Build()) {
		if err := r.Error(); err != nil {
			return explain(s.String(), err)
		}
	}
	return nil
}

// Audits returns what operators did on all nodes, the newest first.
func (s *Store) Audits(ctx context.Context, limit int) ([]resilience.Audit, error) {
	client, err := s.connected(ctx)
	if err != nil {
		return nil, explain(s.String(), err)
	}
	texts, err := client.Do(ctx, client.B().Lrange().Key(s.auditKey()).Start(0).Stop(int64(limit)-1).Build()).AsStrSlice()
	if err != nil {
		return nil, explain(s.String(), err)
	}
	var all []resilience.Audit
	for _, text := range texts {
		var a resilience.Audit
		if json.Unmarshal([]byte(text), &a) == nil { // else somebody else's, or a newer version's
			all = append(all, a)
		}
	}
	return all, nil
}
