package responses

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewEventReader begins to read a streamed answer.
func (Dialect) NewEventReader(c *neutral.Context) neutral.EventReader {
	return &eventReader{c: c, items: map[string]*streamedItem{}}
}

type eventReader struct {
	c     *neutral.Context
	items map[string]*streamedItem
	begun int             // calls so far
	free  []*streamedItem // the calls of custom tools
	any   bool
}

// streamedItem is an item as its pieces come. Some services send only pieces, others only the
// finished item or the finished response; each is read once.
type streamedItem struct {
	id      string // of the item, or the call's
	call    int    // the call's index, -1 when it is none or has not begun
	said    bool
	closed  bool  // the arguments of a custom call are whole
	summary int64 // the part of the summary that came last
	done    bool
}

// Read implements neutral.EventReader.
func (er *eventReader) Read(ev *sse.Event, out []neutral.Event) []neutral.Event {
	s := jsonscan.New(bytes.TrimSpace(ev.Data))
	if s.Peek() != '{' {
		return out
	}
	var kind, delta, key string
	var raw, response []byte
	place, summary := int64(-1), int64(0)
	for ok := s.Object(); ok; ok = s.More('}') {
		switch k := s.Key(); string(k) {
		case "type":
			kind = kindOf(s.Text())
		case "delta", "text", "refusal", "arguments", "input": // a piece, or in a done event the whole
			delta = string(s.Text())
		case "output_index":
			if n, ok := s.Int(); ok {
				place = n
			}
		case "item_id":
			key = string(s.Text())
		case "summary_index":
			summary, _ = s.Int()
		case "item":
			raw = s.Skip()
		case "response":
			response = s.Skip()
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return out
	}
	switch kind {
	case "response.created", "response.in_progress":
		r := jsonscan.New(response)
		begun := scanResponse(&r)
		return append(out, neutral.Event{Kind: neutral.EventStart, ID: begun.id, Model: begun.model})
	case "response.output_text.done", "response.refusal.done", "response.reasoning_summary_text.done", "response.reasoning_text.done",
		"response.function_call_arguments.done", "response.custom_tool_call_input.done":
		if it := er.at(key, place); !it.said || summary != it.summary { // it has not come in pieces
			return er.delta(strings.TrimSuffix(kind, "done")+"delta", it, delta, summary, out)
		}
		return out
	case "response.output_item.added":
		return er.item(raw, place, false, out)
	case "response.output_item.done":
		return er.item(raw, place, true, out)
	case "response.completed", "response.incomplete":
		return er.finish(kind, response, out)
	}
	return er.delta(kind, er.at(key, place), delta, summary, out)
}

// delta reads a piece of an item.
func (er *eventReader) delta(kind string, it *streamedItem, delta string, summary int64, out []neutral.Event) []neutral.Event {
	switch kind {
	case "response.output_text.delta":
		return er.piece(neutral.EventText, it, delta, out)
	case "response.refusal.delta":
		return er.piece(neutral.EventRefusal, it, delta, out)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		if it.said && summary != it.summary {
			delta = "\n\n" + delta
		}
		it.summary = summary
		return er.piece(neutral.EventReasoning, it, delta, out)
	case "response.function_call_arguments.delta":
		if it.call < 0 || delta == "" {
			return out
		}
		it.said = true
		return append(out, neutral.Event{Kind: neutral.EventArguments, Index: it.call, Text: delta})
	case "response.custom_tool_call_input.delta":
		if it.call < 0 || delta == "" {
			return out
		}
		return append(out, neutral.Event{Kind: neutral.EventArguments, Index: it.call, Text: it.fragment(delta)})
	}
	return out
}

// End implements neutral.EventReader.
func (er *eventReader) End(out []neutral.Event) []neutral.Event { return out }

func (er *eventReader) piece(kind neutral.EventKind, it *streamedItem, text string, out []neutral.Event) []neutral.Event {
	if text == "" {
		return out
	}
	it.said, er.any = true, true
	return append(out, neutral.Event{Kind: kind, Text: text})
}

// fragment returns a part of the text of a custom call as one of its arguments.
func (it *streamedItem) fragment(text string) string {
	head := ""
	if !it.said {
		it.said, head = true, neutral.FreeBegin
	}
	return head + neutral.FreeFragment(text)
}

// at returns the item at a place in the output, or of an id where no place is told: some
// services give an item another id in each event.
func (er *eventReader) at(id string, place int64) *streamedItem {
	if place >= 0 || id == "" {
		id = "#" + strconv.FormatInt(place, 10)
	}
	it := er.items[id]
	if it == nil {
		it = &streamedItem{call: -1}
		er.items[id] = it
	}
	return it
}

func (er *eventReader) item(raw []byte, place int64, done bool, out []neutral.Event) []neutral.Event {
	var w item
	if neutral.Decode(raw, &w) != nil {
		return out
	}
	it := er.at(w.ID, place)
	if it.id == "" {
		it.id = cmp.Or(w.CallID, w.ID)
	}
	return er.take(&w, it, done, out)
}

// take reads an item that has begun or is done, and of a done one what had not come in pieces.
func (er *eventReader) take(w *item, it *streamedItem, done bool, out []neutral.Event) []neutral.Event {
	if it.done {
		return out
	}
	it.done = done
	if w.Type == "function_call" || w.Type == "custom_tool_call" {
		custom := w.Type == "custom_tool_call"
		if it.call < 0 {
			if w.Name == "" {
				return out
			}
			it.call = er.begun
			er.begun++
			er.any = true
			out = append(out, neutral.Event{Kind: neutral.EventCall, Index: it.call, ID: er.c.CallID(w.CallID), Name: w.Name, Custom: custom})
			if custom {
				er.free = append(er.free, it)
			}
		}
		if !done {
			return out
		}
		if custom {
			text := ""
			if !it.said && w.Input != nil {
				text = *w.Input
			}
			out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: it.call, Text: it.fragment(text) + neutral.FreeEnd})
			it.closed = true
		} else if !it.said && w.Arguments != nil && *w.Arguments != "" {
			out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: it.call, Text: *w.Arguments})
		}
		return append(out, neutral.Event{Kind: neutral.EventCallEnd, Index: it.call})
	}
	if !done {
		return out
	}
	for _, p := range readOutput(er.c, w) {
		switch p.Kind {
		case neutral.PartText:
			if !it.said {
				out = append(out, neutral.Event{Kind: neutral.EventText, Text: p.Text})
			}
		case neutral.PartRefusal:
			if !it.said {
				out = append(out, neutral.Event{Kind: neutral.EventRefusal, Text: p.Text})
			}
		case neutral.PartReasoning:
			if !it.said && p.Text != "" {
				out = append(out, neutral.Event{Kind: neutral.EventReasoning, Text: p.Text})
			}
			if p.Seal.Value != "" {
				out = append(out, neutral.Event{Kind: neutral.EventSeal, Seal: p.Seal})
			}
		}
		er.any = true
	}
	return out
}

