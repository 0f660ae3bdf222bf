package jsonscan

import (
	"bytes"
	"encoding/json"
)

// Member is a member of an object. Its value is JSON.
type Member struct {
	Key   string
	Value []byte
}

// Object is the members of a JSON object in their order, for whoever changes some and keeps the others as
// they are. The zero value is an object without members.
type Object []Member

// ReadObject reads a text that is one object. The values point into it. It reports false for any other.
func ReadObject(text []byte) (Object, bool) {
	s := New(text)
	if s.Peek() != '{' {
		return nil, false
	}
	var o Object
	for ok := s.Object(); ok; ok = s.More('}') {
		key := string(s.Key())
		s.Peek()
		o = append(o, Member{key, s.value()})
	}
	return o, s.End() == nil
}

// ReadList reads a text that is one array. The elements point into it. It reports false for any other.
func ReadList(text []byte) ([][]byte, bool) {
	s := New(text)
	if s.Peek() != '[' {
		return nil, false
	}
	var list [][]byte
	for ok := s.Array(); ok; ok = s.More(']') {
		s.Peek()
		list = append(list, s.value())
	}
	return list, s.End() == nil
}

// value is Skip with nothing behind the value, so that appending to it leaves the text alone.
func (s *Scanner) value() []byte {
	v := s.Skip()
	return v[:len(v):len(v)]
}

// Get returns a member's value, nil without one.
func (o Object) Get(key string) []byte {
	for i := range o {
		if o[i].Key == key {
			return o[i].Value
		}
	}
	return nil
}

// Text returns a member's string, "" for any other value.
func (o Object) Text(key string) string {
	s := New(o.Get(key))
	return string(s.Text())
}

// Set puts a value in place of the present one, or behind the others.
func (o *Object) Set(key string, value []byte) {
	for i := range *o {
		if (*o)[i].Key == key {
			(*o)[i].Value = value
			return
		}
	}
	*o = append(*o, Member{key, value})
}

// Delete takes a member out.
func (o *Object) Delete(key string) {
	for i := range *o {
		if (*o)[i].Key == key {
			*o = append((*o)[:i:i], (*o)[i+1:]...)
			return
		}
	}
}

// Clone returns a copy that can be changed by itself. The values are shared.
func (o Object) Clone() Object { return append(Object(nil), o...) }

// JSON returns the object as JSON in one line.
func (o Object) JSON() []byte { return o.Append(nil) }

// Append appends the object as JSON in one line, as the data of an event has to be.
func (o Object) Append(dst []byte) []byte {
	dst = append(dst, '{')
	for i := range o {
		if i > 0 {
			dst = append(dst, ',')
		}
		key, _ := json.Marshal(o[i].Key) // of a string: it cannot fail
		dst = AppendLine(append(append(dst, key...), ':'), o[i].Value)
	}
	return append(dst, '}')
}

// AppendList appends JSON values as an array in one line.
func AppendList(dst []byte, values [][]byte) []byte {
	dst = append(dst, '[')
	for i, v := range values {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = AppendLine(dst, v)
	}
	return append(dst, ']')
}

// AppendLine appends a value that was checked without its line ends, which only stand between tokens.
func AppendLine(dst, value []byte) []byte {
	if bytes.IndexByte(value, '\n') < 0 && bytes.IndexByte(value, '\r') < 0 {
		return append(dst, value...)
	}
	for _, c := range value {
		if c != '\n' && c != '\r' {
			dst = append(dst, c)
		}
	}
	return dst
}
