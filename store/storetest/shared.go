package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/resilience"
)

// Fleet is a shared medium: it returns the way of a node to it.
type Fleet func(node string) resilience.Shared

// RunShared checks what engines rely on that share a store. It calls fresh for a new, empty medium
// for each check.
func RunShared(t *testing.T, fresh func(t testing.TB) Fleet) {
	t.Helper()
	for _, c := range sharedCases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.check(t, fresh(t))
		})
	}
	t.Run("joins as views do", func(t *testing.T) {
		t.Parallel()
		checkJoins(t, fresh)
	})
}

var sharedCases = []struct {
	name  string
	check func(t *testing.T, f Fleet)
}{
	{"a beat tells clock, life and nodes", checkBeat},
	{"changes are read from a revision on", checkChanges},
	{"news come in order", checkNews},
	{"a lease is one node's", checkLease},
	{"a lease ends by itself", checkLeaseEnds},
	{"leases are given all or none", checkAllOrNone},
	{"a lease that was lost is made again", checkKeep},
	{"a lease of which its node does not know is given back", checkDisown},
	{"a lease that was given back is not kept", checkKeepLate},
	{"an old token is ignored", checkFence},
}

const aLongTime = time.Hour

// must returns a helper that fails the test on an error.
func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func gate(name string) resilience.RecordID {
	return resilience.RecordID{Layer: resilience.LayerConnection, Key: resilience.Key{Provider: "p", Connection: name}}
}

// fact is a view with one fact, or with a clearing alone.
func fact(stamp, until int64, level int) resilience.View {
	v := resilience.View{KeepMs: time.Now().Add(aLongTime).UnixMilli()}
	if until == 0 {
		v.Cleared = resilience.Stamp(stamp)
		return v
	}
	r := resilience.Record{Layer: resilience.LayerConnection, State: "cooling", Kind: resilience.KindRateLimit, SinceMs: 1, UntilMs: until, Level: level}
	v.Facts = []resilience.Fact{resilience.NewFact(r, resilience.Stamp(stamp))}
	return v
}

func contributed(name string, v resilience.View) resilience.Contributed {
	return resilience.Contributed{Known: resilience.Known{Gate: gate(name), View: v}}
}

func checkBeat(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	beat := must[resilience.Pulse](t)
	p := beat(one.Beat(t.Context(), resilience.Beat{Nodes: 10}))
	if one.Node() != "one" || p.Life == "" || p.Count != 1 || time.Since(p.Now).Abs() > time.Minute {
		t.Errorf("%s: %+v", one.Node(), p)
	}
	p = beat(two.Beat(t.Context(), resilience.Beat{Nodes: 10}))
	var names []string
	for _, n := range p.Nodes {
		names = append(names, n.Node)
		if n.Seen.After(p.Now) || p.Now.Sub(n.Seen) > time.Minute {
			t.Errorf("seen at %v, now it is %v", n.Seen, p.Now)
		}
	}
	slices.Sort(names)
	if diff := cmp.Diff([]string{"one", "two"}, names); diff != "" || p.Count != 2 {
		t.Errorf("%d nodes: %s", p.Count, diff)
	}
	if p = beat(two.Beat(t.Context(), resilience.Beat{})); p.Nodes != nil || p.Count != 2 {
		t.Errorf("listed unasked: %+v", p)
	}
	must[resilience.Merged](t)(one.Merge(t.Context(), resilience.Contribution{Leave: true}))
	if p = beat(two.Beat(t.Context(), resilience.Beat{Nodes: 10})); p.Count != 1 || len(p.Nodes) != 1 {
		t.Errorf("a node that left is still there: %+v", p)
	}
}

func checkChanges(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	read := must[resilience.Changes](t)
	first := read(two.Changes(t.Context(), 0))
	if len(first.Gates) != 0 || first.More {
		t.Fatalf("not empty: %+v", first)
	}
	const many = 1300
	var c resilience.Contribution
	for i := range many {
		c.Gates = append(c.Gates, contributed(fmt.Sprint(i), fact(5, 10, 1)))
	}
	m := must[resilience.Merged](t)(one.Merge(t.Context(), c))
	got := map[resilience.RecordID]resilience.View{}
	at, pages := int64(0), 0
	for more := true; more; pages++ {
		page := read(two.Changes(t.Context(), at))
		if page.Life != m.Life || page.Revision < at {
			t.Fatalf("life %q after %q, revision %d after %d", page.Life, m.Life, page.Revision, at)
		}
		for _, k := range page.Gates {
			got[k.Gate] = k.View
		}
		at, more = page.Revision, page.More
	}
	if len(got) != many || pages < 2 {
		t.Errorf("%d gates on %d pages", len(got), pages)
	}
	if p := must[resilience.Pulse](t)(two.Beat(t.Context(), resilience.Beat{})); p.Revision != at || p.Life != m.Life {
		t.Errorf("the beat says %+v, the last page was at %d", p, at)
	}
	must[resilience.Merged](t)(one.Merge(t.Context(), c)) // says nothing new
	must[resilience.Merged](t)(one.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{contributed("7", fact(6, 11, 1))}}))
	page := read(two.Changes(t.Context(), at))
	if len(page.Gates) != 1 || page.Gates[0].Gate != gate("7") || page.Revision != at+1 || page.More {
		t.Errorf("after one change: %+v", page)
	}
}

