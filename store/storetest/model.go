package storetest

import (
	"cmp"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"omniroute/resilience"
)

// checkModel drives a store and a plain map with the same batches, and compares the two after
// each step and across reopens.
func checkModel(t *testing.T, fresh func(t testing.TB) Medium) {
	rapid.Check(t, func(rt *rapid.T) {
		s := open(rt, fresh(t))
		defer s.close(rt)
		model := map[resilience.RecordID]resilience.Record{}

		draw := func(rt *rapid.T) []resilience.Change {
			return rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) resilience.Change {
				c := resilience.Change{Record: Records().Draw(rt, "record"), Delete: rapid.Bool().Draw(rt, "delete")}
				if len(model) > 0 && rapid.Bool().Draw(rt, "known") {
					id := rapid.SampledFrom(sortedIDs(model)).Draw(rt, "id")
					c.Record.Layer, c.Record.Key = id.Layer, id.Key
					if id.Layer != resilience.LayerModel {
						c.Record.LockoutMs = 0
					}
				}
				return c
			}), 0, 8).Draw(rt, "batch")
		}
		rt.Repeat(map[string]func(*rapid.T){
			"apply": func(rt *rapid.T) {
				batch := draw(rt)
				s.apply(rt, batch...)
				replay(model, batch)
			},
			"apply twice": func(rt *rapid.T) {
				batch := draw(rt)
				s.apply(rt, batch...)
				s.apply(rt, batch...)
				replay(model, batch)
			},
			"a bad record fails the batch": func(rt *rapid.T) {
				batch := append(draw(rt), resilience.Change{})
				if err := s.store.Apply(t.Context(), batch); err == nil {
					rt.Fatalf("Apply accepted a record without a layer")
				}
			},
			"reopen": func(rt *rapid.T) {
				// One time in four, because opening costs a hundred times what a batch does.
				if s.medium.Volatile || rapid.IntRange(0, 3).Draw(rt, "seldom") > 0 {
					rt.Skip("not now")
				}
				s.reopen(rt)
			},
			"": func(rt *rapid.T) { s.wantMap(rt, model) },
		})
	})
}

// replay is the whole specification of Apply.
func replay(model map[resilience.RecordID]resilience.Record, batch []resilience.Change) {
	for _, c := range batch {
		if c.Delete {
			delete(model, c.Record.ID())
		} else {
			model[c.Record.ID()] = c.Record
		}
	}
}

// sortedIDs gives rapid a stable choice, so that a failing run can be repeated and shrunk.
func sortedIDs(model map[resilience.RecordID]resilience.Record) []resilience.RecordID {
	return slices.SortedFunc(maps.Keys(model), func(a, b resilience.RecordID) int {
		return cmp.Or(
			cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Key.Provider, b.Key.Provider),
			cmp.Compare(a.Key.Connection, b.Key.Connection), cmp.Compare(a.Key.Model, b.Key.Model),
		)
	})
}
