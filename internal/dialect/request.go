package dialect

import (
	"bytes"
	"fmt"
	"io"
	"net"
)

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

	// HasMessages and HasInput say which members the body has at the top level: the conversation
	// of a chat, and that of a Responses request.
	HasMessages, HasInput bool

	// PathModel is where Path names the model, zero when it does not, and BodyModels where
	// Body does: each value of that member at the top level, quotes included,
	// or each form field of that name.
	PathModel  Span
	BodyModels []Span

	form bool // Body is a multipart form, in which values are not quoted
}

// Span is a half-open range of byte offsets.
type Span struct{ Start, End int }

// ForModel returns the path and the body that ask for another model. Everything else stays
// as the client wrote it: unknown fields, order, whitespace, escapes. Where the body names
// the model several times each of them is replaced, since parsers differ in which one they
// take. When nothing changes the client's own body is returned, else a new one. Open gives
// the same without a copy.
func (r *Request) ForModel(model string) (path string, body []byte) {
	pieces := r.pieces(model)
	if len(pieces) == 1 {
		return r.pathFor(model), pieces[0]
	}
	return r.pathFor(model), bytes.Join(pieces, nil)
}

// Open is ForModel with the body to be read from the client's bytes. Each attempt opens its own.
func (r *Request) Open(model string) (path string, body *Body) {
	b := &Body{pieces: r.pieces(model)}
	for _, p := range b.pieces {
		b.size += int64(len(p))
	}
	return r.pathFor(model), b
}

func (r *Request) pathFor(model string) string {
	if r.PathModel.End == 0 {
		return r.Path
	}
	return r.Path[:r.PathModel.Start] + model + r.Path[r.PathModel.End:]
}

// pieces cuts the body around the model's names.
func (r *Request) pieces(model string) [][]byte {
	if len(r.BodyModels) == 0 || model == r.Model && len(r.BodyModels) == 1 {
		return [][]byte{r.Body}
	}
	name := []byte(model)
	if !r.form {
		name = AppendString(nil, model)
	}
	pieces := make([][]byte, 0, 2*len(r.BodyModels)+1)
	at := 0
	for _, s := range r.BodyModels {
		pieces = append(pieces, r.Body[at:s.Start], name)
		at = s.End
	}
	return append(pieces, r.Body[at:])
}

// Body reads a request's body for one attempt. It is an io.ReadCloser whose Size is known.
type Body struct {
	pieces [][]byte
	size   int64
}

// Size returns the length of the whole body in bytes.
func (b *Body) Size() int64 { return b.size }

// Read implements io.Reader.
func (b *Body) Read(p []byte) (n int, err error) {
	for len(b.pieces) > 0 && n < len(p) {
		k := copy(p[n:], b.pieces[0])
		n += k
		if b.pieces[0] = b.pieces[0][k:]; len(b.pieces[0]) == 0 {
			b.pieces = b.pieces[1:]
		}
	}
	if n == 0 && len(p) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

// WriteTo implements io.WriterTo.
func (b *Body) WriteTo(w io.Writer) (n int64, err error) {
	pieces := net.Buffers(b.pieces) // one system call where the writer is a connection
	n, err = pieces.WriteTo(w)
	b.pieces = pieces
	return n, err
}

// Close does nothing: the bytes belong to the request.
func (b *Body) Close() error { return nil }

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
