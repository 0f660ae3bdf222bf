package anthropic

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/jsonscan"
	"omniroute/internal/dialect/sse"
)

// NewStream begins to judge a streamed answer.
func (Dialect) NewStream(r *dialect.Request) dialect.Stream { return &stream{op: r.Operation} }

type stream struct {
	op      dialect.Operation
	answer  dialect.Answer
	usage   usage
	started bool
}

// Observe implements dialect.Stream.
func (st *stream) Observe(ev *sse.Event) dialect.Observation {
	data := bytes.TrimSpace(ev.Data)
	a := &st.answer
	switch {
	case a.Terminated:
		return dialect.Observation{Skip: true}
	case string(ev.Name) == "error":
		a.Error = true
		return dialect.Observation{Error: true, Envelope: data}
	case !ev.HasData:
		return dialect.Observation{}
	case len(data) == 0, string(data) == "[DONE]":
		return dialect.Observation{Skip: true}
	}
	if st.op == dialect.OpOther {
		a.Content = true
		return dialect.Observation{Content: true}
	}
	e, ok := scanEvent(data)
	if !ok {
		a.Dropped++
		return dialect.Observation{Malformed: true}
	}
	if e.failed {
		a.Error = true
		return dialect.Observation{Error: true, Envelope: data}
	}
	return st.take(&e)
}

func (st *stream) take(e *event) dialect.Observation {
	a := &st.answer
	o := dialect.Observation{Content: e.content, ToolCall: e.toolCall, UsageReported: e.usage.known()}
	switch {
	case e.kind == "message_start" && st.started:
		return dialect.Observation{Skip: true} // clients fail on a second beginning
	case e.kind == "message_start":
		st.started = true
		a.Model, a.ID = string(e.model), string(e.id)
	case e.kind == "message_stop":
		a.Terminated = true
		o.Terminal = true
	}
	a.Content = a.Content || o.Content
	a.ToolCall = a.ToolCall || o.ToolCall
	st.usage.merge(&e.usage)
	if e.stopReason != "" {
		a.NativeFinish = e.stopReason
		a.Finish = finishOf(e.stopReason)
		o.Finish = a.Finish
	}
	return o
}

func (u *usage) known() bool { return u.Input != nil || u.Output != nil }

// Answer implements dialect.Stream.
func (st *stream) Answer() dialect.Answer {
	a := st.answer
	a.Usage = st.usage.neutral()
	a.Complete = a.Finish != dialect.FinishNone && !a.Error
	if st.op == dialect.OpOther {
		a.Complete = a.Content && !a.Error
	}
	return a
}

// event is what one event's data says to a judge.
type event struct {
	kind              string
	failed            bool
	content, toolCall bool
	stopReason        string
	id, model         []byte
	usage             usage
}

// scanEvent reads one event. It reports false when it is not a JSON object.
func scanEvent(data []byte) (event, bool) {
	var e event
	s := jsonscan.New(data)
	if s.Peek() != '{' {
		return e, false
	}
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "type":
			e.kind = kindOf(s.Text())
		case "error":
			e.failed = jsonscan.Truthy(s.Skip()) || e.failed
		case "delta":
			e.scanDelta(&s)
		case "content_block":
			e.scanBlock(&s)
		case "message":
			for ok := s.Object(); ok; ok = s.More('}') {
				switch key := s.Key(); string(key) {
				case "id":
					e.id = s.Text()
				case "model":
					e.model = s.Text()
				case "usage":
					scanUsage(&s, &e.usage)
				default:
					s.Skip()
				}
			}
		case "usage":
			scanUsage(&s, &e.usage)
		default:
			s.Skip()
		}
	}
	if s.End() != nil {
		return event{}, false
	}
	e.failed = e.failed || e.kind == "error"
	return e, true
}

// kindOf returns the known kinds without a copy.
func kindOf(word []byte) string {
	switch string(word) {
	case "content_block_delta":
		return "content_block_delta"
	case "content_block_start":
		return "content_block_start"
	case "content_block_stop":
		return "content_block_stop"
	case "message_start":
		return "message_start"
	case "message_delta":
		return "message_delta"
	case "message_stop":
		return "message_stop"
	case "ping":
		return "ping"
	}
	return string(word)
}

func (e *event) scanDelta(s *jsonscan.Scanner) {
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "text", "thinking":
			e.content = s.NonEmptyString() || e.content
		case "partial_json":
			if s.NonEmptyString() {
				e.content, e.toolCall = true, true
			}
		case "stop_reason":
			e.stopReason = string(s.Text())
		default:
			s.Skip()
		}
	}
}

// scanBlock reads a block: the start of one in a stream, or a whole one.
func (e *event) scanBlock(s *jsonscan.Scanner) {
	for ok := s.Object(); ok; ok = s.More('}') {
		switch key := s.Key(); string(key) {
		case "text", "thinking":
			e.content = s.NonEmptyString() || e.content
		case "data": // of redacted thinking
			e.content = s.NonEmptyString() || e.content
		case "name": // of a tool, the client's or the upstream's own
			if s.NonEmptyString() {
				e.content, e.toolCall = true, true
			}
		case "tool_use_id": // the result of an upstream's own tool
			e.content = s.NonEmptyString() || e.content
		default:
			s.Skip()
		}
	}
}

func scanUsage(s *jsonscan.Scanner, u *usage) {
	for ok := s.Object(); ok; ok = s.More('}') {
		var to **int64
		switch key := s.Key(); string(key) {
		case "input_tokens":
			to = &u.Input
		case "output_tokens":
			to = &u.Output
		case "cache_read_input_tokens":
			to = &u.CacheRead
		case "cache_creation_input_tokens":
			to = &u.CacheWrite
		case "output_tokens_details":
			for ok := s.Object(); ok; ok = s.More('}') {
				if key := s.Key(); string(key) != "thinking_tokens" {
					s.Skip()
					continue
				}
				if n, ok := s.Int(); ok {
					u.OutputParts = &struct {
						Thinking *int64 `json:"thinking_tokens,omitempty"`
					}{&n}
				}
			}
			continue
		default:
			s.Skip()
			continue
		}
		if n, ok := s.Int(); ok && n >= 0 {
			*to = &n
		}
	}
}
