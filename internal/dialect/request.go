package dialect

import "fmt"

// Operation says what a request asks for, as far as judging its answer needs it.
type Operation uint8

// The operations.
const (
	OpGenerate Operation = iota // an answer of a model: chat, completion, message
	OpEmbed                     // vectors
	OpCount                     // a count of tokens
	OpOther                     // anything else; every answer without an error envelope is content
)

// Request is what the gateway knows of a client's request.
type Request struct {
	Operation Operation
	// Path is the request's path, without query; Body its bytes as they came.
	Path string
	Body []byte
	// Model is the name that the client asks for.
	Model string
	// Stream: the client wants events. IncludeUsage: it wants usage in a last event.
	Stream, IncludeUsage bool

	// PathModel is where Path names the model, zero when it does not, and BodyModels where
	// Body does: each value of that member at the top level, quotes included.
	PathModel  Span
	BodyModels []Span
}

// Span is a half-open range of byte offsets.
type Span struct{ Start, End int }

// ForModel returns the path and the body that ask for another model. Everything else stays
// as the client wrote it: unknown fields, order, whitespace, escapes. Where the body names
// the model several times each of them is replaced, since parsers differ in which one they
// take. When nothing changes the client's own body is returned, else a new one.
func (r *Request) ForModel(model string) (path string, body []byte) {
	path, body = r.Path, r.Body
	if r.PathModel.End > 0 {
		path = path[:r.PathModel.Start] + model + path[r.PathModel.End:]
	}
	if len(r.BodyModels) == 0 || model == r.Model && len(r.BodyModels) == 1 {
		return path, body
	}
	quoted := AppendString(nil, model)
	out := make([]byte, 0, len(body)+len(r.BodyModels)*len(quoted))
	at := 0
	for _, s := range r.BodyModels {
		out = append(append(out, body[at:s.Start]...), quoted...)
		at = s.End
	}
	return path, append(out, body[at:]...)
}

// RequestError says in words for the client why its request cannot be read. The answer is
// status 400.
type RequestError struct {
	Message string
	Param   string // the field at fault, empty for the body as a whole
	Offset  int    // where in the body, -1 when that says nothing
}

func (e *RequestError) Error() string { return e.Message }

// Report returns the error as an answer to the client.
func (e *RequestError) Report() *ErrorReport {
	return &ErrorReport{Status: 400, Param: e.Param, Message: e.Message}
}

func requestErrorf(param string, offset int, format string, args ...any) *RequestError {
	return &RequestError{Message: fmt.Sprintf(format, args...), Param: param, Offset: offset}
}
