package route

import (
	"math"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

var nan = math.NaN()

func candidates(weights []uint32, values ...float64) []candidate {
	var cs []candidate
	for i, w := range weights {
		c := candidate{kid: int32(i), weight: w, value: nan}
		if i < len(values) {
			c.value = values[i]
		}
		cs = append(cs, c)
	}
	return cs
}

// shares lets a strategy choose n times and counts who was chosen.
func shares(choose chooser, n int, with func(i int) []candidate) []int {
	counts := make([]int, 8)
	for i := range n {
		cs := with(i)
		counts[choose(cs, &draw{uint64(i), newRandom(7, 1, uint64(i))})]++
	}
	return counts
}

const picks = 100_000

// TestWeights: over 100,000 picks every share is within 1% of its weight's.
func TestWeights(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		choose  chooser
		weights []uint32
		shares  []float64
		within  float64
	}{
		{"weighted", weighted, []uint32{1, 2, 7}, []float64{.1, .2, .7}, .01},
		{"a very light one", weighted, []uint32{5, 995}, []float64{.005, .995}, .001},
		{"random knows no weights", anyOne, []uint32{1, 2, 7}, []float64{1. / 3, 1. / 3, 1. / 3}, .01},
		{"round-robin is exact", roundRobin, []uint32{1, 2, 7}, []float64{.1, .2, .7}, 0},
		{"round-robin with common weights", roundRobin, []uint32{50, 50}, []float64{.5, .5}, 0},
		{"idle ones take turns", leastBusy, []uint32{1, 3}, []float64{.25, .75}, 0},
		{"nothing known of rate limits: turns", mostHeadroom, []uint32{1, 1, 1, 1}, []float64{.25, .25, .25, .25}, 0},
		{"no prices: turns", cheapest, []uint32{1, 1}, []float64{.5, .5}, 0},
		{"no times known: by chance", fastest, []uint32{1, 1, 1, 1}, []float64{.25, .25, .25, .25}, .01},
	} {
		got := shares(c.choose, picks, func(int) []candidate {
			var values []float64
			if c.name == "idle ones take turns" {
				values = []float64{0, 0}
			}
			return candidates(c.weights, values...)
		})
		for i, n := range got[:len(c.weights)] {
			if share := float64(n) / picks; math.Abs(share-c.shares[i]) > c.within {
				t.Errorf("%s: %d got %.4f, want %.4f", c.name, i, share, c.shares[i])
			}
		}
	}
}

// TestTurnsOfOneThatIsOut: its share goes to all others alike, and not to its neighbour alone.
func TestTurnsOfOneThatIsOut(t *testing.T) {
	t.Parallel()
	got := shares(roundRobin, 120, func(int) []candidate {
		return slices.DeleteFunc(candidates([]uint32{1, 1, 1, 1}), func(c candidate) bool { return c.kid == 1 })
	})
	if diff := cmp.Diff([]int{40, 0, 40, 40}, got[:4]); diff != "" {
		t.Error(diff)
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	ones := []uint32{1, 1, 1}
	for _, c := range []struct {
		name   string
		choose chooser
		cs     []candidate
		want   int32
	}{
		{"the fewest in flight", leastBusy, candidates(ones, 3, 1, 2), 1},
		{"in flight for its weight", leastBusy, candidates([]uint32{1, 1, 4}, 3, 2, 6), 2},
		{"the most left", mostHeadroom, candidates(ones, .9, .5, .1), 2},
		{"unknown counts as the median", mostHeadroom, candidates([]uint32{1, 1, 1, 1}, .9, .5, nan, .1), 3},
		{"what fails has no room", mostHeadroom, []candidate{{kid: 0, weight: 1, value: .5}, {kid: 1, weight: 1, value: nan, failures: 9}}, 0},
		{"the cheapest", cheapest, candidates(ones, 3, nan, 1), 2},
		{"no price comes last", cheapest, candidates(ones, nan, nan, 100), 2},
		{"the faster of two", fastest, candidates([]uint32{1, 1}, .9, .5), 1},
		{"failing is not fast", fastest, []candidate{{kid: 0, weight: 1, value: 1}, {kid: 1, weight: 1, value: .5, failures: 2}}, 0},
		{"failing at once and nothing else is not fast", fastest, []candidate{{kid: 0, weight: 1, value: 1}, {kid: 1, weight: 1, value: nan, failures: 1}}, 0},
		{"a new one is worth a look", fastest, candidates([]uint32{1, 1}, 1, nan), 1},
		{"a slow one not heard of for long is looked at", fastest, []candidate{{kid: 0, weight: 1, value: 1}, {kid: 1, weight: 1, value: 10, stale: true}}, 1},
	} {
		for turn := range uint64(50) {
			if got := c.choose(slices.Clone(c.cs), &draw{turn, newRandom(3, 2, turn)}); got != c.want {
				t.Errorf("%s: turn %d took %d, want %d", c.name, turn, got, c.want)
				break
			}
		}
	}
}

// TestStandsByItsBest: a node among candidates is as good as the best below it, and one that fails there hides no other.
func TestStandsByItsBest(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name          string
		better, worse candidate
	}{
		{"faster", candidate{value: 1}, candidate{value: 2}},
		{"failing is not fast", candidate{value: 2}, candidate{value: 1.5, failures: 1}},
		{"known", candidate{value: 9}, candidate{value: nan}},
		{"nothing is known, and one fails", candidate{value: nan}, candidate{value: nan, failures: 3}},
		{"nothing is used up, and one fails", candidate{value: roomless(0, 0)}, candidate{value: roomless(0, 3)}},
	} {
		if !c.better.better(&c.worse) || c.worse.better(&c.better) {
			t.Errorf("%s: the worse one stands for the node", c.name)
		}
	}
}

// TestEveryStrategyChoosesOne: whatever is known, a strategy returns one of the candidates, and the
// same one for the same draw.
func TestEveryStrategyChoosesOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		cs := make([]candidate, rapid.IntRange(1, 200).Draw(t, "count"))
		for i := range cs {
			cs[i] = candidate{
				kid: int32(i * 3), weight: uint32(rapid.IntRange(1, 1000).Draw(t, "weight")),
				value:    rapid.SampledFrom([]float64{nan, 0, .5, 1, 1e12}).Draw(t, "value"),
				failures: rapid.SampledFrom([]float64{0, 0, .3, 40}).Draw(t, "failures"), stale: rapid.Bool().Draw(t, "stale"),
			}
		}
		d := draw{rapid.Uint64().Draw(t, "turn"), random{rapid.Uint64().Draw(t, "state")}}
		for way, choose := range choosers {
			d1, d2 := d, d
			one, two := choose(slices.Clone(cs), &d1), choose(slices.Clone(cs), &d2)
			if one != two || one%3 != 0 || int(one/3) >= len(cs) {
				t.Fatalf("%s chose %d, then %d", way, one, two)
			}
		}
	})
}

// TestTurnsAtOnce: 300 requests of 50 callers at once are shared evenly, within one.
func TestTurnsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRouter(t, world+`
  three:
    strategy: round-robin
    targets: [{target: acme/large, connection: k1}, {target: acme/large, connection: k2}, beta/large]
`)
	route := resolve(t, r, "three")
	var mu sync.Mutex
	counts := make([]int, 3)
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 7 {
				first := take(route)[0]
				mu.Lock()
				counts[first]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if slices.Max(counts)-slices.Min(counts) > 1 {
		t.Errorf("%v", counts)
	}
}
