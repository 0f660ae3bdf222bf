package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
)

// jsonSchema returns a schema in the API's own form, an excerpt of OpenAPI, as JSON schema. Its members stay
// in their order, and properties in the one that propertyOrdering names: models write them in it.
func jsonSchema(raw json.RawMessage) json.RawMessage {
	list, ok := membersOf(raw)
	if !ok {
		return raw
	}
	var order []string
	nullable := false
	for _, m := range list {
		switch m.name {
		case "propertyOrdering":
			_ = json.Unmarshal(m.value, &order) // what is no list of names orders nothing
		case "nullable":
			nullable = string(m.value) == "true"
		}
	}
	var out members
	for _, m := range list {
		switch m.name {
		case "propertyOrdering", "nullable":
			continue
		case "type":
			if kind, ok := word(m.value); ok {
				kind = strings.ToLower(kind)
				m.value = neutral.Encode(kind)
				if nullable {
					m.value = neutral.Encode([]string{kind, "null"})
				}
			}
		case "items", "additionalProperties":
			m.value = jsonSchema(m.value)
		case "properties":
			if named, ok := membersOf(m.value); ok {
				for i := range named {
					named[i].value = jsonSchema(named[i].value)
				}
				m.value = named.inOrder(order).json()
			}
		case "anyOf", "prefixItems":
			var several []json.RawMessage
			if json.Unmarshal(m.value, &several) == nil && several != nil {
				for i := range several {
					several[i] = jsonSchema(several[i])
				}
				m.value = neutral.Encode(several)
			}
		case "minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties":
			if digits, ok := word(m.value); ok { // int64 is a string in Google's JSON
				if m.value = json.RawMessage(digits); !json.Valid(m.value) {
					continue
				}
			}
		}
		out = append(out, m)
	}
	return out.json()
}

// member is a member of an object, members an object whose members have their order.
type (
	member struct {
		name  string
		value json.RawMessage
	}
	members []member
)

// membersOf reads an object.
func membersOf(raw json.RawMessage) (members, bool) {
	s := jsonscan.New(raw)
	if s.Peek() != '{' {
		return nil, false
	}
	var list members
	for ok := s.Object(); ok; ok = s.More('}') {
		name := string(s.Key())
		s.Peek()
		list = append(list, member{name, slices.Clone(s.Skip())})
	}
	return list, s.End() == nil
}

// inOrder returns the members with those that are named first, as they are named.
func (list members) inOrder(names []string) members {
	place := func(m member) int {
		if i := slices.Index(names, m.name); i >= 0 {
			return i
		}
		return len(names)
	}
	out := slices.Clone(list)
	slices.SortStableFunc(out, func(a, b member) int { return place(a) - place(b) })
	return out
}

func (list members) json() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(dialect.AppendString(nil, m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func word(raw json.RawMessage) (string, bool) {
	if neutral.First(raw) != '"' {
		return "", false
	}
	var s string
	err := json.Unmarshal(raw, &s)
	return s, err == nil
}
