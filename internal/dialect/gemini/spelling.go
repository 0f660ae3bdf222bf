package gemini

import (
	"bytes"

	"omniroute/internal/dialect/jsonscan"
)

// snake reports whether a request has members in the API's other spelling, or texts that look
// like them. It looks at underscores alone, since most requests are texts with few of them.
func snake(body []byte) bool {
	for at := 0; ; at++ {
		i := bytes.IndexByte(body[at:], '_')
		if i < 0 {
			return false
		}
		at += i
		from, to := at, at
		for from > 0 && lower(body[from-1]) {
			from--
		}
		for to < len(body) && (lower(body[to]) || body[to] == '_') {
			to++
		}
		if from > 0 && from < at && body[from-1] == '"' && to < len(body) && body[to] == '"' &&
			bytes.HasPrefix(bytes.TrimLeft(body[to+1:min(len(body), to+64)], " \t\r\n"), []byte(":")) {
			return true
		}
	}
}

func lower(c byte) bool { return c >= 'a' && c <= 'z' }

// Camel returns a request's body with the names of its members in camel case. The API takes
// both spellings. What the client has defined itself, like schemas and arguments, is left alone.
func Camel(body []byte) []byte {
	if !snake(body) {
		return body
	}
	s := jsonscan.New(body)
	out := respell(&s, make([]byte, 0, len(body)))
	if s.Err() != nil {
		return body
	}
	return out
}

func respell(s *jsonscan.Scanner, out []byte) []byte {
	switch s.Peek() {
	case '{':
		out = append(out, '{')
		for ok := s.Object(); ok; ok = s.More('}') {
			key := camelKey(s.Key())
			out = append(append(append(out, '"'), key...), '"', ':')
			switch string(key) {
			case "args", "response", "parameters", "parametersJsonSchema", "responseSchema", "responseJsonSchema":
				out = append(out, s.Skip()...)
			default:
				out = respell(s, out)
			}
			out = append(out, ',')
		}
		return append(bytes.TrimSuffix(out, []byte(",")), '}')
	case '[':
		out = append(out, '[')
		for ok := s.Array(); ok; ok = s.More(']') {
			out = append(respell(s, out), ',')
		}
		return append(bytes.TrimSuffix(out, []byte(",")), ']')
	}
	return append(out, s.Skip()...)
}

func camelKey(key []byte) []byte {
	out := make([]byte, 0, len(key))
	up := false
	for _, c := range key {
		switch {
		case c == '_' && len(out) > 0:
			up = true
		case c == '"' || c == '\\' || c < 0x20:
			out = append(out, '_') // no member of the API has one
		case up && 'a' <= c && c <= 'z':
			out, up = append(out, c-'a'+'A'), false
		default:
			out, up = append(out, c), false
		}
	}
	return out
}
