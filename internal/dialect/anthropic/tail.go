package anthropic

import (
	"bytes"

	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewTail begins to follow a stream that passes through.
func (Dialect) NewTail() neutral.Tail { return &tail{text: -1} }

type tail struct {
	started   bool
	id, model string
	text      int64 // the index of the text, -1 before it
}

// Follow implements neutral.Tail.
func (t *tail) Follow(ev *sse.Event) string {
	s := jsonscan.New(bytes.TrimSpace(ev.Data))
	if s.Peek() != '{' {
		return ""
	}
	var kind, part string
	var index int64
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			kind = kindOf(s.Text())
		case "index":
			index, _ = s.Int()
		case "delta", "content_block":
			for more := s.Object(); more; more = s.More('}') {
				switch key := s.Key(); string(key) {
				case "type":
					part = string(s.Text())
				case "citations":
					if jsonscan.Truthy(s.Skip()) {
						part = "citations"
					}
				default:
					s.Skip()
				}
			}
		case "message":
			for more := s.Object(); more; more = s.More('}') {
				switch key := s.Key(); string(key) {
				case "id":
					t.id = string(s.Text())
				case "model":
					t.model = string(s.Text())
				default:
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	return t.take(kind, part, index)
}

func (t *tail) take(kind, part string, index int64) string {
	switch kind {
	case "message_start":
		t.started = true
	case "content_block_start":
		switch part {
		case "text":
			if t.text >= 0 {
				return neutral.TailBlocks
			}
			t.text = index
		case "thinking", "redacted_thinking":
		default:
			return neutral.TailUnknown
		}
	case "content_block_delta":
		switch part {
		case "text_delta":
			if !t.started || index != t.text {
				return neutral.TailUnnamed
			}
		case "thinking_delta", "signature_delta":
		default:
			return neutral.TailUnknown
		}
	case "content_block_stop":
		if index == t.text {
			return neutral.TailClosed
		}
	}
	return ""
}

// Writer implements neutral.Tail.
func (t *tail) Writer(c *neutral.Context, _ string) neutral.EventWriter {
	return &eventWriter{c: c, told: neutral.Told{ID: t.id, Model: t.model}, started: true, index: int(t.text), seq: neutral.OpenText()}
}
