package resilience

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// said is one thing that some node says of a gate: a fact, or a clearing.
func said() *rapid.Generator[View] {
	return rapid.Custom(func(t *rapid.T) View {
		v := View{KeepMs: rapid.Int64Range(0, 9).Draw(t, "keep")}
		at := Stamp(rapid.Int64Range(1, 12).Draw(t, "at"))
		if rapid.IntRange(0, 3).Draw(t, "clears") == 0 {
			v.Cleared = at
			return v
		}
		r := Record{Layer: LayerConnection, Key: Key{Provider: "p", Connection: "c"}, State: "cooling", SinceMs: 1,
			UntilMs: rapid.Int64Range(2, 9).Draw(t, "until"), Level: rapid.IntRange(0, 4).Draw(t, "level"),
			Kind: rapid.SampledFrom([]Kind{KindServerError, KindRateLimit, KindAuth, KindBilling}).Draw(t, "kind")}
		if rapid.IntRange(0, 5).Draw(t, "quarantine") == 0 {
			r.State, r.UntilMs, r.Detail = "quarantined", 0, `{"quarantined":true}`
		}
		v.Facts = []Fact{NewFact(r, at)}
		return v
	})
}

// Any order and any repetition of the same events gives the same state, however they are grouped,
// and that state is what the events say: A5.
func TestA5MergingIsFreeOfOrderAndRepetition(t *testing.T) {
	t.Parallel()
	id := RecordID{LayerConnection, Key{Provider: "p", Connection: "c"}}
	rapid.Check(t, func(t *rapid.T) {
		events := rapid.SliceOfN(said(), 1, 12).Draw(t, "events")
		var one View
		for _, e := range events {
			one = one.Join(e)
		}
		// Other nodes: shuffled, some of them twice, joined in parts.
		again := slices.Concat(events, rapid.SliceOf(rapid.SampledFrom(events)).Draw(t, "again"))
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "order"), 1))
		rng.Shuffle(len(again), func(i, j int) { again[i], again[j] = again[j], again[i] })
		parts := make([]View, rapid.IntRange(1, 4).Draw(t, "parts"))
		for _, e := range again {
			i := rng.IntN(len(parts))
			parts[i] = parts[i].Join(e)
		}
		var two View
		for _, p := range parts {
			two = two.Join(p)
		}
		if diff := cmp.Diff(one, two); diff != "" {
			t.Fatalf("another order gives another view:\n%s", diff)
		}
		if !one.Has(two) || !one.Join(one).equal(one) {
			t.Fatal("joining it with itself changes it")
		}
		checkStanding(t, id, one, events)
	})
}

// checkStanding compares with the events themselves.
func checkStanding(t *rapid.T, id RecordID, v View, events []View) {
	var cleared Stamp
	for _, e := range events {
		cleared = max(cleared, e.Cleared)
	}
	var until, gravity int64
	level, stands := 0, false
	for _, e := range events {
		for _, f := range e.Facts {
			if f.Stamp > cleared {
				stands = true
				until, level, gravity = max(until, f.UntilMs), max(level, f.Level), max(gravity, int64(f.Gravity))
			}
		}
	}
	r, ok := v.Standing(id)
	if ok != stands {
		t.Fatalf("stands is %v, want %v", ok, stands)
	}
	if !ok {
		return
	}
	f := NewFact(r, 0)
	if f.UntilMs != until || f.Level != level || int64(f.Gravity) != gravity {
		t.Fatalf("it says %+v; the events say until %d, level %d, gravity %d", r, until, level, gravity)
	}
}

// What another version wrote is passed on as it is.
func TestRecordsOfAnotherVersion(t *testing.T) {
	t.Parallel()
	id := RecordID{LayerConnection, Key{Provider: "p", Connection: "c"}}
	text := `{"state":"cooling","kind":"of_tomorrow","since_ms":1,"until_ms":9,"level":2,"mood":{"new":[1]},"detail":"{\"rule\":\"x\",\"later\":1}"}`
	v := View{}.Join(View{Facts: []Fact{{Stamp: 5, UntilMs: 9, Level: 2, Text: text}}})
	if v.Facts[0].Text != text {
		t.Errorf("changed on its way: %s", v.Facts[0].Text)
	}
	r, ok := v.Standing(id)
	if !ok || r.Kind != KindUnknown || r.UntilMs != 9 || r.Level != 2 {
		t.Errorf("%+v", r)
	}
	if _, ok := (View{Facts: []Fact{{Stamp: 5, Text: "no JSON"}}}).Standing(id); ok {
		t.Error("what nobody can read stands")
	}
}
