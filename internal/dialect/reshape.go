package dialect

import "omniroute/internal/dialect/sse"

// Reshaper tells a whole answer of a dialect as a stream, and the reverse, without understanding it: members that nobody
// here knows come along, and so do several choices.
type Reshaper interface {
	// Streamed returns a whole answer as the stream that says the same. It reports false for a body that it
	// cannot tell so. Ids that the upstream has left out are made from id.
	Streamed(r *Request, body []byte, id string) ([]byte, bool)
	// NewGather begins to make a whole answer of a stream.
	NewGather(id string) Gather
}

// Gather makes a whole answer of a stream's events. It is not safe for use by several goroutines.
type Gather interface {
	// Next takes an event that is neither an error nor malformed. It keeps nothing of it.
	Next(*sse.Event)
	// Answer returns the whole answer, once the stream is complete. It reports false where nothing was told.
	Answer() ([]byte, bool)
}

// Lister is implemented by dialects whose streams some upstreams send as one list of events.
type Lister interface {
	// Unlisted returns such a list as the stream that it stands for. It reports false for any other body.
	Unlisted(body []byte) ([]byte, bool)
}
