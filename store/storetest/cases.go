package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"omniroute/resilience"
)

var cases = []struct {
	name  string
	check func(t *testing.T, s *subject)
}{
	{"starts empty", func(t *testing.T, s *subject) { s.want(t) }},
	{"an empty batch changes nothing", func(t *testing.T, s *subject) {
		s.apply(t)
		s.apply(t, put(samples()...)...)
		s.apply(t)
		s.want(t, samples()...)
	}},
	{"keeps every column of every layer", func(t *testing.T, s *subject) {
		s.apply(t, put(samples()...)...)
		s.want(t, samples()...)
	}},
	{"keeps every kind", func(t *testing.T, s *subject) {
		var all []resilience.Record
		for i, k := range resilience.Kinds() {
			r := sample(layers[i%len(layers)], "p", "c", fmt.Sprint(i))
			r.Kind = k
			all = append(all, r)
		}
		s.apply(t, put(all...)...)
		s.want(t, all...)
	}},
	{"keeps zeros and extremes", checkExtremes},
	{"layers do not mix", func(t *testing.T, s *subject) {
		var all []resilience.Record
		for _, l := range layers {
			all = append(all, sample(l, "same", "same", "same"))
		}
		s.apply(t, put(all...)...)
		s.want(t, all...)
		s.apply(t, del(all[1])...)
		s.want(t, all[0], all[2], all[3])
	}},
	{"a later value replaces the earlier one whole", func(t *testing.T, s *subject) {
		for _, l := range layers {
			s.apply(t, put(sample(l, "p", "c", "m"))...)
			bare := resilience.Record{Layer: l, Key: resilience.Key{Provider: "p", Connection: "c", Model: "m"}}
			s.apply(t, put(bare)...)
			s.want(t, bare)
			s.apply(t, del(bare)...)
		}
	}},
	{"deletes", func(t *testing.T, s *subject) {
		all := samples()
		s.apply(t, put(all...)...)
		for i := range all {
			s.apply(t, del(all[i])...)
			s.want(t, all[i+1:]...)
		}
	}},
	{"deleting what is absent is harmless", func(t *testing.T, s *subject) {
		s.apply(t, del(samples()...)...)
		s.apply(t, put(samples()[0])...)
		s.apply(t, del(sample(resilience.LayerBreaker, "other", "", ""), sample(resilience.LayerConnection, "openai", "", ""))...)
		s.want(t, samples()[0])
	}},
	{"a deletion looks at the key alone", func(t *testing.T, s *subject) {
		r := samples()[2]
		s.apply(t, put(r)...)
		r.State, r.Kind, r.Detail = "other", resilience.KindAuth, "other"
		s.apply(t, resilience.Change{Record: r, Delete: true})
		s.want(t)
	}},
	{"the last change of a record in a batch wins", checkOrder},
	{"repetition is harmless", func(t *testing.T, s *subject) {
		batch := append(put(samples()...), del(samples()[1])...)
		for range 3 {
			s.apply(t, batch...)
			s.want(t, samples()[0], samples()[2], samples()[3])
		}
	}},
	{"odd names stay apart", checkOddNames},
	{"big detail", func(t *testing.T, s *subject) {
		r := samples()[2]
		r.Detail = `{"evidence":"` + strings.Repeat("ä\\\"\n ", 200_000) + `"}`
		s.apply(t, put(r)...)
		s.want(t, r)
		r.Detail = ""
		s.apply(t, put(r)...)
		s.want(t, r)
	}},
	{"thousands of records", func(t *testing.T, s *subject) {
		all := Many(5_000)
		s.apply(t, put(all...)...)
		s.want(t, all...)
		s.apply(t, del(all[100:]...)...)
		s.want(t, all[:100]...)
	}},
	{"a bad record fails the whole batch", checkBadRecord},
	{"the caller may reuse its slice", func(t *testing.T, s *subject) {
		batch := put(samples()...)
		s.apply(t, batch...)
		clear(batch)
		s.want(t, samples()...)
		got, err := s.store.Load(t.Context())
		if err != nil {
			t.Fatalf("Load: %v", err)
		}
		clear(got)
		s.want(t, samples()...)
	}},
	{"a canceled context changes nothing", checkCanceled},
	{"a context that ends midway leaves all or nothing", checkCanceledMidway},
}

func checkExtremes(t *testing.T, s *subject) {
	var all []resilience.Record
	for _, l := range layers {
		low := resilience.Record{Layer: l}
		high := resilience.Record{
			Layer: l, Key: resilience.Key{Provider: "max"}, Level: math.MaxInt, Failures: math.MaxInt,
			SinceMs: math.MaxInt64, UntilMs: math.MaxInt64, UpdatedMs: math.MaxInt64,
		}
		if l == resilience.LayerModel {
			high.LockoutMs = math.MaxInt64
		}
		all = append(all, low, high)
	}
	s.apply(t, put(all...)...)
	s.want(t, all...)
}

