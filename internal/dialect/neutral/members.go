package neutral

import (
	"encoding/json"

	"omniroute/internal/dialect/jsonscan"
)

// Elements hands out the elements of a JSON list that was checked before. Decoders of long lists
// use it in place of encoding/json, which reads the bytes of a list within a list several times.
func Elements(raw []byte, each func([]byte) error) error {
	s := jsonscan.New(raw)
	for ok := s.Array(); ok; ok = s.More(']') {
		s.Peek()
		if err := each(s.Skip()); err != nil {
			return err
		}
	}
	return nil
}

// Member is where a member's value goes: a string to Text or Some, any value to Raw.
type Member struct {
	Text *string
	Some **string
	Raw  *[]byte
}

// Members reads an object whose members are all known and of their usual types. It reports false
// for any other, of which encoding/json then knows what is wrong, if anything.
func Members(raw []byte, of func(key []byte) Member) bool {
	s := jsonscan.New(raw)
	if s.Peek() != '{' {
		return false
	}
	for ok := s.Object(); ok; ok = s.More('}') {
		m := of(s.Key())
		if m.Raw != nil {
			s.Peek()
			*m.Raw = s.Skip()
			continue
		}
		if m.Text == nil && m.Some == nil || s.Peek() != '"' {
			return false
		}
		text := string(s.Text())
		if m.Text != nil {
			*m.Text = text
		} else {
			*m.Some = &text
		}
	}
	return s.Err() == nil
}

// List decodes a JSON list that was checked before, with a fast way for its usual elements, which
// reports false for others.
func List[T any](raw []byte, fast func([]byte, *T) bool) ([]T, error) {
	var out []T
	err := Elements(raw, func(element []byte) error {
		var one T
		if !fast(element, &one) {
			var zero T
			one = zero
			if err := json.Unmarshal(element, &one); err != nil {
				return err
			}
		}
		out = append(out, one)
		return nil
	})
	if out == nil && err == nil {
		out = []T{}
	}
	return out, err
}
