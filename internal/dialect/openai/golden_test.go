package openai

import (
	"testing"

	"omniroute/internal/dialect/dialecttest"
)

func TestTranscripts(t *testing.T) {
	t.Parallel()
	dialecttest.Transcripts(t, Dialect{})
}
