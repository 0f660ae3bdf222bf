package gemini

import (
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
)

// NewEventWriter begins a client's stream.
func (Dialect) NewEventWriter(c *neutral.Context) neutral.EventWriter { return &eventWriter{c: c} }

type eventWriter struct {
	told  neutral.Told
	c     *neutral.Context
	tail  []byte // what every event ends with
	seq   neutral.Sequence
	steps []neutral.Step
	call  neutral.Call // that grows
	said  bool         // the open thought has text
	seal  neutral.Seal // for the call that follows
}

// Write implements neutral.EventWriter. Calls are written when they are whole.
func (w *eventWriter) Write(dst []byte, e *neutral.Event) []byte {
	if w.told.Note(e) {
		return dst
	}
	w.steps = w.seq.Add(e, w.steps[:0])
	return w.write(dst)
}

func (w *eventWriter) write(dst []byte) []byte {
	for i := range w.steps {
		e := &w.steps[i].Event
		if w.steps[i].Kind == neutral.StepClose {
			if e.Kind == neutral.EventCall && !cutOff(&w.call, w.told.Ending.Finish) {
				dst = w.event(dst, &part{FunctionCall: &functionCall{ID: w.call.ID, Name: w.call.Name, Args: w.call.Object()}, ThoughtSignature: w.seal.Wrap(name)})
				w.seal = neutral.Seal{}
			}
			continue
		}
		switch e.Kind {
		case neutral.EventText, neutral.EventRefusal:
			dst = w.text(dst, e.Text, false)
		case neutral.EventReasoning:
			if w.steps[i].Kind == neutral.StepOpen {
				w.said = false
			}
			w.said = w.said || e.Text != ""
			dst = w.text(dst, e.Text, true)
		case neutral.EventSeal:
			if !w.said {
				w.seal = e.Seal
			} else if s := e.Seal.Wrap(name); s != "" {
				empty := ""
				dst = w.event(dst, &part{Text: &empty, Thought: true, ThoughtSignature: s})
			}
		case neutral.EventCall:
			w.call = neutral.Call{ID: e.ID, Name: e.Name}
		case neutral.EventArguments:
			w.call.Arguments += e.Text
		}
	}
	return dst
}

// begin appends an event up to its first part.
func (w *eventWriter) begin(dst []byte) []byte {
	if w.tail == nil {
		if w.told.ID == "" {
			w.told.ID = w.c.NewID("")
		}
		w.tail = append(w.tail, `,"modelVersion":`...)
		w.tail = dialect.AppendString(w.tail, w.c.ModelOr(w.told.Model))
		w.tail = append(w.tail, `,"responseId":`...)
		w.tail = dialect.AppendString(w.tail, w.told.ID)
		w.tail = append(w.tail, "}\n\n"...)
	}
	return append(dst, `data: {"candidates":[{"content":{"role":"model","parts":[`...)
}

func (w *eventWriter) text(dst []byte, text string, thought bool) []byte {
	if text == "" {
		return dst
	}
	dst = append(w.begin(dst), `{"text":`...)
	dst = dialect.AppendString(dst, text)
	if thought {
		dst = append(dst, `,"thought":true`...)
	}
	dst = append(dst, `}]},"index":0}]`...)
	return append(dst, w.tail...)
}

func (w *eventWriter) event(dst []byte, p *part) []byte {
	dst = append(w.begin(dst), neutral.Encode(p)...)
	dst = append(dst, `]},"index":0}]`...)
	return append(dst, w.tail...)
}

// End implements neutral.EventWriter.
func (w *eventWriter) End(dst []byte) []byte {
	w.steps = w.seq.End(w.steps[:0])
	dst = append(w.begin(w.write(dst)), `{"text":""}]},"finishReason":"`...)
	dst = append(dst, finishWord(w.told.Ending.Finish)...)
	dst = append(dst, `","index":0}]`...)
	if u := usageOf(w.told.Usage); u != nil {
		dst = append(append(dst, `,"usageMetadata":`...), neutral.Encode(u)...)
	}
	return append(dst, w.tail...)
}

// Fail implements neutral.EventWriter.
func (w *eventWriter) Fail(dst []byte, r *dialect.ErrorReport) []byte {
	return append(dst, Dialect{}.ErrorEvent(r)...)
}
