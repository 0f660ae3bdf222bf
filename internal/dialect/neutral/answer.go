package neutral

import "omniroute/internal/dialect"

// Answer is a complete answer of a model.
type Answer struct {
	ID, Model string
	// Parts are texts, thoughts, refusals and calls.
	Parts []Part
	Ending
	Usage dialect.Usage
	// Count is the number of tokens, for OpCount.
	Count int64
}

// Ending is why the model stopped.
type Ending struct {
	Finish dialect.Finish
	// Native is the upstream's word for it, Stop the stop sequence that it met, where known.
	Native, Stop string
}

// HasCall reports whether a part is a call.
func HasCall(parts []Part) bool {
	for i := range parts {
		if parts[i].Kind == PartCall {
			return true
		}
	}
	return false
}

// Refused reports whether a part is a refusal.
func Refused(parts []Part) bool {
	for i := range parts {
		if parts[i].Kind == PartRefusal && parts[i].Text != "" {
			return true
		}
	}
	return false
}
