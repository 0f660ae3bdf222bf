package anthropic

import (
	"strconv"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/neutral"
	"omniroute/internal/dialect/sse"
)

// NewEventWriter begins a client's stream.
func (Dialect) NewEventWriter(c *neutral.Context) neutral.EventWriter {
	return &eventWriter{c: c, index: -1}
}

type eventWriter struct {
	told    neutral.Told
	c       *neutral.Context
	started bool
	index   int // of the last block that was opened
	seq     neutral.Sequence
	steps   []neutral.Step
	called  bool
	refused bool
	sealed  bool // the open thought has its signature
}

// Write implements neutral.EventWriter. The beginning waits for the first block, since some
// upstreams tell who they are only then; the end waits for End, since usage may follow it.
func (w *eventWriter) Write(dst []byte, e *neutral.Event) []byte {
	if w.told.Note(e) {
		return dst
	}
	switch e.Kind {
	case neutral.EventText, neutral.EventRefusal, neutral.EventReasoning, neutral.EventArguments:
		if e.Text == "" {
			return dst
		}
	}
	w.steps = w.seq.Add(e, w.steps[:0])
	return w.write(dst)
}

func (w *eventWriter) write(dst []byte) []byte {
	for i := range w.steps {
		s := &w.steps[i]
		switch s.Kind {
		case neutral.StepOpen:
			dst = w.open(w.start(dst), &s.Event)
		case neutral.StepDelta:
			dst = w.delta(dst, &s.Event)
		case neutral.StepClose:
			dst = w.close(dst, s.Event.Kind)
		}
	}
	return dst
}

func (w *eventWriter) start(dst []byte) []byte {
	if w.started {
		return dst
	}
	w.started = true
	if w.told.ID == "" {
		w.told.ID = w.c.NewID("msg_")
	}
	begin := struct {
		Type    string `json:"type"`
		Message answer `json:"message"`
	}{"message_start", answer{ID: w.told.ID, Type: "message", Role: "assistant", Model: w.c.ModelOr(w.told.Model), Content: blocks{}, Usage: wireUsage(w.told.Usage)}}
	return sse.Append(dst, "message_start", neutral.Encode(begin))
}

func (w *eventWriter) open(dst []byte, e *neutral.Event) []byte {
	w.index++
	w.sealed = false
	dst = append(dst, "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(w.index), 10)
	switch e.Kind {
	case neutral.EventCall:
		w.called = true
		dst = append(dst, ",\"content_block\":{\"type\":\"tool_use\",\"id\":"...)
		dst = dialect.AppendString(dst, neutral.PlainID(e.ID)) // clients may send it to Anthropic later
		dst = append(dst, ",\"name\":"...)
		dst = dialect.AppendString(dst, e.Name)
		return append(dst, ",\"input\":{}}}\n\n"...)
	case neutral.EventReasoning:
		dst = append(dst, ",\"content_block\":{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}}\n\n"...)
	default:
		w.refused = w.refused || e.Kind == neutral.EventRefusal
		dst = append(dst, ",\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"...)
	}
	return w.delta(dst, e)
}

func (w *eventWriter) delta(dst []byte, e *neutral.Event) []byte {
	switch e.Kind {
	case neutral.EventText, neutral.EventRefusal:
		return w.piece(dst, "text_delta\",\"text\":", e.Text)
	case neutral.EventReasoning:
		return w.piece(dst, "thinking_delta\",\"thinking\":", e.Text)
	case neutral.EventArguments:
		return w.piece(dst, "input_json_delta\",\"partial_json\":", e.Text)
	case neutral.EventSeal:
		w.sealed = true
		return w.piece(dst, "signature_delta\",\"signature\":", e.Seal.WrapAny(name))
	}
	return dst
}

// piece appends a delta; head is its type and the name of its one member.
func (w *eventWriter) piece(dst []byte, head, text string) []byte {
	if text == "" {
		return dst
	}
	dst = append(dst, "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(w.index), 10)
	dst = append(dst, ",\"delta\":{\"type\":\""...)
	dst = append(dst, head...)
	dst = dialect.AppendString(dst, text)
	return append(dst, "}}\n\n"...)
}

func (w *eventWriter) close(dst []byte, kind neutral.EventKind) []byte {
	if kind == neutral.EventReasoning && !w.sealed {
		dst = w.piece(dst, "signature_delta\",\"signature\":", neutral.Unsealed.Wrap(name))
	}
	dst = append(dst, "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":"...)
	dst = strconv.AppendInt(dst, int64(w.index), 10)
	return append(dst, "}\n\n"...)
}

// End implements neutral.EventWriter.
func (w *eventWriter) End(dst []byte) []byte {
	w.steps = w.seq.End(w.steps[:0])
	dst = w.start(w.write(dst))
	end := struct {
		Type  string `json:"type"`
		Delta struct {
			StopReason   string  `json:"stop_reason"`
			StopSequence *string `json:"stop_sequence"`
		} `json:"delta"`
		Usage *usage `json:"usage"`
	}{Type: "message_delta", Usage: wireUsage(w.told.Usage)}
	end.Delta.StopReason = stopReason(w.told.Ending, w.called, w.refused)
	if end.Delta.StopReason == "stop_sequence" {
		end.Delta.StopSequence = &w.told.Ending.Stop
	}
	dst = sse.Append(dst, "message_delta", neutral.Encode(end))
	return append(dst, Dialect{}.Terminator()...)
}

// Fail implements neutral.EventWriter.
func (w *eventWriter) Fail(dst []byte, r *dialect.ErrorReport) []byte {
	return append(dst, Dialect{}.ErrorEvent(r)...)
}
