package gemini

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

var _ dialect.Framer = Dialect{}

// KeepAlive is an empty event: official clients fail on comments.
func (Dialect) KeepAlive() []byte { return []byte("\n\n") }

// Frame leaves nothing of an event but one line of data: official clients fail on names, ids and
// comments.
func (Dialect) Frame(ev *sse.Event) {
	if !ev.HasData || len(ev.Raw) == 0 || bytes.HasPrefix(ev.Raw, []byte("data:")) && bytes.IndexByte(ev.Raw, '\n') == len(ev.Raw)-2 {
		return
	}
	raw := append(make([]byte, 0, len(ev.Data)+8), "data: "...)
	for _, c := range ev.Data {
		if c == '\n' { // white space between the lines of a JSON text
			c = ' '
		}
		raw = append(raw, c)
	}
	raw = append(raw, "\n\n"...)
	ev.Raw = raw
}
