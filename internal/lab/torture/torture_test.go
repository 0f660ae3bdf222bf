package torture

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

var (
	seeds = flag.Uint64("seeds", 0, "how many worlds; 0 for the short run")
	from  = flag.Uint64("from", 0, "the first seed")
	brief = flag.Bool("brief", false, "say only which seed breaks which law")
	one   = flag.Uint64("seed", 0, "play this world alone and tell it")
)

// shortRun is how many worlds every test pass plays.
const shortRun = 10_000

// TestTorture plays the short run: see the package's word on its budget.
func TestTorture(t *testing.T) {
	t.Parallel()
	if *one > 0 {
		play(t, *one)
		return
	}
	count := uint64(shortRun)
	if raceEnabled {
		count = 1000
	}
	if *seeds > 0 {
		count = *seeds
	}
	if bad, found := firstBroken(*from+1, count); found {
		if *brief {
			_, law := newPlot(bad).run(false)
			t.Fatalf("seed %d breaks a law: %s", bad, law.law)
		}
		play(t, bad)
		t.Logf("to see it again: go test ./internal/lab/torture -run 'TestTorture$' -seed %d", bad)
	}
}

// firstBroken plays worlds and returns the smallest seed that breaks a law.
func firstBroken(first, count uint64) (seed uint64, found bool) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	next, end := first, first+count
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for {
				mu.Lock()
				s := next
				if s >= end || found {
					mu.Unlock()
					return
				}
				next++
				mu.Unlock()
				if _, bad := newPlot(s).run(false); bad != nil {
					mu.Lock()
					if !found || s < seed {
						seed, found = s, true
					}
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	return seed, found
}

// play plays one world and, where it breaks a law, tells the smallest story that does.
func play(t *testing.T, seed uint64) {
	t.Helper()
	p := newPlot(seed)
	w, bad := p.run(true)
	if bad == nil {
		t.Logf("seed %d breaks no law:\n%s", seed, strings.Join(w.told, "\n"))
		return
	}
	p, bad = p.shrink(bad)
	w, _ = p.run(true)
	t.Error(story(p, w, bad))
}

// story tells a broken world in words.
func story(p *plot, w *world, bad *broken) string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d breaks a law: %s\n\n%s\n\nthe configuration:\n%s\n", p.seed, bad.law, bad.what, indent(p.setup.variants[0].text))
	if slices.ContainsFunc(p.steps, func(s step) bool { return s.what == reload || s.what == crash || s.what == discord }) {
		for i, v := range p.setup.variants[1:] {
			fmt.Fprintf(&b, "configuration %d:\n%s\n", i+1, indent(v.text))
		}
	}
	b.WriteString("the story:\n")
	for i, line := range w.told {
		fmt.Fprintf(&b, "%4d %s\n", i+1, line)
	}
	b.WriteString("what was known before the last step:\n")
	for _, n := range w.nodes {
		for _, line := range n.state() {
			fmt.Fprintf(&b, "     %s\n", line)
		}
	}
	return b.String()
}

func indent(s string) string {
	return "     " + strings.ReplaceAll(strings.TrimSpace(s), "\n", "\n     ")
}
