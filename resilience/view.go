package resilience

import (
	"cmp"
	"math"
	"slices"
	"strings"
)

// Stamp dates what nodes say of a gate: unix microseconds of the shared store's clock.
type Stamp int64

// Always is the end of what has none, in unix milliseconds.
const Always = math.MaxInt64

// Fact is one state of a gate that some node has seen. The numbers are what it weighs when facts
// are joined; Text is the whole of it (EncodeRecord), which a store need not understand.
type Fact struct {
	Stamp   Stamp
	UntilMs int64 // the exclusion's end, Always for none
	Level   int
	Gravity int
	Text    string
}

// View is all that is known of one gate: the facts that stand, and when the gate was last cleared.
// What is dated at or before Cleared counts no more, whenever it is heard of: an old failure cannot
// come back, and a clearing cannot wipe out a newer failure.
//
// Views are a semilattice under Join: joining them in any order, and some of them twice, gives the
// same. The zero View knows nothing.
type View struct {
	Cleared Stamp
	KeepMs  int64  // until when any of it matters
	Facts   []Fact // oldest first; none that another one outweighs
}

// Join returns what both views say together. Neither is changed.
func (v View) Join(o View) View {
	out := View{Cleared: max(v.Cleared, o.Cleared), KeepMs: max(v.KeepMs, o.KeepMs)}
	all := slices.DeleteFunc(slices.Concat(v.Facts, o.Facts), func(f Fact) bool { return f.Stamp <= out.Cleared })
	slices.SortFunc(all, Fact.compare)
	all = slices.Compact(all)
	for i, f := range all {
		if !slices.ContainsFunc(all[i+1:], f.outweighed) {
			out.Facts = append(out.Facts, f)
		}
	}
	return out
}

// compare orders facts so that one can only be outweighed by a later one.
func (f Fact) compare(o Fact) int {
	return cmp.Or(cmp.Compare(f.Stamp, o.Stamp), cmp.Compare(f.UntilMs, o.UntilMs), cmp.Compare(f.Level, o.Level),
		cmp.Compare(f.Gravity, o.Gravity), strings.Compare(f.Text, o.Text))
}

// outweighed reports whether a later fact (by compare) leaves nothing of this one: law A5.
func (f Fact) outweighed(by Fact) bool {
	return f.UntilMs <= by.UntilMs && f.Level <= by.Level && f.Gravity <= by.Gravity
}

// Has reports whether joining o would add nothing.
func (v View) Has(o View) bool { return v.equal(v.Join(o)) }

func (v View) equal(o View) bool {
	return v.Cleared == o.Cleared && v.KeepMs == o.KeepMs && slices.Equal(v.Facts, o.Facts)
}

// latest is the date of the last thing that the view knows.
func (v View) latest() Stamp {
	if n := len(v.Facts); n > 0 {
		return v.Facts[n-1].Stamp
	}
	return v.Cleared
}

// Standing is what the facts say together: the newest of them, with the latest end, the highest
// level and the gravest cause of all. false where nothing stands.
func (v View) Standing(id RecordID) (Record, bool) {
	if len(v.Facts) == 0 {
		return Record{}, false
	}
	newest := v.Facts[len(v.Facts)-1]
	r, err := DecodeRecord(id, newest.Text)
	if err != nil {
		return Record{}, false
	}
	gravest, longest := newest, newest
	for _, f := range v.Facts {
		r.Level = max(r.Level, f.Level)
		if f.Gravity > gravest.Gravity {
			gravest = f
		}
		if f.UntilMs > longest.UntilMs {
			longest = f
		}
	}
	if gravest != newest {
		if g, err := DecodeRecord(id, gravest.Text); err == nil {
			r.Kind, r.State, r.Detail = g.Kind, g.State, withCause(r.Detail, g.Detail)
		}
	}
	if longest != newest {
		r.UntilMs = longest.UntilMs
		if longest.UntilMs == Always {
			r.UntilMs = 0
		}
	}
	return r, true
}

// NewFact returns the fact that a record states.
func NewFact(r Record, at Stamp) Fact {
	d, _ := parseDetail(r.Detail)
	return weigh(r, d, at)
}

// weigh returns the fact that a record states.
func weigh(r Record, d detail, at Stamp) Fact {
	f := Fact{Stamp: at, UntilMs: r.UntilMs, Level: r.Level, Gravity: r.Kind.gravity(), Text: EncodeRecord(r)}
	switch {
	case d.Quarantined:
		f.UntilMs, f.Gravity = Always, quarantineGravity
	case r.Layer == LayerOperator:
		f.Gravity = 0
		if r.UntilMs == 0 {
			f.UntilMs = Always
		}
	case r.SinceMs == 0 && r.UntilMs == 0:
		f.Gravity = 0 // a level alone excludes nobody
	}
	return f
}
