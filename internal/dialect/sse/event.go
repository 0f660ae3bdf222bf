package sse

import (
	"bytes"
	"io"
)

// Event is one block of a stream: the lines up to a blank line.
//
// Its slices point into the Reader's buffer and are valid until the next call of Next.
// Whoever keeps an event longer takes a Clone.
type Event struct {
	// Raw is the whole block as it came, unknown fields and comments included, ready to be
	// written out: line ends are LF and it ends with exactly one blank line. A byte order
	// mark and further blank lines before the block are gone.
	Raw []byte

	// Name is the value of the last "event" field, empty when there is none.
	Name []byte
	// Data is the value of the "data" fields, joined by LF when there are several.
	Data []byte
	// ID is the value of the last "id" field. Ids are not carried over from earlier events.
	ID []byte

	// HasData says that there was a "data" field at all: "data:" alone is an event with
	// empty data, "event: x" alone is not one for a client.
	HasData bool
	// Comment says that the block holds comment lines and nothing else.
	Comment bool
	// Unterminated says that the stream ended, without a transport error, before the blank
	// line. The event may be whole or cut short; only its data can tell.
	Unterminated bool
}

// Clone returns a copy that stays valid.
func (e *Event) Clone() *Event {
	c := *e
	c.Raw = bytes.Clone(e.Raw)
	c.Name = bytes.Clone(e.Name)
	c.Data = bytes.Clone(e.Data)
	c.ID = bytes.Clone(e.ID)
	return &c
}

// WriteTo writes the event in normalised framing, in one Write.
func (e *Event) WriteTo(w io.Writer) (int64, error) {
	n, err := w.Write(e.Raw)
	return int64(n), err
}

// Append appends an event with that name (none when empty) and data to dst. Data that
// holds line ends becomes several data lines, so that a reader gets it back with LFs.
// A name must not hold line ends; what follows one is dropped.
func Append(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(dst, "event: "...)
		for i := 0; i < len(name) && name[i] != '\n' && name[i] != '\r'; i++ {
			dst = append(dst, name[i])
		}
		dst = append(dst, '\n')
	}
	for {
		line, rest, more := cutLine(data)
		dst = append(dst, "data: "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
		if !more {
			return append(dst, '\n')
		}
		data = rest
	}
}

// AppendComment appends a block that clients ignore, for keeping a connection busy.
func AppendComment(dst []byte, text string) []byte {
	for data, more := []byte(text), true; more; {
		var line []byte
		line, data, more = cutLine(data)
		dst = append(dst, ": "...)
		dst = append(dst, line...)
		dst = append(dst, '\n')
	}
	return append(dst, '\n')
}

// cutLine splits at the first LF, CR or CRLF.
func cutLine(b []byte) (line, rest []byte, more bool) {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return b, nil, false
	}
	if b[i] == '\r' && i+1 < len(b) && b[i+1] == '\n' {
		return b[:i], b[i+2:], true
	}
	return b[:i], b[i+1:], true
}
