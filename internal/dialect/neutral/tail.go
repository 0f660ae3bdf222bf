package neutral

import "omniroute/internal/dialect/sse"

// Tail follows a client's stream that passes through as it comes, so that a writer can go on
// where it breaks off: with its id, its numbers and its open block. It is not safe for use by
// several goroutines.
type Tail interface {
	// Follow takes an event that the client has got. It returns why no writer could go on after
	// it, empty when one can: what it holds is more than the neutral form has.
	Follow(*sse.Event) string
	// Writer returns a writer that goes on with the stream, in which text is open.
	Writer(c *Context, text string) EventWriter
}

// The reasons of tails that several dialects have in common.
const (
	TailUnknown = "the answer has parts that another attempt cannot go on with"
	TailBlocks  = "the answer has several parts"
	TailClosed  = "the text was over"
	TailUnnamed = "the answer does not say who it is"
)

// OpenText returns the sequence of an answer in which a text is open.
func OpenText() Sequence { return Sequence{open: true, kind: EventText} }