// rest reads the finished response for what nothing has told before: all of it where nothing came in pieces, or
// the items that have begun and were not done.
func (er *eventReader) rest(raw []byte, out []neutral.Event) []neutral.Event {
	open := map[string]*streamedItem{}
	for _, it := range er.items {
		if it.id != "" && !it.done {
			open[it.id] = it
		}
	}
	if er.any && len(open) == 0 {
		return out
	}
	var whole struct{ Output []item }
	if neutral.Decode(raw, &whole) != nil {
		return out
	}
	for i, nothing := 0, !er.any; i < len(whole.Output); i++ {
		w := &whole.Output[i]
		if it := open[cmp.Or(w.CallID, w.ID)]; it != nil {
			out = er.take(w, it, true, out)
		} else if nothing {
			out = er.take(w, er.at(w.ID, int64(i)), true, out)
		}
	}
	return out
}

func (er *eventReader) finish(kind string, raw []byte, out []neutral.Event) []neutral.Event {
	s := jsonscan.New(raw)
	r := scanResponse(&s)
	out = er.rest(raw, out)
	for _, it := range er.free {
		if !it.closed && kind == "response.completed" {
			it.closed = true
			out = append(out, neutral.Event{Kind: neutral.EventArguments, Index: it.call, Text: it.fragment("") + neutral.FreeEnd})
		}
	}
	if r.id != "" || r.model != "" {
		out = append(out, neutral.Event{Kind: neutral.EventStart, ID: r.id, Model: r.model})
	}
	end := neutral.Event{Kind: neutral.EventFinish}
	end.Finish, end.Native = r.finish(er.begun > 0)
	if strings.HasSuffix(kind, "incomplete") && end.Finish == dialect.FinishStop {
		end.Finish = dialect.FinishOther
	}
	if r.usage.Known {
		out = append(out, neutral.Event{Kind: neutral.EventUsage, Usage: r.usage})
	}
	return append(out, end)
}
