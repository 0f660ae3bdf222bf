package neutral

import "omniroute/internal/dialect"

// EventKind says what an event is.
type EventKind uint8

// The kinds of events. Blocks (a text, a thought, a refusal, each call) begin with their first
// event. Calls may be interleaved, the others end where another block begins.
const (
	// EventStart tells ID and Model, as far as known; it may come again.
	EventStart EventKind = iota
	EventText
	EventReasoning
	EventRefusal
	// EventSeal ends a thought; without one before it belongs to the call that follows.
	EventSeal
	// EventCall begins a call. Index counts the calls of an answer from 0 without gaps.
	EventCall
	// EventArguments is a fragment of a call's arguments.
	EventArguments
	// EventCallEnd says that a call is whole. Not every dialect tells.
	EventCallEnd
	EventFinish
	// EventUsage replaces what earlier ones said.
	EventUsage
)

// Event is a step of a streamed answer.
type Event struct {
	Kind  EventKind
	Index int    // of a call
	Text  string // of a fragment
	ID    string // of the answer or a call
	Name  string // of a call's tool
	// Custom: the call is one of a custom tool.
	Custom bool
	Model  string
	Seal   Seal
	Ending
	Usage dialect.Usage
}
