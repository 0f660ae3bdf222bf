package openai

import (
	"strings"

	"omniroute/internal/dialect"
)

// finishOf reads a finish reason. The usual words come from constants and cost no
// allocation; the others are those of services that differ from OpenAI's.
func finishOf(word []byte) ending {
	switch string(word) {
	case "", "null":
		return ending{}
	case "stop":
		return ending{dialect.FinishStop, "stop"}
	case "length":
		return ending{dialect.FinishLength, "length"}
	case "tool_calls":
		return ending{dialect.FinishToolCalls, "tool_calls"}
	case "function_call":
		return ending{dialect.FinishToolCalls, "function_call"}
	case "content_filter":
		return ending{dialect.FinishFilter, "content_filter"}
	}
	native := string(word)
	lower := strings.ToLower(native)
	if strings.HasPrefix(lower, "content_filter") { // Google adds its own word
		return ending{dialect.FinishFilter, native}
	}
	switch lower {
	case "stop", "end_turn", "eos", "eos_token", "stop_sequence":
		return ending{dialect.FinishStop, native}
	case "length", "max_tokens", "model_length":
		return ending{dialect.FinishLength, native}
	case "tool_calls", "tool_use":
		return ending{dialect.FinishToolCalls, native}
	case "safety", "recitation", "prohibited_content", "blocklist", "spii", "sensitive", "refusal":
		return ending{dialect.FinishFilter, native}
	case "error", "insufficient_system_resource", "network_error", "abort":
		return ending{dialect.FinishError, native}
	default:
		return ending{dialect.FinishOther, native}
	}
}
