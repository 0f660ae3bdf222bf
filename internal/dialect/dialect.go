// Package dialect says what bytes mean in one vendor's API: what is content, error, end and
// usage in an answer, which model a request names, and how an error is put to a client. It
// never decides about retries, time or state; the relay does, by what it hears from here.
//
// Each dialect is a package beside this one that implements Dialect.
package dialect

import "omniroute/internal/dialect/sse"

// Dialect is one vendor's way to speak. Implementations are stateless and safe for use by
// several goroutines; the state of one answer is in a Stream.
type Dialect interface {
	// Name is the dialect's name in the config: "openai", "responses", "anthropic", "gemini".
	Name() string

	// ReadRequest reads what routing needs from a client's request: the path below the
	// host, without query, and the whole body. The error is a *RequestError. The request
	// keeps the body, which must not change afterwards.
	ReadRequest(path string, body []byte) (*Request, error)

	// NewStream begins to judge one streamed answer to that request.
	NewStream(*Request) Stream
	// Inspect judges one complete body that came with a success status.
	Inspect(*Request, []byte) Answer

	// ReadError finds the error envelope in a body, with any status, or in the envelope of
	// an Observation. It reports false when there is none, as in a proxy's HTML page.
	ReadError(body []byte) (UpstreamError, bool)

	// ErrorBody returns the complete answer of content type ErrorContentType, and
	// ErrorEvent one event in the dialect's framing that ends a stream after content. An
	// empty status in the report is filled by its code.
	ErrorBody(*ErrorReport) []byte
	ErrorEvent(*ErrorReport) []byte
	// ErrorStatus returns the HTTP status that goes with ErrorBody. It is the report's own but
	// where the dialect has another one for the same thing.
	ErrorStatus(*ErrorReport) int

	Reshaper

	// KeepAlive returns what may be sent to the client of a stream, any number of times before its
	// first event, and means nothing to it.
	KeepAlive() []byte
}

// Failer is implemented by streams that can tell of a failure better than the dialect's
// ErrorEvent, since they know what was sent before: its id and its numbering.
type Failer interface {
	ErrorEvent(*ErrorReport) []byte
}

// Terminator is implemented by dialects whose streams end with an event of its own that upstreams
// leave out at times.
type Terminator interface {
	Terminator() []byte
}

// Framer is implemented by dialects whose official clients need more of an event than its data, or
// bear less, and whose upstreams frame theirs otherwise at times.
type Framer interface {
	// Frame makes the event's Raw what clients need. It leaves an event alone that is well framed.
	Frame(*sse.Event)
}

// ErrorContentType is the content type of every ErrorBody.
const ErrorContentType = "application/json"

// Stream judges the events of one streamed answer, in order. It is not safe for use by
// several goroutines.
type Stream interface {
	// Observe takes the next event and says what it is. It keeps nothing of it.
	Observe(*sse.Event) Observation
	// Answer sums up what was seen so far. At the end of the bytes it tells a whole answer
	// (Complete) from a cut.
	Answer() Answer
}

// Observation says what one event of a stream is. Several flags may hold at once: one event
// can carry content, its finish reason and the usage. The zero value is an event that
// passes on and means nothing to the relay: a ping, a role, an unknown kind.
type Observation struct {
	// Content: a text, tool-call or reasoning delta that is not empty, or a whole answer.
	// ToolCall: a part of a tool call was among it.
	Content, ToolCall bool
	// Finish is the reason in this event, FinishNone without one. The answer is over when
	// Answer().Complete says so; usage and the terminator may still follow.
	Finish Finish
	// Terminal: the dialect's terminator. Nothing follows it.
	Terminal bool
	// Error: the event tells of a failure. Envelope is then the JSON object that holds the
	// error, or the plain text of an error event, and nil when only a finish reason says
	// so. It points into the event.
	Error    bool
	Envelope []byte
	// Malformed: the data cannot be read as what the dialect sends. It is not to be passed on.
	Malformed bool
	// Skip: harmless, but it would break clients, like an empty data line; not to be passed on.
	Skip bool
	// UsageReported: the event carried usage; Answer().Usage has the sum of what is known.
	UsageReported bool
}

// Answer is what is known about one answer: a complete body, or a stream up to here.
type Answer struct {
	// Content and ToolCall as in Observation, for the whole answer.
	Content, ToolCall bool
	// Complete: the end of the bytes is the end of the answer, terminator or not. Of a stream
	// it says that every choice seen has a finish reason and no error came, not even after
	// them; of a body that it can be read and is no error.
	Complete bool
	// Terminated: the terminator was seen.
	Terminated bool
	// Malformed: a body that is not what was asked for. Dropped counts a stream's malformed events.
	Malformed bool
	// Error, Envelope: as in Observation. Of a stream the envelope is not kept.
	Error bool
	// Finish and NativeFinish tell why the model stopped, in our words and the upstream's;
	// of several choices one that the upstream gave up counts, then the first that did not
	// end well, else the last.
	Finish       Finish
	NativeFinish string
	Envelope     []byte
	Dropped      int
	// Model is the upstream's own word, empty when it named none. ID names the answer.
	Model string
	ID    string
	Usage Usage
}

// Empty reports whether the answer has no content and nothing that excuses it: the finish
// reasons length, tool calls and content filter do, and so do output tokens in the usage.
func (a *Answer) Empty() bool {
	if a.Content {
		return false
	}
	switch a.Finish {
	case FinishLength, FinishToolCalls, FinishFilter:
		return false
	}
	return a.Usage.Output == 0
}

// Finish is a finish reason in a word that all dialects share.
type Finish uint8

// The finish reasons.
const (
	FinishNone      Finish = iota // none yet
	FinishStop                    // the model was done, or met a stop sequence
	FinishLength                  // a token limit
	FinishToolCalls               // the client is to run tools
	FinishFilter                  // a content filter or a refusal
	FinishError                   // the upstream gave up in the middle
	FinishOther                   // a reason that we do not know, taken as an end
)

var finishNames = [...]string{"none", "stop", "length", "tool_calls", "content_filter", "error", "other"}

// String returns the reason's name for logs.
func (f Finish) String() string {
	if int(f) < len(finishNames) {
		return finishNames[f]
	}
	return "invalid"
}

// Usage counts tokens in one way for all dialects. Fields that the upstream did not report
// are 0; Known tells a reported zero from silence.
type Usage struct {
	Known      bool
	Input      int64 // everything read, cached tokens included
	Output     int64 // everything written, reasoning included
	CacheRead  int64 // the part of Input that came from a cache
	CacheWrite int64 // the part of Input that was written to a cache
	Reasoning  int64 // the part of Output that was reasoning
}
