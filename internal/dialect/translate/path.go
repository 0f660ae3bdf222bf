package translate

import (
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/anthropic"
	"omniroute/internal/dialect/gemini"
	"omniroute/internal/dialect/openai"
	"omniroute/internal/dialect/responses"
)

// OfPath returns the dialect of the API that calls to a path belong to. What no other API has is OpenAI's.
func OfPath(path string) dialect.Dialect {
	switch {
	case path == "/v1/messages", strings.HasPrefix(path, "/v1/messages/"), path == "/v1/complete":
		return anthropic.Dialect{}
	case path == "/v1/responses", strings.HasPrefix(path, "/v1/responses/"):
		return responses.Dialect{}
	case strings.HasPrefix(path, "/v1beta/"):
		return gemini.Dialect{}
	case strings.HasPrefix(path, "/v1/models/"):
		if _, _, ok := gemini.SplitPath(path); ok {
			return gemini.Dialect{}
		}
	}
	return openai.Dialect{}
}
