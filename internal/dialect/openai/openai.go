// Package openai is the dialect of OpenAI's Chat Completions, legacy completions and
// embeddings, and of the many services that speak like it. Where those differ (Azure,
// OpenRouter, Mistral, DeepSeek, Moonshot, xAI, Groq, Perplexity and others) it takes what
// is known of each, since nothing else can be confused with it.
package openai

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// Dialect implements dialect.Dialect. The zero value is ready.
type Dialect struct{}

var (
	_ neutral.Codec      = Dialect{}
	_ dialect.Terminator = Dialect{}
)

// Name returns "openai".
func (Dialect) Name() string { return "openai" }

// ReadRequest reads a JSON request to any path; only the last part of the path tells what
// it asks for.
func (Dialect) ReadRequest(path string, body []byte) (*dialect.Request, error) {
	return dialect.ReadJSON(operation(path), path, body)
}

func operation(path string) dialect.Operation {
	path = strings.TrimRight(path, "/")
	switch {
	case strings.HasSuffix(path, "/chat/completions"), strings.HasSuffix(path, "/completions"):
		return dialect.OpGenerate
	case strings.HasSuffix(path, "/embeddings"):
		return dialect.OpEmbed
	}
	return dialect.OpOther
}
