package torture

import (
	"slices"
	"strings"
	"testing"

	"omniroute/resilience"
)

// A seed always does the same, or no story could be told again.
func TestASeedAlwaysDoesTheSame(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		first, _ := newPlot(seed).run(true)
		second, _ := newPlot(seed).run(true)
		if !slices.Equal(first.told, second.told) {
			for i := range first.told {
				if i >= len(second.told) || first.told[i] != second.told[i] {
					t.Fatalf("seed %d: line %d is once\n%s\nand then\n%s", seed, i, first.told[i], strings.Join(second.told[i:min(i+1, len(second.told))], ""))
				}
			}
			t.Fatalf("seed %d: the second run goes on", seed)
		}
	}
}

// A world that breaks a law is told by no more than what breaks it.
func TestTheStoryIsMinimal(t *testing.T) {
	t.Parallel()
	told := 0
	for seed := uint64(1); told < 3; seed++ {
		p := newPlot(seed)
		p.extra = func(m *moment) string {
			if m.had(resilience.EventOperatorExcluded) {
				return "an operator excludes something"
			}
			return ""
		}
		_, bad := p.run(false)
		if bad == nil || bad.law != "extra" {
			continue
		}
		told++
		p, bad = p.shrink(bad)
		w, _ := p.run(true)
		text := story(p, w, bad)
		if len(p.steps) != 1 || len(p.faults) != 0 || len(w.told) > 3 {
			t.Errorf("%d steps and %d faults are left, and it takes %d lines to tell", len(p.steps), len(p.faults), len(w.told))
		}
		for _, want := range []string{"excluded by the operator", "breaks a law: extra", "an operator excludes something", "providers:"} {
			if !strings.Contains(text, want) {
				t.Errorf("the story does not say %q:\n%s", want, text)
			}
		}
	}
}
