package anthropic

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// finishOf reads a stop reason.
func finishOf(word string) dialect.Finish {
	switch word {
	case "":
		return dialect.FinishNone
	case "end_turn", "stop_sequence":
		return dialect.FinishStop
	case "max_tokens", "model_context_window_exceeded":
		return dialect.FinishLength
	case "tool_use":
		return dialect.FinishToolCalls
	case "refusal":
		return dialect.FinishFilter
	}
	return dialect.FinishOther // pause_turn, and what is to come
}

// stopReason returns Anthropic's word for an ending. called says that the answer has calls.
func stopReason(e neutral.Ending, called, refused bool) string {
	switch e.Finish {
	case dialect.FinishLength:
		return "max_tokens"
	case dialect.FinishFilter:
		return "refusal"
	}
	switch { // some upstreams say that they call and do not, on which agents would wait
	case called:
		return "tool_use"
	case refused:
		return "refusal"
	case e.Stop != "":
		return "stop_sequence"
	}
	return "end_turn"
}
