package neutral

import "omniroute/internal/dialect"

// Told is what a writer of events keeps of those that stand in no block. Ending and usage wait for the end of
// the answer, since either may come after the other.
type Told struct {
	ID, Model string
	Ending    Ending
	Usage     dialect.Usage
}

// Note takes such an event, and reports false for any other.
func (t *Told) Note(e *Event) bool {
	switch e.Kind {
	case EventStart:
		if t.ID == "" {
			t.ID = e.ID
		}
		if t.Model == "" {
			t.Model = e.Model
		}
	case EventFinish:
		t.Ending = e.Ending
	case EventUsage:
		t.Usage = e.Usage
	default:
		return false
	}
	return true
}
