package responses

import (
	"bytes"

	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewTail begins to follow a stream that passes through.
func (Dialect) NewTail() neutral.Tail { return &tail{place: -1} }

type tail struct {
	response    []byte // the object that the stream began with
	number      int64  // of the next event
	done        []*item
	id          string // of the message
	place, part int64  // of the message in the output, and of its text
	begun       bool   // the text
}

// Follow implements neutral.Tail.
func (t *tail) Follow(ev *sse.Event) string {
	s := jsonscan.New(bytes.TrimSpace(ev.Data))
	if s.Peek() != '{' {
		return ""
	}
	var kind, id, partKind string
	var raw []byte
	var place, part int64
	for more := s.Object(); more; more = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			kind = kindOf(s.Text())
		case "sequence_number":
			if n, ok := s.Int(); ok && n >= t.number {
				t.number = n + 1
			}
		case "output_index":
			place, _ = s.Int()
		case "content_index":
			part, _ = s.Int()
		case "item_id":
			id = string(s.Text())
		case "response":
			if r := s.Skip(); t.response == nil {
				t.response = append(t.response, r...)
			}
		case "item":
			raw = s.Skip()
		case "part":
			for more := s.Object(); more; more = s.More('}') {
				if key := s.Key(); string(key) == "type" {
					partKind = string(s.Text())
				} else {
					s.Skip()
				}
			}
		default:
			s.Skip()
		}
	}
	switch kind {
	case "response.output_item.added", "response.output_item.done":
		return t.item(raw, place, kind == "response.output_item.done")
	case "response.content_part.added":
		if partKind != "output_text" || t.begun {
			return neutral.TailBlocks
		}
		t.begun, t.part = true, part
	case "response.output_text.delta":
		if t.response == nil || !t.begun || place != t.place || part != t.part {
			return neutral.TailUnnamed
		}
		if id != "" {
			t.id = id
		}
	case "response.output_text.done", "response.content_part.done":
		return neutral.TailClosed
	case "response.created", "response.in_progress", "response.queued",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
		"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
		"response.reasoning_text.delta", "response.reasoning_text.done":
	default:
		return neutral.TailUnknown
	}
	return ""
}

// item follows an item that has begun or is done.
func (t *tail) item(raw []byte, place int64, done bool) string {
	var w item
	if neutral.Decode(raw, &w) != nil || place < 0 || place > 1000 {
		return neutral.TailUnknown
	}
	switch {
	case w.Type == "message" && done:
		return neutral.TailClosed
	case w.Type == "message" && t.place >= 0:
		return neutral.TailBlocks
	case w.Type == "message":
		t.place, t.id = place, w.ID
	case w.Type == "reasoning" && done:
		for int64(len(t.done)) <= place {
			t.done = append(t.done, nil)
		}
		t.done[place] = &w
	case w.Type != "reasoning":
		return neutral.TailUnknown
	}
	return ""
}

// Writer implements neutral.Tail.
func (t *tail) Writer(c *neutral.Context, text string) neutral.EventWriter {
	s := jsonscan.New(t.response)
	begun := scanResponse(&s)
	w := &eventWriter{c: c, calls: map[int]*openItem{}, told: neutral.Told{ID: begun.id, Model: begun.model}, number: t.number}
	w.response = newEnvelope(c, begun.id, c.ModelOr(begun.model))
	var sent envelope
	if neutral.Decode(t.response, &sent) == nil {
		sent.Output = []item{}
		w.response = &sent
	}
	for _, it := range t.done[:min(int64(len(t.done)), t.place)] {
		if it != nil {
			w.done = append(w.done, it)
		}
	}
	for int64(len(w.done)) < t.place {
		w.done = append(w.done, &item{Type: "reasoning", Summary: &[]piece{}}) // one that was never done
	}
	message := newMessage(c)
	message.ID = t.id
	w.open = &openItem{item: message, place: int(t.place), kind: neutral.EventText, text: []byte(text), part: int(t.part), growing: true}
	w.done = append(w.done, nil)
	return w
}
