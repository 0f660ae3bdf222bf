package responses

import (
	"bytes"
	"strings"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

// NewStream begins to judge a streamed answer.
func (Dialect) NewStream(r *dialect.Request) dialect.Stream { return &stream{op: r.Operation} }

type stream struct {
	op     dialect.Operation
	answer dialect.Answer
	number int64 // of the next event
	texts  []streamedText
}

// streamedText is the text of one message so far, for an answer that fails.
type streamedText struct {
	place int64
	id    string
	text  []byte
}

func (st *stream) keep(e *event) {
	for i := range st.texts {
		if t := &st.texts[i]; t.place == e.place {
			t.text = append(t.text, e.delta...)
			return
		}
	}
	st.texts = append(st.texts, streamedText{e.place, string(e.item), append([]byte(nil), e.delta...)})
}

var _ dialect.Failer = (*stream)(nil)

// Observe implements dialect.Stream.
func (st *stream) Observe(ev *sse.Event) dialect.Observation {
	data := bytes.TrimSpace(ev.Data)
	a := &st.answer
	switch {
	case a.Terminated:
		return dialect.Observation{Skip: true}
	case !ev.HasData:
		return dialect.Observation{}
	case len(data) == 0, string(data) == "[DONE]":
		return dialect.Observation{Skip: true}
	case st.op != dialect.OpGenerate:
		a.Content = true
		return dialect.Observation{Content: true}
	}
	e, ok := scanEvent(data)
	if !ok {
		if string(ev.Name) == "error" {
			a.Error = true
			return dialect.Observation{Error: true, Envelope: data}
		}
		a.Dropped++
		return dialect.Observation{Malformed: true}
	}
	if e.response.id != "" {
		a.ID = e.response.id
	}
	if e.response.model != "" {
		a.Model = e.response.model
	}
	o := st.take(&e, data)
	if e.number >= st.number && !o.Error { // ours is in the place of theirs
		st.number = e.number + 1
	}
	return o
}

func (st *stream) take(e *event, data []byte) dialect.Observation {
	a := &st.answer
	o := dialect.Observation{Content: e.content, ToolCall: e.toolCall}
	if u := e.response.usage; u.Known {
		a.Usage, o.UsageReported = u, true
	}
	switch e.kind {
	case "response.output_text.delta":
		st.keep(e)
	case "error", "response.failed":
		a.Error = true
		return dialect.Observation{Error: true, Envelope: data}
	case "response.completed", "response.incomplete":
		r := &e.response
		o.Content, o.ToolCall = o.Content || r.content, o.ToolCall || r.toolCall
		a.ToolCall = a.ToolCall || r.toolCall
		a.Finish, a.NativeFinish = r.finish(a.ToolCall)
		if e.kind == "response.incomplete" && a.Finish == dialect.FinishStop {
			a.Finish = dialect.FinishOther
		}
		a.Terminated, o.Terminal, o.Finish = true, true, a.Finish
	}
	if e.failed && !o.Terminal {
		a.Error = true
		return dialect.Observation{Error: true, Envelope: data}
	}
	a.Content = a.Content || o.Content
	a.ToolCall = a.ToolCall || o.ToolCall
	return o
}

// Answer implements dialect.Stream.
func (st *stream) Answer() dialect.Answer {
	a := st.answer
	a.Complete = a.Terminated && !a.Error
	if st.op != dialect.OpGenerate {
		a.Complete = a.Content && !a.Error
	}
	return a
}

// ErrorEvent implements dialect.Failer: the failure goes on with the stream's id and numbers.
func (st *stream) ErrorEvent(r *dialect.ErrorReport) []byte {
	var output []item
	for _, t := range st.texts {
		output = append(output, item{Type: "message", ID: t.id, Status: "incomplete", Role: "assistant", Content: contents{said(false, string(t.text))}})
	}
	return appendFailure(nil, r, st.number, st.answer.ID, st.answer.Model, output)
}

// event is what one event's data says to a judge.
type event struct {
	kind              string
	number, place     int64
	item, delta       []byte // the item's id, and a text's delta
	failed            bool
	content, toolCall bool
	response          response
}

// scanEvent reads one event. It reports false when it is not a JSON object.
func scanEvent(data []byte) (event, bool) {
	e := event{number: -1}
	s := jsonscan.New(data)
	if s.Peek() != '{' {
		return e, false
	}
	var said bool // a delta or a finished text that is not empty
	var it part
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			e.kind = kindOf(s.Text())
		case "sequence_number":
			if n, ok := s.Int(); ok {
				e.number = n
			}
		case "output_index":
			e.place, _ = s.Int()
		case "item_id":
			e.item = s.Text()
		case "delta":
			e.delta = s.Text()
			said = len(e.delta) > 0 || said
		case "text", "arguments", "refusal", "input":
			said = s.NonEmptyString() || said
		case "item":
			it = scanItem(&s)
		case "response":
			e.response = scanResponse(&s)
		case "error":
			e.failed = jsonscan.Truthy(s.Skip()) || e.failed
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return event{}, false
	}
	switch {
	case strings.HasSuffix(e.kind, ".delta") && said:
		e.content = true
		e.toolCall = e.kind == "response.function_call_arguments.delta" || e.kind == "response.custom_tool_call_input.delta"
	case e.kind == "response.output_item.added":
		e.content, e.toolCall = it.toolCall, it.toolCall // a call has its name from the first
	case e.kind == "response.output_item.done":
		e.content, e.toolCall = it.content, it.toolCall
	case strings.HasSuffix(e.kind, ".done") && said: // of services that send no deltas
		e.content = true
		e.toolCall = e.kind == "response.function_call_arguments.done" || e.kind == "response.custom_tool_call_input.done"
	}
	return e, true
}

// kindOf returns the usual kinds without a copy.
func kindOf(word []byte) string {
	switch string(word) {
	case "response.output_text.delta":
		return "response.output_text.delta"
	case "response.function_call_arguments.delta":
		return "response.function_call_arguments.delta"
	case "response.custom_tool_call_input.delta":
		return "response.custom_tool_call_input.delta"
	case "response.reasoning_summary_text.delta":
		return "response.reasoning_summary_text.delta"
	}
	return string(word)
}
