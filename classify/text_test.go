package classify

import "testing"

func TestPatternsFind(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		pattern, message string
		want             bool
	}{
		{"^rate limit", "Rate limit exceeded", true},
		{"^rate limit", "Unknown field rate limit", false},
		{"^rate limit", "The rate limit. Rate limit", false},
		{"^not found$", "Not found.", true},
		{"^not found$", "Not founded", false},
		{"model * gone", "The model m-1 is gone", true},
		{"model * gone", "The model is here. It is not gone", false},
		{"limit: 0$", "limit: 0.5", false},
		{"balance", "Bad role 「balance」", false},
		{"balance", "Bad role 『balance』", false},
		{"balance", "Bad role «balance» and “balance”", false},
		{"role", "「balance」 is no role", true},
		{"balance", "An open quotation 「 hides no balance by itself", true},
	} {
		if got := newPattern(tt.pattern).find(string(plainWords(nil, tt.message))) > 0; got != tt.want {
			t.Errorf("%q in %q: %v, want %v", tt.pattern, tt.message, got, tt.want)
		}
	}
	// The beginning of any message counts, not only of the first.
	if newPattern("^rate limit").find("oh\nrate limit\n") == 0 {
		t.Error("a second message has no beginning")
	}
}

// TestAnOperatorsRuleMayBeAnchored checks that a wider rule before it does hide an anchored one, and
// not the other way round.
func TestAnOperatorsRuleMayBeAnchored(t *testing.T) {
	t.Parallel()
	anchored := Rule{ID: "a", Text: []string{"^no luck"}, Scope: model, Kind: serverError}
	wide := Rule{ID: "b", Text: []string{"no luck"}, Scope: provider, Kind: serverError}
	if _, err := New(anchored, wide); err != nil {
		t.Errorf("anchored before wide: %v", err)
	}
	if _, err := New(wide, anchored); err == nil {
		t.Error("wide before anchored: no error, although the second can never match")
	}
}
