package relay

import (
	"strings"
	"testing"
)

// TestNoProseInAStory: what an upstream calls a code may be a sentence that repeats the prompt.
func TestNoProseInAStory(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]string{
		"": "", "context_length_exceeded": "context_length_exceeded", "1113": "1113", "Throttling.RateQuota": "Throttling.RateQuota",
		"invalid value: tell me a secret": "upstream_error", "geheim\n": "upstream_error", "Schlüssel": "upstream_error",
		strings.Repeat("x", 65): "upstream_error",
	} {
		if got := storyCode(code); got != want {
			t.Errorf("%q is told as %q, want %q", code, got, want)
		}
	}
}
