package anthropic

import (
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

var _ neutral.Continuer = Dialect{}

// Continue implements neutral.Continuer.
func (Dialect) Continue(body []byte, text string, p neutral.Prefill) ([]byte, bool) {
	m, fit := dialect.ReadMessages(body, []string{"max_tokens"}, func(key string, value []byte) bool {
		switch key {
		case "thinking":
			var v struct{ Type string }
			return json.Unmarshal(value, &v) == nil && v.Type == "disabled"
		case "tool_choice":
			var v struct{ Type string }
			return json.Unmarshal(value, &v) == nil && v.Type != "any" && v.Type != "tool"
		case "output_format", "output_config":
			return false
		}
		return true
	})
	if !fit || m.LastRole == "assistant" {
		return nil, false
	}
	message := append(dialect.AppendString([]byte(`{"role":"assistant","content":[{"type":"text","text":`), text), `}]}`...)
	return m.Append(message, neutral.TokensAtLeast(text), p.Body)
}
