package catalog

import "testing"

func TestPrices(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, model string
		input           float64
		known           bool
	}{
		{"openai", "gpt-5.2", 1.75, true},
		{"openai", "gpt-5.2-pro", 21, true},
		{"openai", "GPT-5-mini-2025-08-07", .25, true},
		{"openai", "gpt-5", 1.25, true},
		{"openai", "gpt-4o-realtime-preview", 0, false},
		{"azure", "gpt-4.1-mini", .4, true},
		{"anthropic", "claude-opus-4-1-20250805", 15, true},
		{"anthropic", "claude-opus-4-5", 5, true},
		{"anthropic", "claude-next", 0, false},
		{"openrouter", "anthropic/claude-sonnet-4.5", 3, true},
		{"openrouter", "openai/gpt-5-nano:nitro", .05, true},
		{"openrouter", "someone/something:free", 0, true},
		{"openrouter", "someone/something", 0, false},
		{"ollama", "llama3", 0, true},
		{"together", "whatever", 0, false},
	} {
		got, known := Lookup(c.provider).PriceOf(c.model)
		if known != c.known || got.Input != c.input {
			t.Errorf("%s/%s: %+v %v", c.provider, c.model, got, known)
		}
	}
}

// TestPriceTable: every entry can be met, and what was cached never costs more.
func TestPriceTable(t *testing.T) {
	t.Parallel()
	for id, table := range prices {
		p := Lookup(id)
		if p == nil {
			t.Errorf("there is no provider %s", id)
			continue
		}
		for i, k := range table {
			if k.Cached > k.Input || k.Input < 0 || k.Output < 0 {
				t.Errorf("%s/%s: %+v", id, k.models, k.Price)
			}
			// The pattern itself, with something in place of * and #, is a name that it matches.
			name := []byte(k.models)
			for j, c := range name {
				switch c {
				case '#':
					name[j] = '9'
				case '*':
					name[j] = '-'
				}
			}
			for _, before := range table[:i] {
				if before.models.Match(string(name)) {
					t.Errorf("%s/%s comes after %s, which takes what it would match", id, k.models, before.models)
				}
			}
		}
	}
}
