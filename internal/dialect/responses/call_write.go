package responses

import (
	"cmp"
	"encoding/json"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// whole reports whether a call can be closed: not every upstream says whether one was cut.
func (o *openItem) whole() bool {
	if o.free != nil {
		return o.free.Whole()
	}
	return len(o.text) == 0 || json.Valid(o.text)
}

func (w *eventWriter) call(dst []byte, e *neutral.Event) []byte {
	it := newCall(w.c, &neutral.Call{ID: e.ID, Name: e.Name, Custom: e.Custom})
	empty := ""
	if e.Custom {
		it.Input = &empty
	} else {
		it.Arguments = &empty
	}
	var o *openItem
	dst, o = w.start(w.close(dst), it)
	if e.Custom {
		o.free = &neutral.FreeText{}
	}
	w.calls[e.Index] = o
	w.order = append(w.order, e.Index)
	return dst
}

// input appends a part of the text of a custom call.
func (w *eventWriter) input(dst []byte, o *openItem, text string) []byte {
	if text == "" {
		return dst
	}
	o.text = append(o.text, text...)
	return w.delta(dst, "response.custom_tool_call_input.delta", o, "", text)
}

func (w *eventWriter) closeCall(dst []byte, index int) []byte {
	o := w.calls[index]
	if o == nil {
		return dst
	}
	delete(w.calls, index)
	if o.free != nil {
		dst = w.input(dst, o, o.free.End())
		text := string(o.text)
		o.item.Input = &text
		body := dialect.AppendString(append(w.where(o, ""), `,"input":`...), text)
		return w.finish(w.event(dst, "response.custom_tool_call_input.done", body), o)
	}
	args := cmp.Or(string(o.text), "{}")
	o.item.Arguments = &args
	body := dialect.AppendString(append(w.where(o, ""), `,"name":`...), o.item.Name)
	body = dialect.AppendString(append(body, `,"arguments":`...), args)
	return w.finish(w.event(dst, "response.function_call_arguments.done", body), o)
}

// cut keeps a call that the token limit has cut for the response, and calls it nowhere done: a
// client that runs what is done would run half of it.
func (w *eventWriter) cut(o *openItem) {
	text := string(o.text)
	o.item.Status = "incomplete"
	if o.free != nil {
		o.item.Input = &text
	} else {
		o.item.Arguments = &text
	}
	w.done[o.place] = &o.item
}
