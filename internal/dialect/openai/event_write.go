package openai

import (
	"maps"
	"slices"
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// NewEventWriter begins a client's stream.
func (Dialect) NewEventWriter(c *neutral.Context) neutral.EventWriter { return &eventWriter{c: c} }

type eventWriter struct {
	told   neutral.Told
	c      *neutral.Context
	head   []byte // what every chunk begins with
	called bool
	bare   []int                     // calls that have begun and have no arguments yet
	free   map[int]*neutral.FreeText // custom calls, by their index
	seal   neutral.Seal              // for the call that follows
}

// Write implements neutral.EventWriter.
func (w *eventWriter) Write(dst []byte, e *neutral.Event) []byte {
	if w.told.Note(e) {
		return dst
	}
	switch e.Kind {
	case neutral.EventSeal:
		w.seal = e.Seal
	case neutral.EventText:
		dst = w.piece(dst, `"content":`, e.Text)
	case neutral.EventReasoning:
		dst = w.piece(dst, `"reasoning_content":`, e.Text)
	case neutral.EventRefusal:
		dst = w.piece(dst, `"refusal":`, e.Text)
	case neutral.EventCall:
		dst = w.call(dst, e)
	case neutral.EventArguments:
		if e.Text == "" {
			return dst
		}
		if f := w.free[e.Index]; f != nil {
			return w.input(dst, e.Index, f.Add(e.Text))
		}
		w.bare = slices.DeleteFunc(w.bare, func(i int) bool { return i == e.Index })
		dst = w.arguments(dst, e.Index, e.Text)
	case neutral.EventCallEnd:
		if f := w.free[e.Index]; f != nil && f.Whole() {
			dst = w.input(dst, e.Index, f.End())
		}
		if slices.Contains(w.bare, e.Index) {
			w.bare = slices.DeleteFunc(w.bare, func(i int) bool { return i == e.Index })
			dst = w.arguments(dst, e.Index, "{}")
		}
	}
	return dst
}

func (w *eventWriter) arguments(dst []byte, index int, text string) []byte {
	if w.c.Request.Functions {
		return w.function(dst, index, `{"arguments":`, text)
	}
	dst = append(w.begin(dst), `{"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, `,"function":{"arguments":`...)
	dst = dialect.AppendString(dst, text)
	return append(dst, `}}]},"finish_reason":null}]}`+"\n\n"...)
}

// input appends a part of the text of a custom call.
func (w *eventWriter) input(dst []byte, index int, text string) []byte {
	if text == "" {
		return dst
	}
	dst = append(w.begin(dst), `{"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(index), 10)
	dst = append(dst, `,"custom":{"input":`...)
	dst = dialect.AppendString(dst, text)
	return append(dst, `}}]},"finish_reason":null}]}`+"\n\n"...)
}

// function appends a part of the one call where older clients look for it.
func (w *eventWriter) function(dst []byte, index int, member, text string) []byte {
	if index > 0 {
		return dst
	}
	dst = append(append(w.begin(dst), `{"function_call":`...), member...)
	dst = dialect.AppendString(dst, text)
	return append(dst, `}},"finish_reason":null}]}`+"\n\n"...)
}

func (w *eventWriter) call(dst []byte, e *neutral.Event) []byte {
	w.called = true
	if w.c.Request.Functions {
		w.bare = append(w.bare, e.Index)
		return w.function(dst, e.Index, `{"name":`, e.Name)
	}
	kind, rest := `,"type":"function","function":{"name":`, `,"arguments":""}`
	if e.Custom {
		kind, rest = `,"type":"custom","custom":{"name":`, `,"input":""}`
		if w.free == nil {
			w.free = map[int]*neutral.FreeText{}
		}
		w.free[e.Index] = &neutral.FreeText{}
	} else {
		w.bare = append(w.bare, e.Index)
	}
	dst = append(w.begin(dst), `{"tool_calls":[{"index":`...)
	dst = strconv.AppendInt(dst, int64(e.Index), 10)
	dst = append(dst, `,"id":`...)
	dst = dialect.AppendString(dst, e.ID)
	dst = append(dst, kind...)
	dst = dialect.AppendString(dst, e.Name)
	dst = append(dst, rest...)
	if x := extra(w.seal); x != nil {
		dst = append(append(dst, `,"extra_content":`...), neutral.Encode(x)...)
	}
	w.seal = neutral.Seal{}
	return append(dst, `}]},"finish_reason":null}]}`+"\n\n"...)
}

// begin appends a chunk up to its delta, after the chunk with the role if it is the first.
func (w *eventWriter) begin(dst []byte) []byte {
	if w.head == nil {
		if w.told.ID == "" {
			w.told.ID = w.c.NewID("chatcmpl-")
		}
		w.setHead(w.c.Now.Unix())
		dst = append(dst, w.head...)
		dst = append(dst, `{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`+"\n\n"...)
	}
	dst = append(dst, w.head...)
	return append(dst, `{"index":0,"delta":`...)
}

// setHead makes what every chunk begins with.
func (w *eventWriter) setHead(created int64) {
	w.head = append(w.head[:0], `data: {"id":`...)
	w.head = dialect.AppendString(w.head, w.told.ID)
	w.head = append(w.head, `,"object":"chat.completion.chunk","created":`...)
	w.head = strconv.AppendInt(w.head, created, 10)
	w.head = append(w.head, `,"model":`...)
	w.head = dialect.AppendString(w.head, w.c.ModelOr(w.told.Model))
	w.head = append(w.head, `,"choices":[`...)
}

func (w *eventWriter) piece(dst []byte, member, text string) []byte {
	if text == "" {
		return dst
	}
	dst = append(append(w.begin(dst), '{'), member...)
	dst = dialect.AppendString(dst, text)
	return append(dst, `},"finish_reason":null}]}`+"\n\n"...)
}

// End implements neutral.EventWriter.
func (w *eventWriter) End(dst []byte) []byte {
	for _, index := range w.bare {
		dst = w.arguments(dst, index, "{}")
	}
	for _, index := range slices.Sorted(maps.Keys(w.free)) {
		dst = w.input(dst, index, w.free[index].End())
	}
	dst = append(w.begin(dst), `{},"finish_reason":"`...)
	dst = append(dst, finishWord(w.c.Request, w.told.Ending.Finish, w.called)...)
	dst = append(dst, `"}]}`+"\n\n"...)
	if count := countOf(w.told.Usage); count != nil && w.c.Request.IncludeUsage {
		dst = append(dst, w.head...)
		dst = append(dst, `],"usage":`...)
		dst = append(dst, neutral.Encode(count)...)
		dst = append(dst, "}\n\n"...)
	}
	return append(dst, Dialect{}.Terminator()...)
}

// Fail implements neutral.EventWriter.
func (w *eventWriter) Fail(dst []byte, r *dialect.ErrorReport) []byte {
	return append(dst, Dialect{}.ErrorEvent(r)...)
}
