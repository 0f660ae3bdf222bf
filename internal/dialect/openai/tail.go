package openai

import (
	"bytes"

	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewTail begins to follow a stream that passes through.
func (Dialect) NewTail() neutral.Tail { return &tail{} }

type tail struct {
	id, model []byte
	created   int64
}

// Follow implements neutral.Tail.
func (t *tail) Follow(ev *sse.Event) string {
	data := bytes.TrimSpace(ev.Data)
	s := jsonscan.New(data)
	if s.Peek() != '{' {
		return ""
	}
	var id, model []byte
	created, ok := int64(0), true
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "id":
			id = s.Text()
		case "model":
			model = s.Text()
		case "created":
			created, _ = s.Int()
		case "choices":
			for more := s.Array(); more; more = s.More(']') {
				ok = followChoice(&s) && ok
			}
		default:
			s.Skip()
		}
	}
	if len(t.id) == 0 {
		t.id = append(t.id, id...)
	}
	if len(t.model) == 0 {
		t.model = append(t.model, model...)
	}
	if t.created == 0 {
		t.created = created
	}
	if !ok {
		return neutral.TailUnknown
	}
	return ""
}

// followChoice reports whether a choice has nothing but what the neutral form has.
func followChoice(s *jsonscan.Scanner) bool {
	ok := true
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "index":
			n, _ := s.Int()
			ok = ok && n == 0
		case "delta":
			for more := s.Object(); more; more = s.More('}') {
				switch key := s.Key(); string(key) {
				case "role", "content", "reasoning_content", "reasoning", "refusal", "tool_calls", "function_call":
					ok = s.Peek() != '[' && s.Peek() != '{' && ok // parts, and calls
					s.Skip()
				default:
					ok = !jsonscan.Truthy(s.Skip()) && ok
				}
			}
		case "message", "text", "logprobs": // the older API's text; probabilities
			ok = !jsonscan.Truthy(s.Skip()) && ok
		default:
			s.Skip()
		}
	}
	return ok
}

// Writer implements neutral.Tail.
func (t *tail) Writer(c *neutral.Context, _ string) neutral.EventWriter {
	w := &eventWriter{c: c, told: neutral.Told{ID: string(t.id), Model: string(t.model)}}
	created := t.created
	if created == 0 {
		created = c.Now.Unix()
	}
	w.setHead(created)
	return w
}
