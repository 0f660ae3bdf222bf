package translate

import (
	"errors"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// fields are the names that the dialects have for what the chat API calls by the first.
var fields = map[string]map[string]string{
	"messages":        {"responses": "input", "gemini": "contents"},
	"stop":            {"anthropic": "stop_sequences", "gemini": "generationConfig.stopSequences"},
	"response_format": {"responses": "text.format", "anthropic": "output_config.format", "gemini": "generationConfig.responseJsonSchema"},
}

// inWordsOf names the field of an unsupported request as its client does. Writers, who do not know
// it, use the chat API's names.
func inWordsOf(client dialect.Dialect, err error) error {
	e, ok := errors.AsType[*neutral.UnsupportedError](err)
	if !ok {
		return err
	}
	own := fields[e.Field][client.Name()]
	if own == "" {
		return err
	}
	return &neutral.UnsupportedError{Field: own, Reason: e.Reason}
}
