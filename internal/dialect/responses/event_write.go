package responses

import (
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// NewEventWriter begins a client's stream.
func (Dialect) NewEventWriter(c *neutral.Context) neutral.EventWriter {
	return &eventWriter{c: c, calls: map[int]*openItem{}}
}

type eventWriter struct {
	told     neutral.Told
	c        *neutral.Context
	response *envelope // from the first event on
	number   int64
	open     *openItem         // the message or thought that grows
	calls    map[int]*openItem // the calls that grow
	done     []*item           // by place in the output; nil while an item grows
	order    []int             // the calls in order
	seal     neutral.Seal
	buf      []byte
}

// openItem is an item that grows.
type openItem struct {
	item    item
	place   int
	kind    neutral.EventKind // of a message's part that grows
	text    []byte            // of the part, the thought or the arguments
	part    int               // the part's place in the message
	growing bool              // a part has begun
	free    *neutral.FreeText // of a custom call, whose text then is the input
}

// Write implements neutral.EventWriter.
func (w *eventWriter) Write(dst []byte, e *neutral.Event) []byte {
	if w.told.Note(e) {
		return dst
	}
	switch e.Kind {
	case neutral.EventText, neutral.EventRefusal:
		if e.Text != "" {
			dst = w.say(dst, e)
		}
	case neutral.EventReasoning:
		if e.Text != "" {
			dst = w.think(dst, e.Text)
		}
	case neutral.EventSeal:
		dst = w.think(dst, "")
		w.seal = e.Seal
		dst = w.close(dst)
	case neutral.EventCall:
		dst = w.call(dst, e)
	case neutral.EventArguments:
		if it := w.calls[e.Index]; it != nil && e.Text != "" {
			if it.free != nil {
				return w.input(dst, it, it.free.Add(e.Text))
			}
			it.text = append(it.text, e.Text...)
			dst = w.delta(dst, "response.function_call_arguments.delta", it, "", e.Text)
		}
	case neutral.EventCallEnd:
		if it := w.calls[e.Index]; it != nil && it.whole() {
			dst = w.closeCall(dst, e.Index)
		}
	}
	return dst
}

// event appends an event. It begins with type and number; the rest comes from members, each
// with a comma before it.
func (w *eventWriter) event(dst []byte, kind string, members ...[]byte) []byte {
	dst = append(append(append(dst, "event: "...), kind...), "\ndata: {\"type\":\""...)
	dst = append(append(dst, kind...), "\",\"sequence_number\":"...)
	dst = strconv.AppendInt(dst, w.number, 10)
	w.number++
	for _, m := range members {
		dst = append(dst, m...)
	}
	return append(dst, "}\n\n"...)
}

// begin appends the two events that a stream begins with.
func (w *eventWriter) begin(dst []byte) []byte {
	if w.response != nil {
		return dst
	}
	if w.told.ID == "" {
		w.told.ID = w.c.NewID("resp_")
	}
	w.response = newEnvelope(w.c, w.told.ID, w.c.ModelOr(w.told.Model))
	body := append([]byte(`,"response":`), neutral.Encode(w.response)...)
	dst = w.event(dst, "response.created", body)
	return w.event(dst, "response.in_progress", body)
}

// start opens an item.
func (w *eventWriter) start(dst []byte, it item) ([]byte, *openItem) {
	dst = w.begin(dst)
	o := &openItem{item: it, place: len(w.done)}
	w.done = append(w.done, nil)
	shown := it
	shown.Status = "in_progress"
	body := neutral.Encode(shown)
	if it.Type == "message" { // strict clients want the list even when it is empty
		body = append(body[:len(body)-1], `,"content":[]}`...)
	}
	return w.event(dst, "response.output_item.added", w.at(o), append([]byte(`,"item":`), body...)), o
}

// at returns the member that tells an item's place.
func (w *eventWriter) at(o *openItem) []byte {
	w.buf = append(w.buf[:0], `,"output_index":`...)
	w.buf = strconv.AppendInt(w.buf, int64(o.place), 10)
	return w.buf
}

// where returns the members that tell an item's id and place, and the place of its part in
// the member of that name, if any.
func (w *eventWriter) where(o *openItem, member string) []byte {
	w.buf = append(w.buf[:0], `,"item_id":`...)
	w.buf = dialect.AppendString(w.buf, o.item.ID)
	w.buf = append(w.buf, `,"output_index":`...)
	w.buf = strconv.AppendInt(w.buf, int64(o.place), 10)
	if member != "" {
		w.buf = append(append(append(w.buf, ',', '"'), member...), `":`...)
		w.buf = strconv.AppendInt(w.buf, int64(o.part), 10)
	}
	return w.buf
}

func (w *eventWriter) delta(dst []byte, kind string, o *openItem, member, text string) []byte {
	head := append(w.where(o, member), `,"delta":`...)
	head = dialect.AppendString(head, text)
	if kind == "response.output_text.delta" {
		head = append(head, `,"logprobs":[]`...)
	}
	w.buf = head
	return w.event(dst, kind, head)
}

func (w *eventWriter) say(dst []byte, e *neutral.Event) []byte {
	if w.open == nil || w.open.item.Type != "message" {
		dst, w.open = w.start(w.close(dst), newMessage(w.c))
	}
	o := w.open
	if o.growing && o.kind != e.Kind {
		dst = w.closePart(dst, o)
	}
	if !o.growing {
		o.growing, o.kind, o.part, o.text = true, e.Kind, len(o.item.Content), o.text[:0]
		body := append(w.where(o, "content_index"), `,"part":`...)
		dst = w.event(dst, "response.content_part.added", append(body, neutral.Encode(said(e.Kind == neutral.EventRefusal, ""))...))
	}
	o.text = append(o.text, e.Text...)
	kind := "response.output_text.delta"
	if e.Kind == neutral.EventRefusal {
		kind = "response.refusal.delta"
	}
	return w.delta(dst, kind, o, "content_index", e.Text)
}

func (w *eventWriter) think(dst []byte, text string) []byte {
	if w.open == nil || w.open.item.Type != "reasoning" {
		dst, w.open = w.start(w.close(dst), item{Type: "reasoning", ID: w.c.NewID("rs_"), Summary: &[]piece{}})
	}
	o := w.open
	if text == "" {
		return dst
	}
	if !o.growing {
		o.growing = true
		dst = w.event(dst, "response.reasoning_summary_part.added", append(w.where(o, "summary_index"), `,"part":{"type":"summary_text","text":""}`...))
	}
	o.text = append(o.text, text...)
	return w.delta(dst, "response.reasoning_summary_text.delta", o, "summary_index", text)
}

// close ends the message or thought that grows.
func (w *eventWriter) close(dst []byte) []byte {
	o := w.open
	if o == nil {
		return dst
	}
	w.open = nil
	if o.item.Type == "message" {
		return w.finish(w.closePart(dst, o), o)
	}
	text := string(o.text)
	if o.growing {
		body := append(w.where(o, "summary_index"), `,"text":`...)
		dst = w.event(dst, "response.reasoning_summary_text.done", dialect.AppendString(body, text))
		part := piece{Type: "summary_text", Text: &text}
		body = append(w.where(o, "summary_index"), `,"part":`...)
		dst = w.event(dst, "response.reasoning_summary_part.done", append(body, neutral.Encode(part)...))
		o.item.Summary = &[]piece{part}
	}
	o.item.EncryptedContent = w.seal.WrapAny(name)
	w.seal = neutral.Seal{}
	return w.finish(dst, o)
}

func (w *eventWriter) closePart(dst []byte, o *openItem) []byte {
	if !o.growing {
		return dst
	}
	o.growing = false
	refused := o.kind == neutral.EventRefusal
	part := said(refused, string(o.text))
	o.item.Content = append(o.item.Content, part)
	kind, member := "response.output_text.done", `,"text":`
	if refused {
		kind, member = "response.refusal.done", `,"refusal":`
	}
	body := dialect.AppendString(append(w.where(o, "content_index"), member...), string(o.text))
	if !refused {
		body = append(body, `,"logprobs":[]`...)
	}
	dst = w.event(dst, kind, body)
	body = append(w.where(o, "content_index"), `,"part":`...)
	return w.event(dst, "response.content_part.done", append(body, neutral.Encode(part)...))
}

func (w *eventWriter) finish(dst []byte, o *openItem) []byte {
	w.done[o.place] = &o.item
	return w.event(dst, "response.output_item.done", w.at(o), append([]byte(`,"item":`), neutral.Encode(o.item)...))
}

// End implements neutral.EventWriter.
func (w *eventWriter) End(dst []byte) []byte {
	dst = w.close(w.begin(dst))
	for _, index := range w.order {
		if o := w.calls[index]; o != nil && w.told.Ending.Finish == dialect.FinishLength && !o.whole() {
			w.cut(o)
		} else {
			dst = w.closeCall(dst, index)
		}
	}
	r := w.response
	for _, it := range w.done {
		r.Output = append(r.Output, *it)
	}
	r.end(w.c, w.told.Ending, w.told.Usage)
	kind := "response.completed"
	if r.Status == "incomplete" {
		kind = "response.incomplete"
	}
	return w.event(dst, kind, append([]byte(`,"response":`), neutral.Encode(r)...))
}

// Fail implements neutral.EventWriter. The failed response holds the items that are whole and the
// text that has come, never a call that is not whole.
func (w *eventWriter) Fail(dst []byte, r *dialect.ErrorReport) []byte {
	dst = w.begin(dst)
	var output []item
	for place, it := range w.done {
		switch o := w.open; {
		case it != nil:
			output = append(output, *it)
		case o != nil && o.place == place && o.item.Type == "message":
			part := o.item
			part.Status = "incomplete"
			if o.growing {
				part.Content = append(part.Content, said(o.kind == neutral.EventRefusal, string(o.text)))
			}
			output = append(output, part)
		}
	}
	return appendFailure(dst, r, w.number, w.told.ID, w.c.ModelOr(w.told.Model), output)
}
