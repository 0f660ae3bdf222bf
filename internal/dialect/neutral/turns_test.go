package neutral

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// TestPairedResultsFollowCalls: wherever the results of calls stand before the assistant speaks
// again, they end up directly behind the calls in their order, and nothing else changes its order or is lost.
func TestPairedResultsFollowCalls(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var turns, others []Turn
		var want []string // ids of results by the round of calls
		made := 0
		for range rapid.IntRange(1, 3).Draw(t, "rounds") {
			said := Turn{Role: RoleAssistant, Parts: Texts("I call.")}
			var results []Part
			for range rapid.IntRange(0, 3).Draw(t, "calls") {
				made++
				id := fmt.Sprint("c", made)
				said.Parts = append(said.Parts, Part{Kind: PartCall, Call: Call{ID: id}})
				if rapid.Bool().Draw(t, "answered") {
					results = append(results, Part{Kind: PartResult, Result: Result{ID: id}})
					want = append(want, id)
				}
			}
			turns, others = append(turns, said), append(others, said)
			results = rapid.Permutation(results).Draw(t, "order")
			for i := range rapid.IntRange(1, 3).Draw(t, "turns") {
				u := Turn{Role: rapid.SampledFrom([]Role{RoleUser, RoleSystem}).Draw(t, "role")}
				bare := u
				if u.Role == RoleSystem || rapid.Bool().Draw(t, "says") {
					u.Parts = Texts(fmt.Sprint("words ", i))
					bare.Parts = u.Parts
				}
				if u.Role == RoleUser {
					n := rapid.IntRange(0, len(results)).Draw(t, "here")
					u.Parts = append(u.Parts[:len(u.Parts):len(u.Parts)], results[:n]...)
					results = results[n:]
				}
				turns, others = append(turns, u), append(others, bare)
			}
			if len(results) > 0 {
				turns = append(turns, Turn{Parts: results})
			}
		}
		got := Paired(turns)
		var ids []string
		var rest []Turn
		for i, u := range got {
			bare := Turn{Role: u.Role}
			for _, p := range u.Parts {
				if p.Kind != PartResult {
					bare.Parts = append(bare.Parts, p)
					continue
				}
				ids = append(ids, p.Result.ID)
				if len(bare.Parts) > 0 {
					t.Fatalf("result %s behind words in %+v", p.Result.ID, got)
				}
				for k := i - 1; got[k].Role != RoleAssistant; k-- {
					for _, q := range got[k].Parts {
						if q.Kind != PartResult {
							t.Fatalf("words before result %s in %+v", p.Result.ID, got)
						}
					}
				}
			}
			if len(bare.Parts) > 0 {
				rest = append(rest, bare)
			}
		}
		if diff := cmp.Diff(want, ids, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("results:\n%s", diff)
		}
		var spoken []Turn
		for _, u := range others {
			if len(u.Parts) > 0 {
				spoken = append(spoken, u)
			}
		}
		if diff := cmp.Diff(spoken, rest, cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("what is said:\n%s", diff)
		}
	})
}