// listen hears a node's news in a channel until the test ends.
func listen(t *testing.T, s resilience.Shared) <-chan resilience.News {
	t.Helper()
	news := make(chan resilience.News, 100)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Listen(ctx, func(n resilience.News) { news <- n })
	}()
	t.Cleanup(func() { cancel(); <-done })
	if n := next(t, news); n.Life != "" || len(n.Gates) != 0 {
		t.Fatalf("the first news is %+v", n)
	}
	return news
}

func next(t *testing.T, news <-chan resilience.News) resilience.News {
	t.Helper()
	select {
	case n := <-news:
		return n
	case <-time.After(time.Minute):
		t.Fatal("no news")
		panic("unreachable")
	}
}

func checkNews(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	news := listen(t, two)
	at := int64(0)
	for i := range 20 {
		v := fact(int64(i+1), 10, i)
		m := must[resilience.Merged](t)(one.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{contributed("a", v), contributed("b", v)}}))
		n := next(t, news)
		if n.Life != m.Life || n.From != at || n.To != at+2 || len(n.Gates) != 2 || !n.Gates[0].View.Has(v) {
			t.Fatalf("news %d: %+v", i, n)
		}
		at = n.To
	}
	g := must[resilience.Grant](t)(one.Lease(t.Context(), []resilience.RecordID{gate("a")}, aLongTime))
	if n := next(t, news); !slices.Equal(n.Taken, []resilience.RecordID{gate("a")}) || n.From != n.To {
		t.Errorf("taken: %+v", n)
	}
	must[resilience.Grant](t)(two.Lease(t.Context(), []resilience.RecordID{gate("a"), gate("b")}, aLongTime))
	if n := next(t, news); !slices.Equal(n.Wanted, []resilience.RecordID{gate("a")}) || n.From != n.To {
		t.Errorf("wanted: %+v", n)
	}
	must[resilience.Merged](t)(one.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: g.Token}}}))
	if n := next(t, news); !slices.Equal(n.Freed, []resilience.RecordID{gate("a")}) || n.From != n.To {
		t.Errorf("freed: %+v", n)
	}
}

func checkLease(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	lease, merge := must[resilience.Grant](t), must[resilience.Merged](t)
	a := []resilience.RecordID{gate("a")}
	first := lease(one.Lease(t.Context(), a, aLongTime))
	if first.Token == 0 {
		t.Fatalf("refused: %+v", first)
	}
	if g := lease(two.Lease(t.Context(), a, aLongTime)); g.Token != 0 || g.Wait <= 0 || g.Wait > aLongTime {
		t.Errorf("two owners: %+v", g)
	}
	merge(two.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: first.Token - 1}}}))
	if g := lease(two.Lease(t.Context(), a, aLongTime)); g.Token != 0 {
		t.Error("an old token has freed it")
	}
	again := lease(one.Lease(t.Context(), a, aLongTime))
	if again.Token <= first.Token {
		t.Errorf("prolonged with token %d after %d", again.Token, first.Token)
	}
	for range 2 { // once more is harmless
		merge(one.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: again.Token}}}))
	}
	g := lease(two.Lease(t.Context(), a, aLongTime))
	if g.Token <= again.Token {
		t.Errorf("token %d after %d", g.Token, again.Token)
	}
	merge(one.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: again.Token}}}))
	if g := lease(one.Lease(t.Context(), a, aLongTime)); g.Token != 0 {
		t.Error("the owner of before has freed it")
	}
}

func checkLeaseEnds(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	a := []resilience.RecordID{gate("a")}
	const d = 50 * time.Millisecond
	asked := time.Now()
	first := must[resilience.Grant](t)(one.Lease(t.Context(), a, d))
	for end := asked.Add(time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		g := must[resilience.Grant](t)(two.Lease(t.Context(), a, d))
		if g.Token == 0 {
			continue
		}
		// A moment is left for the clock of a server, which may be counted in whole milliseconds.
		if took := time.Since(asked); took < d-time.Millisecond || g.Token <= first.Token {
			t.Errorf("given again after %v with token %d after %d", took, g.Token, first.Token)
		}
		return
	}
	t.Error("it never ends")
}

