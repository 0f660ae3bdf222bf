package storetest

import (
	"slices"
	"testing"

	"omniroute/resilience"
)

// A node that was given a lease without being told frees it without its token, and nobody else's.
func checkDisown(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	lease, merge := must[resilience.Grant](t), must[resilience.Merged](t)
	a := []resilience.RecordID{gate("a")}
	whatever := resilience.Contribution{Free: []resilience.Held{{Gate: gate("a")}}}
	merge(one.Merge(t.Context(), whatever)) // there is none: no harm
	first := lease(one.Lease(t.Context(), a, aLongTime))
	merge(two.Merge(t.Context(), whatever))
	if g := lease(two.Lease(t.Context(), a, aLongTime)); g.Token != 0 {
		t.Fatal("another node has freed it")
	}
	merge(one.Merge(t.Context(), whatever))
	second := lease(two.Lease(t.Context(), a, aLongTime))
	if second.Token <= first.Token {
		t.Fatalf("%+v after %+v: it was not freed", second, first)
	}
	merge(one.Merge(t.Context(), whatever))
	if g := lease(one.Lease(t.Context(), a, aLongTime)); g.Token != 0 {
		t.Error("the owner of before has freed it")
	}
}

// A beat that was overtaken by the end of a lease does not bring it back.
func checkKeepLate(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	a := []resilience.RecordID{gate("a")}
	g := must[resilience.Grant](t)(one.Lease(t.Context(), a, aLongTime))
	held := []resilience.Held{{Gate: gate("a"), Token: g.Token, For: aLongTime}}
	must[resilience.Merged](t)(one.Merge(t.Context(), resilience.Contribution{Free: held}))
	if p := must[resilience.Pulse](t)(one.Beat(t.Context(), resilience.Beat{Keep: held})); !slices.Equal(p.Lost, a) {
		t.Errorf("kept what was given back: %+v", p)
	}
	if g := must[resilience.Grant](t)(two.Lease(t.Context(), a, aLongTime)); g.Token == 0 {
		t.Errorf("nobody has it, and yet: %+v", g)
	}
}
