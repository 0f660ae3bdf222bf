package jsonscan

import (
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Truthy reports whether a value says something: it is not null, false, 0, "", {} or [].
func Truthy(value []byte) bool {
	s := New(value)
	switch s.Peek() {
	case 0, 'n', 'f':
		return false
	case '"':
		return s.NonEmptyString()
	case '{':
		return s.Object()
	case '[':
		return s.Array()
	case 't':
		return true
	}
	f, err := strconv.ParseFloat(string(s.Skip()), 64)
	return err != nil || f != 0
}

// unescape resolves the escapes of a string that was checked.
func unescape(raw []byte) []byte {
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		c := raw[i]
		if c != '\\' {
			out = append(out, c)
			i++
			continue
		}
		c = raw[i+1]
		i += 2
		switch c {
		case 'b':
			c = '\b'
		case 'f':
			c = '\f'
		case 'n':
			c = '\n'
		case 'r':
			c = '\r'
		case 't':
			c = '\t'
		case 'u':
			r := hex4(raw[i:])
			i += 4
			if utf16.IsSurrogate(r) {
				pair := utf8.RuneError
				if i+6 <= len(raw) && raw[i] == '\\' && raw[i+1] == 'u' {
					pair = utf16.DecodeRune(r, hex4(raw[i+2:]))
				}
				if r = pair; pair != utf8.RuneError {
					i += 6
				}
			}
			out = utf8.AppendRune(out, r)
			continue
		}
		out = append(out, c)
	}
	return out
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r <<= 4
		switch {
		case c <= '9':
			r |= rune(c - '0')
		default:
			r |= rune(c|0x20-'a') + 10
		}
	}
	return r
}

// parseInt reads a checked number as an integer, cutting a fraction. It reports false for
// one that does not fit.
func parseInt(raw []byte) (int64, bool) {
	if n, err := strconv.ParseInt(string(raw), 10, 64); err == nil {
		return n, true
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.Abs(f) >= 1<<63 {
		return 0, false
	}
	return int64(f), true
}
