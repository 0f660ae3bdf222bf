package gemini

import (
	"bytes"

	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewTail begins to follow a stream that passes through.
func (Dialect) NewTail() neutral.Tail { return &tail{} }

type tail struct{ id, model []byte }

// Follow implements neutral.Tail.
func (t *tail) Follow(ev *sse.Event) string {
	s := jsonscan.New(bytes.TrimSpace(ev.Data))
	if s.Peek() != '{' {
		return ""
	}
	ok := true
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "responseId":
			if id := s.Text(); len(t.id) == 0 {
				t.id = append(t.id, id...)
			}
		case "modelVersion":
			if model := s.Text(); len(t.model) == 0 {
				t.model = append(t.model, model...)
			}
		case "candidates":
			for more := s.Array(); more; more = s.More(']') {
				ok = followCandidate(&s) && ok
			}
		default:
			s.Skip()
		}
	}
	if !ok {
		return neutral.TailUnknown
	}
	return ""
}

// followCandidate reports whether a candidate has nothing but what the neutral form has.
func followCandidate(s *jsonscan.Scanner) bool {
	ok := true
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "index":
			n, _ := s.Int()
			ok = ok && n == 0
		case "content":
			for more := s.Object(); more; more = s.More('}') {
				if key := s.Key(); string(key) != "parts" {
					s.Skip()
					continue
				}
				for more := s.Array(); more; more = s.More(']') {
					ok = followPart(s) && ok
				}
			}
		case "finishReason", "safetyRatings", "avgLogprobs", "tokenCount":
			s.Skip()
		default: // sources, probabilities
			ok = !jsonscan.Truthy(s.Skip()) && ok
		}
	}
	return ok
}

func followPart(s *jsonscan.Scanner) bool {
	ok := true
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "text", "thought", "thoughtSignature":
			s.Skip()
		default: // calls, code, media
			ok = false
			s.Skip()
		}
	}
	return ok
}

// Writer implements neutral.Tail.
func (t *tail) Writer(c *neutral.Context, _ string) neutral.EventWriter {
	return &eventWriter{c: c, told: neutral.Told{ID: string(t.id), Model: string(t.model)}, seq: neutral.OpenText()}
}
