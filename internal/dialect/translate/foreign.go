package translate

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
)

// thoughts are where the dialects keep thoughts: names of members, and "[]" for every element
// of a list.
var thoughts = map[string][]string{
	"anthropic": {"messages", "[]", "content", "[]"},
	"responses": {"input", "[]"},
	"gemini":    {"contents", "[]", "parts", "[]"},
}

// Foreign reports whether a body may hold a thought of another dialect's upstream, which a client
// has kept for us under a wrapped seal.
func Foreign(body []byte) bool { return bytes.Contains(body, []byte(neutral.Wrapped)) }

// WithoutForeign returns the body of a request that passes through in its own dialect without
// the thoughts of other dialects' upstreams, which its own would refuse. Nothing else changes, but that
// Anthropic is not to think in a fixed amount when thoughts are missing, which it refuses too. A
// body without any is returned as it is.
func WithoutForeign(d dialect.Dialect, body []byte) []byte {
	path := thoughts[d.Name()]
	if path == nil || !Foreign(body) {
		return body
	}
	out := rewrite(body, path, ownThought)
	if out == nil || len(out) == len(body) {
		return body
	}
	if d.Name() == "anthropic" {
		out = rewrite(out, []string{"thinking"}, func(raw []byte) []byte {
			if bytes.Contains(raw, []byte(`"enabled"`)) {
				return []byte(`{"type":"disabled"}`)
			}
			return raw
		})
	}
	return out
}

// rewrite replaces the values at a path. An edit that returns nil takes an element from its
// list; a list without elements takes the object along that it is a member of.
func rewrite(raw []byte, path []string, edit func([]byte) []byte) []byte {
	if len(path) == 0 {
		return edit(raw)
	}
	s := jsonscan.New(raw)
	if path[0] == "[]" {
		if s.Peek() != '[' {
			return raw
		}
		var list [][]byte
		changed := false
		for ok := s.Array(); ok; ok = s.More(']') {
			s.Peek()
			element := s.Skip()
			kept := rewrite(element, path[1:], edit)
			changed = changed || len(kept) != len(element)
			if kept != nil {
				list = append(list, kept)
			}
		}
		switch {
		case !changed || s.Err() != nil:
			return raw
		case list == nil:
			return nil
		}
		return append(append([]byte{'['}, bytes.Join(list, []byte{','})...), ']')
	}
	if s.Peek() != '{' {
		return raw
	}
	for ok := s.Object(); ok; ok = s.More('}') {
		if key := s.Key(); string(key) != path[0] {
			s.Skip()
			continue
		}
		s.Peek()
		start := s.Pos()
		value := s.Skip()
		fresh := rewrite(value, path[1:], edit)
		switch {
		case s.Err() != nil || len(fresh) == len(value):
			return raw
		case fresh == nil:
			return nil
		}
		return append(append(append(make([]byte, 0, len(raw)), raw[:start]...), fresh...), raw[s.Pos():]...)
	}
	return raw
}

// ownThought returns nil for a thought of another dialect. Of a call only the signature is taken.
func ownThought(raw []byte) []byte {
	foreign, call := false, false
	rest := []byte{'{'}
	s := jsonscan.New(raw)
	for ok := s.Object(); ok; ok = s.More('}') {
		key := string(s.Key())
		s.Peek()
		value := s.Skip()
		switch key {
		case "signature", "data", "encrypted_content", "thoughtSignature", "thought_signature":
			if bytes.HasPrefix(value, []byte(`"`+neutral.Wrapped)) {
				foreign = true
				continue
			}
		case "functionCall", "function_call":
			call = true
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(dialect.AppendString(rest, key), ':'), value...)
	}
	switch {
	case !foreign || s.Err() != nil:
		return raw
	case call:
		return append(rest, '}')
	}
	return nil
}
