package route

import (
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func rotate(weights [][]int, entryWeights []int, shuffle bool) *rotation {
	var entries []entry
	next := 0
	for i, ws := range weights {
		e := entry{weight: entryWeights[i], shares: newShares(ws)}
		for range ws {
			e.targets = append(e.targets, next)
			next++
		}
		entries = append(entries, e)
	}
	return newRotation(entries, shuffle, new(atomic.Uint64))
}

func TestOrders(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		entries [][]int
		weights []int
		shuffle bool
		want    []string
	}{
		{"two siblings", [][]int{{1, 1}}, []int{1}, false, []string{"[0 1]", "[1 0]", "[0 1]"}},
		{"three siblings", [][]int{{1, 1, 1}}, []int{1}, false,
			[]string{"[0 1 2]", "[1 0 2]", "[2 0 1]", "[0 2 1]", "[1 2 0]", "[2 1 0]", "[0 1 2]"}},
		{"same weights are no weights", [][]int{{50, 50}}, []int{1}, false, []string{"[0 1]", "[1 0]", "[0 1]"}},
		{"a heavy sibling is spread", [][]int{{5, 1, 1}}, []int{1}, false,
			[]string{"[0 1 2]", "[0 1 2]", "[0 1 2]", "[1 0 2]", "[0 1 2]", "[2 0 1]", "[0 1 2]"}},
		{"the entries of a priority combo stay", [][]int{{1, 1}, {1}, {1, 1}}, []int{1, 1, 1}, false,
			[]string{"[0 1 2 3 4]", "[1 0 2 4 3]", "[0 1 2 3 4]"}},
		{"a ring's siblings rotate with each visit", [][]int{{1, 1}, {1, 1}}, []int{1, 1}, true,
			[]string{"[0 1 2 3]", "[2 3 0 1]", "[1 0 3 2]", "[3 2 1 0]", "[0 1 2 3]"}},
	} {
		r := rotate(c.entries, c.weights, c.shuffle)
		var got []string
		for n := range c.want {
			got = append(got, fmt.Sprint(r.at(uint64(n))))
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", c.name, diff)
		}
	}
	for name, r := range map[string]*rotation{
		"one target":             rotate([][]int{{1}}, []int{1}, true),
		"single entries in line": rotate([][]int{{1}, {7}}, []int{1, 2}, false),
		"nothing":                rotate(nil, nil, true),
	} {
		if r != nil {
			t.Errorf("%s: nothing takes turns there", name)
		}
	}
}

// TestShares checks on any combo that every order has every target once, that siblings stay
// together, that each entry is first as often as its weight says within a round, and that the
// siblings of an entry share its first places by their weights.
func TestShares(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		entries := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(1, 4), 1, 4), 1, 6).Draw(t, "entries")
		weights := rapid.SliceOfN(rapid.IntRange(1, 5), len(entries), len(entries)).Draw(t, "weights")
		shuffle := rapid.Bool().Draw(t, "shuffle")
		r := rotate(entries, weights, shuffle)
		if r == nil {
			t.Skip("nothing takes turns")
		}
		entryOf := make([]int, 0, r.size)
		weightOf := make([]int, 0, r.size)
		for i, ws := range entries {
			for _, w := range ws {
				entryOf = append(entryOf, i)
				weightOf = append(weightOf, w)
			}
		}
		// A round in which everything divides.
		round := 1
		for _, ws := range entries {
			round *= sum(ws)
		}
		if round *= sum(weights); round > 5_000 {
			t.Skip("too long")
		}
		first := make([]int, r.size)
		for n := range round {
			order := r.at(uint64(n))
			sorted := slices.Sorted(slices.Values(order))
			for i, v := range sorted {
				if i != v || len(order) != r.size {
					t.Fatalf("turn %d is no order of %d targets: %v", n, r.size, order)
				}
			}
			var seen []int
			for _, i := range order {
				if e := entryOf[i]; len(seen) == 0 || seen[len(seen)-1] != e {
					if slices.Contains(seen, e) {
						t.Fatalf("turn %d tears siblings apart: %v", n, order)
					}
					seen = append(seen, e)
				}
			}
			if !r.shuffle && !slices.IsSorted(seen) {
				t.Fatalf("turn %d changes the order of entries: %v", n, order)
			}
			first[order[0]]++
		}
		for i, n := range first {
			e := entryOf[i]
			want := 0
			switch {
			case r.shuffle:
				want = round * weights[e] / sum(weights) * weightOf[i] / sum(entries[e])
			case e == 0:
				want = round * weightOf[i] / sum(entries[e])
			}
			if n != want {
				t.Fatalf("target %d is first %d times of %d, want %d", i, n, round, want)
			}
		}
	})
}

// TestShareOfOneThatIsOut shows that what the first would have got is shared by all others.
func TestShareOfOneThatIsOut(t *testing.T) {
	t.Parallel()
	r := rotate([][]int{{1, 1, 1, 1}}, []int{1}, false)
	next := make([]int, 4)
	for n := range 120 {
		order := r.at(uint64(n))
		next[slices.DeleteFunc(order, func(i int) bool { return i == 1 })[0]]++
	}
	if diff := cmp.Diff([]int{40, 0, 40, 40}, next); diff != "" {
		t.Error(diff)
	}
}

func sum(ws []int) int {
	n := 0
	for _, w := range ws {
		n += w
	}
	return n
}

func BenchmarkOrder(b *testing.B) {
	for _, size := range []int{2, 100, 2000} {
		weights := make([]int, size)
		entries := make([][]int, size)
		for i := range entries {
			weights[i], entries[i] = 1+i%3, []int{1}
		}
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			r := rotate(entries, weights, true)
			b.ReportAllocs()
			n := uint64(0)
			for b.Loop() {
				r.at(n)
				n++
			}
		})
	}
}
