package neutral

import (
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// FreeText takes the arguments of a custom tool's call as they come and gives out the text in
// them. It takes what models make of it: further members, white space, a text that is no JSON. The
// zero value is ready.
type FreeText struct {
	seen  strings.Builder // up to where the text begins
	rest  string          // the beginning of an escape that has not come whole
	high  rune            // the first half of a pair of escapes
	state freeState
}

type freeState uint8

const (
	freeSeeking freeState = iota
	freeInside
	freePast
)

// Whole reports whether the end of the text has come.
func (f *FreeText) Whole() bool {
	return f.state == freePast || f.state == freeSeeking && json.Valid([]byte(f.seen.String()))
}

// maxSeeking is how much may stand before the text, in bytes. The arguments are read once more
// with each fragment until it is found; if it begins later, it is read at the end.
const maxSeeking = 4 << 10

// Add takes a fragment and returns what it tells of the text.
func (f *FreeText) Add(fragment string) string {
	switch f.state {
	case freePast:
		return ""
	case freeSeeking:
		f.seen.WriteString(fragment)
		if f.seen.Len()-len(fragment) > maxSeeking {
			return ""
		}
		at, ok := findInput(f.seen.String())
		if !ok {
			return ""
		}
		f.state = freeInside
		fragment = f.seen.String()[at:]
	}
	return f.decode(f.rest + fragment)
}

// decode reads the inside of a JSON string up to its end or to an escape that is not whole.
func (f *FreeText) decode(s string) string {
	f.rest = ""
	var b []byte
	for i := 0; i < len(s); {
		n := strings.IndexAny(s[i:], `"\`)
		if n != 0 {
			if n < 0 {
				n = len(s) - i
			}
			b = append(f.lone(b), s[i:i+n]...)
			i += n
			continue
		}
		if s[i] == '"' {
			f.state = freePast
			return string(f.lone(b))
		}
		size := 2
		if i+1 < len(s) && s[i+1] == 'u' {
			size = 6
		}
		if i+size > len(s) {
			f.rest = s[i:]
			return string(b)
		}
		if size == 6 {
			b = f.unit(b, s[i+2:i+6])
		} else {
			b = append(f.lone(b), unescaped(s[i+1])...)
		}
		i += size
	}
	return string(b)
}

// unit appends a \u escape, of which two may be needed for one character.
func (f *FreeText) unit(b []byte, hex string) []byte {
	var r rune
	for _, c := range []byte(hex) {
		switch {
		case c >= '0' && c <= '9':
			r = r<<4 | rune(c-'0')
		case c|0x20 >= 'a' && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		default:
			return append(append(f.lone(b), `\u`...), hex...)
		}
	}
	if f.high != 0 {
		if pair := utf16.DecodeRune(f.high, r); pair != utf8.RuneError {
			f.high = 0
			return utf8.AppendRune(b, pair)
		}
	}
	b = f.lone(b)
	if r >= 0xd800 && r < 0xdc00 {
		f.high = r
		return b
	}
	return utf8.AppendRune(b, r)
}

// lone appends the replacement of the half of a pair whose other half did not come.
func (f *FreeText) lone(b []byte) []byte {
	if f.high == 0 {
		return b
	}
	f.high = 0
	return utf8.AppendRune(b, utf8.RuneError)
}

// unescaped returns what a backslash and a byte stand for. Of an escape that JSON does not have
// the backslash is kept: the model has forgotten to double it.
func unescaped(c byte) string {
	switch c {
	case '"', '\\', '/':
		return string(rune(c))
	case 'n':
		return "\n"
	case 't':
		return "\t"
	case 'r':
		return "\r"
	case 'b':
		return "\b"
	case 'f':
		return "\f"
	}
	return `\` + string([]byte{c})
}

// End returns what is left when no more comes.
func (f *FreeText) End() string {
	switch f.state {
	case freePast:
		return ""
	case freeInside:
		f.state = freePast
		return string(f.lone(nil)) + f.rest
	}
	f.state = freePast
	return looseText(f.seen.String())
}

// looseText makes the best of arguments that have no text where it belongs: the only member of
// an object, or a text outside of JSON.
func looseText(args string) string {
	var members map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &members) != nil {
		var text string
		if json.Unmarshal([]byte(args), &text) == nil {
			return text
		}
		return args
	}
	value, ok := members[InputMember]
	if !ok {
		if len(members) == 0 {
			return ""
		}
		if len(members) > 1 {
			return args
		}
		for _, value = range members {
		}
	}
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// findInput returns where the inside of the string begins that is the text, if that much of the
// arguments is there.
func findInput(args string) (int, bool) {
	i := skipSpace(args, 0)
	if i == len(args) || args[i] != '{' {
		return 0, false
	}
	for i++; ; i++ { // past { or ,
		i = skipSpace(args, i)
		end := stringEnd(args, i)
		if end < 0 {
			return 0, false
		}
		key := args[i+1 : end-1]
		if i = skipSpace(args, end); i == len(args) || args[i] != ':' {
			return 0, false
		}
		i = skipSpace(args, i+1)
		if key == InputMember {
			return i + 1, i < len(args) && args[i] == '"'
		}
		if i = valueEnd(args, i); i < 0 || args[i] != ',' {
			return 0, false
		}
	}
}

func skipSpace(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\n' || s[i] == '\t' || s[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the place behind the string that begins at i, -1 when it has none.
func stringEnd(s string, i int) int {
	if i >= len(s) || s[i] != '"' {
		return -1
	}
	for i++; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return -1
}

// valueEnd returns the place of the comma or brace behind the value that begins at i, -1 when it
// has not come.
func valueEnd(s string, i int) int {
	for depth := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			if i = stringEnd(s, i) - 1; i < 0 {
				return -1
			}
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				return i
			}
			if s[i] != ',' {
				depth--
			}
		}
	}
	return -1
}
