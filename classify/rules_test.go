package classify

import (
	"slices"
	"strings"
	"testing"

	"omniroute/resilience"
)

// classifier is the one with built-in rules only.
func classifier(tb testing.TB, operator ...Rule) *Classifier {
	tb.Helper()
	c, err := New(operator...)
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// TestEveryRuleIsReachedByItsExamples also proves that no rule is hidden by an earlier one.
func TestEveryRuleIsReachedByItsExamples(t *testing.T) {
	t.Parallel()
	c := classifier(t)
	seen := map[string]bool{}
	for _, r := range BuiltinRules() {
		if seen[r.ID] {
			t.Errorf("%s: two rules have this id", r.ID)
		}
		seen[r.ID] = true
		if r.Why == "" || len(r.Examples) == 0 {
			t.Errorf("%s: a rule needs a line for people and an example", r.ID)
		}
		for _, e := range r.Examples {
			if e.Provider == "" && len(r.Provider) > 0 {
				e.Provider = r.Provider[0]
			}
			if v := c.Classify(e.input()); v.Rule != r.ID {
				t.Errorf("%s: its example reached %s instead (%s)\n\t%d %s %s", r.ID, v.Rule, v.Evidence, e.Status, e.Header, e.Body)
			}
		}
	}
}

// TestVerdictsAreConsistent checks what must hold for any built-in rule, whatever it reads.
func TestVerdictsAreConsistent(t *testing.T) {
	t.Parallel()
	c := classifier(t)
	for _, r := range BuiltinRules() {
		for _, e := range r.Examples {
			if e.Provider == "" && len(r.Provider) > 0 {
				e.Provider = r.Provider[0]
			}
			for _, phase := range []Phase{PhaseBody, PhaseFirstEvent, PhaseMidStream} {
				in := e.input()
				in.Phase = phase
				v := c.Classify(in)
				checkVerdict(t, r.ID, in, v)
			}
		}
	}
}

func checkVerdict(t *testing.T, what string, in Input, v resilience.Verdict) {
	t.Helper()
	bad := func(cond bool, why string) {
		if cond {
			t.Errorf("%s (%v): %s: %+v", what, in.Phase, why, v)
		}
	}
	bad(v.Rule == "", "no rule named")
	bad(len(v.Evidence) > maxEvidence+4, "evidence is too long")
	bad(v.Quarantine && v.Scope != resilience.ScopeConnection, "only a connection can be quarantined")
	bad(v.Certain && v.Scope != resilience.ScopeModel, "only a model is locked")
	bad((v.Quarantine || v.Certain) && (v.RetrySame || v.RetryAfter > 0), "waiting cannot cure it, yet a wait is stated")
	bad(in.Phase == PhaseMidStream && (v.RetrySame || v.RetryElsewhere), "content went out, so nothing may be retried")
	bad(v.Scope == resilience.ScopeClient && (v.RetrySame || v.RetryElsewhere), "it fails everywhere")
	bad(v.RetryAfter < 0 || v.RetryAfter > longestHint, "the hint cannot be meant")
	bad(v.Scope == resilience.ScopeProvider && !slices.Contains([]resilience.Kind{rateLimit, quota, permission, unknown}, v.Kind) && !v.Kind.Transient(), "no gate hears this kind at scope provider")
	bad(strings.Contains(v.Evidence, "sk-"), "evidence holds a key")
}
