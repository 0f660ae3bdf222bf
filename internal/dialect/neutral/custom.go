package neutral

import (
	"encoding/json"
	"strings"

	"omniroute/internal/dialect"
)

// Custom makes a tool one whose call is a free text in place of JSON. In the neutral form, and for
// upstreams that know only functions, it is a function with the one argument InputMember.
type Custom struct {
	// Syntax and Definition are the grammar that the text is to follow, empty for any text.
	Syntax, Definition string
}

// InputMember is the one argument of a custom tool's function.
const InputMember = "input"

// The arguments of a custom tool's call are freeOpen, the text as the inside of a JSON string,
// and freeClose.
const (
	freeOpen  = `{"` + InputMember + `":"`
	freeClose = `"}`
)

var customSchema = json.RawMessage(`{"type":"object","properties":{"` + InputMember +
	`":{"type":"string","description":"The whole text of the call."}},"required":["` + InputMember + `"],"additionalProperties":false}`)

// Told returns the description of the tool for an upstream that knows only functions: the grammar
// that nobody holds the model to there must at least be known to it.
func (t *Tool) Told() string {
	c := t.Custom
	if c == nil {
		return t.Description
	}
	var b strings.Builder
	if b.WriteString(t.Description); b.Len() > 0 {
		b.WriteString("\n\n")
	}
	b.WriteString(`Give the text of the call, as it is, as the string "` + InputMember + `".`)
	if c.Definition != "" {
		b.WriteString(" It must follow this grammar")
		if c.Syntax != "" {
			b.WriteString(" (" + c.Syntax + ")")
		}
		b.WriteString(":\n" + c.Definition)
	}
	return b.String()
}

// Custom reports whether a tool of the request is a custom one.
func (r *Request) Custom(name string) bool {
	for i := range r.Tools {
		if r.Tools[i].Name == name {
			return r.Tools[i].Custom != nil
		}
	}
	return false
}

// FreeArguments returns the arguments of a custom tool's call with that text.
func FreeArguments(text string) string {
	return freeOpen + FreeFragment(text) + freeClose
}

// FreeFragment returns a text as the inside of a JSON string.
func FreeFragment(text string) string {
	b := dialect.AppendString(make([]byte, 0, len(text)+16), text)
	return string(b[1 : len(b)-1])
}

// FreeBegin and FreeEnd stand around the fragments of a custom tool's arguments.
const (
	FreeBegin = freeOpen
	FreeEnd   = freeClose
)

// Free returns the text of a custom tool's call.
func (c *Call) Free() string {
	var f FreeText
	text := f.Add(c.Arguments)
	return text + f.End()
}