func checkOrder(t *testing.T, s *subject) {
	first, second, third := samples()[2], samples()[2], samples()[2]
	second.Level, third.Level = 7, 9
	s.apply(t, put(first, second, third)...)
	s.want(t, third)
	s.apply(t, append(put(second), del(second)...)...)
	s.want(t)
	s.apply(t, slices.Concat(put(first), del(first), put(second))...)
	s.want(t, second)
	s.apply(t, slices.Concat(del(first), put(third))...)
	s.want(t, third)
}

func checkOddNames(t *testing.T, s *subject) {
	var all []resilience.Record
	for _, l := range layers {
		for _, n := range oddNames {
			all = append(all, sample(l, n, "", ""), sample(l, "p", n, ""), sample(l, "p", "c", n), sample(l, n, "", n), sample(l, "", "", n))
		}
		// The same letters cut elsewhere are other records.
		all = append(all, sample(l, "ab", "c", "d"), sample(l, "a", "bc", "d"), sample(l, "a", "b", "cd"), sample(l, "abcd", "", ""), sample(l, "", "abcd", ""))
	}
	s.apply(t, put(all...)...)
	s.want(t, all...)
	s.apply(t, del(all...)...)
	s.want(t)
}

func checkBadRecord(t *testing.T, s *subject) {
	before := samples()[0]
	s.apply(t, put(before)...)
	for _, bad := range []resilience.Layer{resilience.LayerNone, resilience.LayerOperator + 1} {
		for at := range 3 {
			batch := slices.Concat(put(sample(resilience.LayerModel, "new", "c", "m")), del(before))
			batch = slices.Insert(batch, at, resilience.Change{Record: resilience.Record{Layer: bad}})
			if err := s.store.Apply(t.Context(), batch); err == nil {
				t.Fatalf("Apply accepted a record of layer %v", bad)
			}
			s.want(t, before)
		}
	}
}

func checkCanceled(t *testing.T, s *subject) {
	s.apply(t, put(samples()...)...)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.store.Apply(ctx, del(samples()...)); !errors.Is(err, context.Canceled) {
		t.Fatalf("Apply with a canceled context: error %v, want context.Canceled", err)
	}
	if _, err := s.store.Load(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Load with a canceled context: error %v, want context.Canceled", err)
	}
	s.want(t, samples()...)
	s.apply(t, del(samples()...)...)
	s.want(t)
}

// checkCanceledMidway ends the context at different points of a batch. Whatever Apply answers,
// the batch must be there whole or not at all, and it must be there when Apply said so.
func checkCanceledMidway(t *testing.T, s *subject) {
	all := Many(1_000)
	for looks := int64(1); looks < 1<<12; looks *= 4 {
		ctx := &endingContext{Context: context.Background()}
		ctx.left.Store(looks)
		err := s.store.Apply(ctx, put(all...))
		switch got := s.load(t); {
		case err == nil && len(got) != len(all):
			t.Fatalf("after %d looks: Apply said done and %d of %d records are there", looks, len(got), len(all))
		case err != nil && !errors.Is(err, context.Canceled):
			t.Fatalf("after %d looks: Apply failed with %v, want context.Canceled", looks, err)
		case len(got) != 0 && len(got) != len(all):
			t.Fatalf("after %d looks: half a batch is there, %d of %d records", looks, len(got), len(all))
		}
		s.apply(t, del(all...)...)
	}
}

// endingContext is canceled once it has been looked at so many times.
type endingContext struct {
	context.Context
	left atomic.Int64
}

func (c *endingContext) Err() error {
	if c.left.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

func checkReopen(t *testing.T, s *subject) {
	s.reopen(t)
	s.want(t)
	s.apply(t, put(samples()...)...)
	s.reopen(t)
	s.want(t, samples()...)
	s.apply(t, del(samples()[0])...)
	s.reopen(t)
	s.reopen(t)
	s.want(t, samples()[1:]...)
	many := Many(2_000)
	s.apply(t, put(many...)...)
	s.reopen(t)
	s.want(t, append(many, samples()[1:]...)...)
}

// Many returns n different records like those of a busy gateway, most of them lockouts.
func Many(n int) []resilience.Record {
	all := make([]resilience.Record, n)
	for i := range all {
		provider, connection := fmt.Sprintf("provider-%d", i%50), fmt.Sprintf("connection-%d", i%1000)
		switch {
		case i%100 == 0:
			all[i] = sample(resilience.LayerBreaker, provider, fmt.Sprintf("own-%d", i), "")
		case i%20 == 0:
			all[i] = sample(resilience.LayerConnection, provider, fmt.Sprintf("connection-%d", i), "")
		default:
			all[i] = sample(resilience.LayerModel, provider, connection, fmt.Sprintf("model-%d", i))
		}
		all[i].Kind = resilience.Kinds()[i%len(resilience.Kinds())]
		all[i].SinceMs += int64(i)
		all[i].UpdatedMs += int64(i)
	}
	return all
}
