package redis

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"omniroute/resilience"
)

func tokenText(n int64) string { return fmt.Sprintf("%016d", n) }

func texts(m rueidis.RedisMessage) []string {
	s, _ := m.AsStrSlice() // of a script of ours: a list of texts, or empty
	return s
}

func text(m rueidis.RedisMessage) string {
	s, _ := m.ToString()
	return s
}

func number(m rueidis.RedisMessage) int64 {
	n, _ := strconv.ParseFloat(text(m), 64) // scores come in any form
	return int64(n)
}

// Beat says that this node lives.
func (s *Store) Beat(ctx context.Context, b resilience.Beat) (p resilience.Pulse, err error) {
	args := []string{s.o.Node, strconv.Itoa(b.Nodes)}
	for _, h := range b.Keep {
		args = append(args, gateText(h.Gate), tokenText(h.Token), strconv.FormatInt(h.For.Milliseconds(), 10))
	}
	answer, err := s.run(ctx, beatLua, 6, args...)
	if err != nil {
		return p, err
	}
	p = resilience.Pulse{Life: text(answer[0]), Revision: number(answer[1]), Now: time.UnixMicro(number(answer[2])),
		Count: int(number(answer[3])), Lost: gatesOf(texts(answer[4]))}
	listed := texts(answer[5])
	for i := 0; i+1 < len(listed); i += 2 {
		ms, _ := strconv.ParseFloat(listed[i+1], 64)
		p.Nodes = append(p.Nodes, resilience.NodeSeen{Node: listed[i], Seen: time.UnixMilli(int64(ms))})
	}
	return p, nil
}

// Changes returns what has changed since a revision.
func (s *Store) Changes(ctx context.Context, since int64) (c resilience.Changes, err error) {
	answer, err := s.run(ctx, changesLua, 4, strconv.FormatInt(since, 10), strconv.Itoa(page))
	if err != nil {
		return c, err
	}
	return resilience.Changes{Life: text(answer[0]), Revision: number(answer[1]), More: text(answer[2]) == "1",
		Gates: known(texts(answer[3]))}, nil
}

// Merge joins what this node knows with what is stored.
func (s *Store) Merge(ctx context.Context, c resilience.Contribution) (m resilience.Merged, err error) {
	leave := "0"
	if c.Leave {
		leave = "1"
	}
	args := []string{s.o.Node, leave, strconv.Itoa(len(c.Gates))}
	for _, g := range c.Gates {
		args = append(args, gateText(g.Gate), tokenText(g.Token), viewText(g.View))
	}
	for _, h := range c.Free {
		args = append(args, gateText(h.Gate), tokenText(h.Token))
	}
	answer, err := s.run(ctx, mergeLua, 2, args...)
	if err != nil {
		return m, err
	}
	return resilience.Merged{Life: text(answer[0]), Fenced: known(texts(answer[1]))}, nil
}

// Lease takes the right to probe all these gates, or none.
func (s *Store) Lease(ctx context.Context, gates []resilience.RecordID, d time.Duration) (g resilience.Grant, err error) {
	args := []string{s.o.Node, strconv.FormatInt(s.o.grace.Milliseconds(), 10), strconv.FormatInt(d.Milliseconds(), 10)}
	for _, id := range gates {
		args = append(args, gateText(id))
	}
	answer, err := s.run(ctx, leaseLua, 2, args...)
	if err != nil {
		return g, err
	}
	return resilience.Grant{Token: number(answer[0]), Wait: time.Duration(number(answer[1])) * time.Millisecond}, nil
}

// Load returns every record that stands.
func (s *Store) Load(ctx context.Context) ([]resilience.Record, error) {
	records := map[resilience.RecordID]resilience.Record{}
	for at, more := int64(0), true; more; {
		c, err := s.Changes(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, k := range c.Gates {
			delete(records, k.Gate) // it may have changed while the pages were read
			if r, ok := k.View.Standing(k.Gate); ok {
				records[k.Gate] = r
			}
		}
		at, more = c.Revision, c.More
	}
	return slices.Collect(maps.Values(records)), nil
}

// Apply makes all changes or none, whatever stood there. An engine does not use it: it merges.
func (s *Store) Apply(ctx context.Context, changes []resilience.Change) error {
	if len(changes) == 0 {
		return ctx.Err()
	}
	args := make([]string, 0, 2*len(changes))
	for _, c := range changes {
		if l := c.Record.Layer; l < resilience.LayerBreaker || l > resilience.LayerOperator {
			return fmt.Errorf("store %s: cannot store the record of %v: layer %v is none that is stored", s, c.Record.Key, l)
		}
		rest := ""
		if !c.Delete {
			rest = factText(resilience.NewFact(c.Record, 0))
		}
		args = append(args, gateText(c.Record.ID()), rest)
	}
	_, err := s.run(ctx, applyLua, 1, args...)
	return err
}
