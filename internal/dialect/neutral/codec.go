package neutral

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// Codec is a dialect that can be translated. Implementations are stateless and safe for use by
// several goroutines.
type Codec interface {
	dialect.Dialect

	// ReadNeutral reads a client's request. The error is a *dialect.RequestError.
	ReadNeutral(*dialect.Request) (*Request, error)
	// WriteRequest makes an upstream's request. The error is an *UnsupportedError.
	WriteRequest(*Request) (*Outgoing, error)

	// ReadAnswer reads an upstream's complete answer, which Inspect has found to be one.
	// It reports false when it is not.
	ReadAnswer(*Context, []byte) (*Answer, bool)
	// WriteAnswer makes a client's complete answer.
	WriteAnswer(*Context, *Answer) []byte

	NewEventReader(*Context) EventReader
	NewEventWriter(*Context) EventWriter
	NewTail() Tail

	// ToolNames returns what the dialect allows in the name of a tool.
	ToolNames() NameRule
}

// EventReader reads an upstream's streamed answer. It is not safe for use by several goroutines.
type EventReader interface {
	// Read appends what an event says to the list. It skips what it does not know.
	Read(*sse.Event, []Event) []Event
	// End appends what the end of the stream reveals.
	End([]Event) []Event
}

// EventWriter makes a client's stream. It is not safe for use by several goroutines.
type EventWriter interface {
	// Write appends the bytes that an event becomes, possibly none.
	Write([]byte, *Event) []byte
	// End appends what completes the answer, terminator included.
	End([]byte) []byte
	// Fail appends an error event that ends the stream in place of End.
	Fail([]byte, *dialect.ErrorReport) []byte
}

// Outgoing is a request ready for an upstream.
type Outgoing struct {
	// Path is below the provider's base URL, with query: "/chat/completions".
	Path string
	Body []byte
	// Header are headers that go with the body, in pairs of canonical name and value.
	Header [][2]string
}

// Context is what readers and writers of an answer need to know.
type Context struct {
	// Request is the client's request.
	Request *Request
	// Model is the name that the upstream was asked for, for answers that do not tell.
	Model string
	// Now is the time of the request. ID is unique to it; ids that an upstream leaves out are
	// made from it, so that an answer can be made twice.
	Now time.Time
	ID  string

	made  int
	calls []string // ids given out
}

// NewID makes an id that is unique among all requests.
func (c *Context) NewID(prefix string) string {
	c.made++
	return prefix + plainID(c.ID) + "_" + strconv.Itoa(c.made)
}

// CallID returns the id of a call of the answer: the upstream's own, or a new one where it gave
// none or gave it to another call of the answer before. Results could not be told apart then.
func (c *Context) CallID(given string) string {
	if given == "" || slices.Contains(c.calls, given) {
		given = c.NewID("call_")
	}
	c.calls = append(c.calls, given)
	return given
}

// ModelOr returns the upstream's own word for the model, or else the name asked for.
func (c *Context) ModelOr(word string) string {
	if word == "" {
		return c.Model
	}
	return word
}

func plainID(id string) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' || r == '-' {
			return r
		}
		return '_'
	}, id)
}

// PlainID returns an id in which only letters, digits, underscores and dashes are left.
func PlainID(id string) string {
	for i := 0; i < len(id); i++ {
		if c := id[i]; c < '0' || c > '9' && c < 'A' || c > 'Z' && c < 'a' && c != '_' || c > 'z' {
			if c != '-' {
				return plainID(id)
			}
		}
	}
	return id
}

// NameRule is what a dialect allows in tool names: letters, digits, underscore and dash always.
type NameRule struct {
	Max    int    // bytes
	Extra  string // further characters
	Letter bool   // it begins with a letter or an underscore
}

// Fits reports whether a name keeps the rule.
func (n NameRule) Fits(name string) bool {
	if len(name) > n.Max || n.Letter && name != "" && !begins(name[0]) {
		return false
	}
	for i := 0; i < len(name); i++ {
		if !n.allows(name[i]) {
			return false
		}
	}
	return name != ""
}

func (n NameRule) allows(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || strings.IndexByte(n.Extra, c) >= 0
}

func begins(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' }

// Fit returns a name like the given one that keeps the rule and is not taken.
func (n NameRule) Fit(name string, taken map[string]bool) string {
	b := []byte(name)
	for i := range b {
		if !n.allows(b[i]) {
			b[i] = '_'
		}
	}
	switch {
	case len(b) == 0:
		b = []byte("tool")
	case n.Letter && !begins(b[0]):
		b = append([]byte("_"), b...)
	}
	base := string(b[:min(len(b), n.Max)])
	out := base
	for k := 2; taken[out]; k++ {
		suffix := "_" + strconv.Itoa(k)
		out = base[:min(len(base), n.Max-len(suffix))] + suffix
	}
	return out
}
