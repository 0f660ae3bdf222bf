// Package jsonscan reads JSON in place, in one pass, and checks it on the way.
//
// It exists because a relay looks at a few members of bodies and events that it passes on
// unchanged: every byte is seen once, nothing is copied or decoded that nobody asks for, and
// nesting is bounded without recursion, so that no input can exhaust the stack.
package jsonscan

import "fmt"

// MaxDepth is how deep arrays and objects may nest, the same as in encoding/json.
const MaxDepth = 10000

// SyntaxError says where the text stops being JSON.
type SyntaxError struct {
	Offset int // in bytes
	What   string
}

func (e *SyntaxError) Error() string {
	return fmt.Sprintf("%s at byte %d", e.What, e.Offset)
}

// Scanner walks one JSON text. After an error every method returns zero values, so that
// the caller checks Err or End once. Slices that it returns point into the text.
type Scanner struct {
	data []byte
	pos  int
	err  *SyntaxError
}

// New returns a scanner at the beginning of the text.
func New(data []byte) Scanner { return Scanner{data: data} }

// Pos returns the offset of the next byte to read.
func (s *Scanner) Pos() int { return s.pos }

// Err returns the first error, as a *SyntaxError.
func (s *Scanner) Err() error {
	if s.err == nil {
		return nil
	}
	return s.err
}

// End checks that nothing but white space follows and returns the first error.
func (s *Scanner) End() error {
	if s.err == nil && s.space() {
		s.fail("more text after the end of the JSON value")
	}
	return s.Err()
}

// Peek returns the first byte of the next value: one of {["tfn, a digit or minus, and 0
// at the end of the text or after an error.
func (s *Scanner) Peek() byte {
	if s.err != nil || !s.space() {
		return 0
	}
	return s.data[s.pos]
}

// Object begins to walk the object that comes next: call Key until it reports false, and
// after each key exactly one of Skip, String, Object or Array. It reports false, and moves
// past the value, when that is something else.
//
//	for ok := s.Object(); ok; ok = s.More('}') {
//		switch key := s.Key(); string(key) { … }
//	}
func (s *Scanner) Object() bool { return s.open('{', '}') }

// Array is Object for arrays, without keys; More takes ']'.
func (s *Scanner) Array() bool { return s.open('[', ']') }

// open enters a container that has a first element.
func (s *Scanner) open(open, shut byte) bool {
	if s.Peek() != open {
		s.Skip()
		return false
	}
	s.pos++
	if s.space() && s.data[s.pos] == shut {
		s.pos++
		return false
	}
	return s.err == nil
}

// More moves to the next element of the container that ends with that byte. It reports
// false past its end.
func (s *Scanner) More(shut byte) bool {
	if s.err != nil {
		return false
	}
	if !s.space() {
		s.fail("unexpected end of JSON")
		return false
	}
	switch s.data[s.pos] {
	case ',':
		s.pos++
		return true
	case shut:
		s.pos++
		return false
	}
	s.fail("missing comma or closing bracket")
	return false
}

// Key reads a member's name and the colon. Escapes are resolved.
func (s *Scanner) Key() []byte {
	key := s.String()
	if s.err != nil {
		return nil
	}
	if !s.space() || s.data[s.pos] != ':' {
		s.fail("missing colon after a member's name")
		return nil
	}
	s.pos++
	return key
}

// String reads a string and resolves its escapes, which copies only where there are any.
// When the next value is no string, that is an error.
func (s *Scanner) String() []byte {
	if s.Peek() != '"' {
		s.fail("missing string")
		return nil
	}
	raw, escaped := s.rawString()
	if escaped {
		return unescape(raw)
	}
	return raw
}

// Text reads a string like String, and skips any other value, for which it returns nil.
// An empty string is not nil.
func (s *Scanner) Text() []byte {
	if s.Peek() != '"' {
		s.Skip()
		return nil
	}
	return s.String()
}

// NonEmptyString moves past the next value and reports whether it is a string with at
// least one character. It resolves nothing.
func (s *Scanner) NonEmptyString() bool {
	if s.Peek() != '"' {
		s.Skip()
		return false
	}
	raw, _ := s.rawString()
	return len(raw) > 0
}

// Int reads an integer, be it within quotes, as some services write theirs. Fractions are cut, and
// any other value is skipped and reports false.
func (s *Scanner) Int() (int64, bool) {
	c := s.Peek()
	raw := s.Skip()
	if c == '"' && len(raw) > 2 {
		raw = raw[1 : len(raw)-1]
		c = raw[0]
	}
	if c != '-' && (c < '0' || c > '9') || s.err != nil {
		return 0, false
	}
	return parseInt(raw)
}

// rawString reads a string, s.pos being at its opening quote, and returns what is between
// the quotes.
func (s *Scanner) rawString() (raw []byte, escaped bool) {
	start := s.pos + 1
	end, escaped, what := stringEnd(s.data, start)
	if what != "" {
		s.pos = end
		s.fail(what)
		return nil, false
	}
	s.pos = end + 1
	return s.data[start:end:end], escaped
}

// space moves to the next byte that is not white space and reports whether there is one.
// Most JSON that a machine wrote has none, so that case is inlined.
func (s *Scanner) space() bool {
	return s.pos < len(s.data) && s.data[s.pos] > ' ' || s.skipSpace()
}

func (s *Scanner) skipSpace() bool {
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case ' ', '\n', '\t', '\r':
			s.pos++
		default:
			return true
		}
	}
	return false
}

func (s *Scanner) fail(what string) {
	if s.err != nil {
		return
	}
	if s.pos >= len(s.data) {
		what = "unexpected end of JSON"
	}
	s.err = &SyntaxError{Offset: s.pos, What: what}
}

// escape returns the length of the escape at the beginning of b. If it is invalid, it
// returns where, and what is wrong.
func escape(b []byte) (int, string) {
	if len(b) < 2 {
		return len(b), "unexpected end of JSON"
	}
	switch b[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2, ""
	case 'u':
		for k := 2; k < 6; k++ {
			if k >= len(b) {
				return k, "unexpected end of JSON"
			}
			if !isHex(b[k]) {
				return k, "invalid \\u escape in a string"
			}
		}
		return 6, ""
	}
	return 0, "invalid escape in a string"
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}
