package openai

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

var _ neutral.Continuer = Dialect{}

// Continue implements neutral.Continuer.
func (Dialect) Continue(body []byte, text string, p neutral.Prefill) ([]byte, bool) {
	m, fit := dialect.ReadMessages(body, []string{"max_tokens", "max_completion_tokens"}, func(key string, value []byte) bool {
		switch key {
		case "reasoning_effort":
			return string(value) == `"none"`
		case "tool_choice":
			return value[0] == '"' && string(value) != `"required"`
		case "response_format", "reasoning", "thinking", "enable_thinking", "thinking_budget", "guided_json", "guided_grammar", "guided_regex",
			"continue_final_message", "add_generation_prompt":
			return false
		}
		return true
	})
	if !fit || m.LastRole == "assistant" {
		return nil, false
	}
	message := dialect.AppendString([]byte(`{"role":"assistant","content":`), text)
	if p.Message != "" {
		message = append(append(message, ','), p.Message...)
	}
	return m.Append(append(message, '}'), neutral.TokensAtLeast(text), p.Body)
}