func checkAllOrNone(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	lease := must[resilience.Grant](t)
	if g := lease(one.Lease(t.Context(), []resilience.RecordID{gate("b")}, aLongTime)); g.Token == 0 {
		t.Fatal("refused")
	}
	if g := lease(two.Lease(t.Context(), []resilience.RecordID{gate("a"), gate("b"), gate("c")}, aLongTime)); g.Token != 0 {
		t.Fatal("two owners")
	}
	if g := lease(one.Lease(t.Context(), []resilience.RecordID{gate("a"), gate("b"), gate("c")}, aLongTime)); g.Token == 0 {
		t.Error("a refusal has taken some of them")
	}
}

func checkKeep(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	lease, beat := must[resilience.Grant](t), must[resilience.Pulse](t)
	a := []resilience.RecordID{gate("a")}
	// A token of a life before: the store does not know it.
	if p := beat(one.Beat(t.Context(), resilience.Beat{Keep: []resilience.Held{{Gate: gate("a"), Token: 7, For: aLongTime}}})); len(p.Lost) != 0 {
		t.Fatalf("lost: %+v", p)
	}
	if g := lease(two.Lease(t.Context(), a, aLongTime)); g.Token != 0 {
		t.Fatal("two owners")
	}
	must[resilience.Merged](t)(one.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: 7}}}))
	if g := lease(two.Lease(t.Context(), a, aLongTime)); g.Token <= 7 {
		t.Fatalf("%+v", g)
	}
	p := beat(one.Beat(t.Context(), resilience.Beat{Keep: []resilience.Held{{Gate: gate("a"), Token: 7, For: aLongTime}}}))
	if !slices.Equal(p.Lost, a) {
		t.Errorf("kept what is another's: %+v", p)
	}
}

func checkFence(t *testing.T, f Fleet) {
	one, two := f("one"), f("two")
	lease, merge := must[resilience.Grant](t), must[resilience.Merged](t)
	a := []resilience.RecordID{gate("a")}
	merge(one.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{contributed("a", fact(5, 100, 3))}}))
	old := lease(one.Lease(t.Context(), a, aLongTime))
	merge(one.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: old.Token}}}))
	now := lease(two.Lease(t.Context(), a, aLongTime))

	late := contributed("a", fact(9, 0, 0))
	late.Token = old.Token
	m := merge(one.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{late, contributed("b", fact(9, 50, 1))}}))
	if len(m.Fenced) != 1 || m.Fenced[0].Gate != gate("a") || len(m.Fenced[0].View.Facts) != 1 {
		t.Errorf("fenced: %+v", m.Fenced)
	}
	ofOwner := contributed("a", fact(8, 200, 4))
	ofOwner.Token = now.Token
	m = merge(two.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{ofOwner}}))
	if len(m.Fenced) != 0 {
		t.Errorf("the owner was fenced: %+v", m.Fenced)
	}
	merge(two.Merge(t.Context(), resilience.Contribution{Free: []resilience.Held{{Gate: gate("a"), Token: now.Token}}}))
	m = merge(one.Merge(t.Context(), resilience.Contribution{Gates: []resilience.Contributed{late}}))
	if len(m.Fenced) != 1 {
		t.Error("an old token counts again when the newer lease was given back")
	}
	got := must[[]resilience.Record](t)(one.Load(t.Context()))
	if len(got) != 2 {
		t.Errorf("%+v", got)
	}
}

// checkJoins compares what a medium makes of views with what View.Join does.
func checkJoins(t *testing.T, fresh func(t testing.TB) Fleet) {
	f := fresh(t)
	nodes := []resilience.Shared{f("one"), f("two")}
	model := map[resilience.RecordID]resilience.View{}
	rapid.Check(t, func(rt *rapid.T) {
		for range rapid.IntRange(1, 6).Draw(rt, "merges") {
			var c resilience.Contribution
			for range rapid.IntRange(1, 4).Draw(rt, "gates") {
				v := fact(rapid.Int64Range(1, 40).Draw(rt, "stamp"), rapid.Int64Range(0, 9).Draw(rt, "until"), rapid.IntRange(0, 3).Draw(rt, "level"))
				g := contributed(rapid.SampledFrom([]string{"a", "b", "ü/%"}).Draw(rt, "gate"), v)
				c.Gates = append(c.Gates, g)
				model[g.Gate] = model[g.Gate].Join(v)
			}
			if _, err := nodes[rapid.IntRange(0, 1).Draw(rt, "node")].Merge(context.Background(), c); err != nil {
				rt.Fatal(err)
			}
		}
		got := map[resilience.RecordID]resilience.View{}
		page, err := nodes[0].Changes(context.Background(), 0)
		if err != nil {
			rt.Fatal(err)
		}
		for _, k := range page.Gates {
			got[k.Gate] = k.View
		}
		if diff := cmp.Diff(model, got); diff != "" {
			rt.Fatalf("the views differ (-want +got):\n%s", diff)
		}
	})
}
