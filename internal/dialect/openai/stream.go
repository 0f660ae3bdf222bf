package openai

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// NewStream begins to judge a streamed answer.
func (Dialect) NewStream(r *dialect.Request) dialect.Stream {
	return &stream{op: r.Operation}
}

type stream struct {
	op             dialect.Operation
	answer         dialect.Answer
	end            ending
	seen, finished choiceSet
	repeat         repeat
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
	case len(data) == 0:
		return dialect.Observation{Skip: true}
	case string(data) == "[DONE]":
		a.Terminated = true
		return dialect.Observation{Terminal: true}
	}
	if st.repeat.matches(data) {
		st.repeat.misses = 0
		return dialect.Observation{Content: true}
	}
	c := scanChunk(data, true)
	if !c.object {
		return st.unreadable(ev, data)
	}
	if st.op != dialect.OpGenerate {
		c.failed = c.failed && !c.entity
		c.content = !c.failed
	} else if c.foreign() {
		return dialect.Observation{Skip: true}
	}
	st.seen.join(c.seen)
	st.finished.join(c.finished)
	st.end.note(c.end)
	a.Content = a.Content || c.content
	a.ToolCall = a.ToolCall || c.toolCall
	a.Error = a.Error || c.failed
	if c.usage.Known {
		a.Usage = c.usage
	}
	if len(c.model) > 0 && a.Model != string(c.model) {
		a.Model = string(c.model)
	}
	obs := dialect.Observation{
		Content: c.content, ToolCall: c.toolCall, Finish: c.end.finish,
		Error: c.failed, UsageReported: c.usage.Known,
	}
	if c.failed {
		obs.Envelope = c.envelope
	}
	if st.op == dialect.OpGenerate && c.content && !c.toolCall && c.end.finish == dialect.FinishNone && !c.failed && !c.usage.Known {
		st.repeat.learn(data)
	}
	return obs
}

// unreadable judges data that is no JSON object. Chat events have no names, so that a named
// one is some service's heartbeat; endpoints that we do not know may send what they like.
func (st *stream) unreadable(ev *sse.Event, data []byte) dialect.Observation {
	switch {
	case st.op == dialect.OpOther:
		st.answer.Content = true
		return dialect.Observation{Content: true}
	case listsError(data):
		st.answer.Error = true
		return dialect.Observation{Error: true, Envelope: data}
	case len(ev.Name) > 0 && string(ev.Name) != "message":
		return dialect.Observation{Skip: true}
	}
	st.answer.Dropped++
	return dialect.Observation{Malformed: true}
}

// Answer implements dialect.Stream.
func (st *stream) Answer() dialect.Answer {
	a := st.answer
	a.Finish, a.NativeFinish = st.end.finish, st.end.native
	whole := a.Content
	if st.op == dialect.OpGenerate {
		whole = !st.seen.empty() && st.seen == st.finished
	}
	a.Complete = whole && !a.Error
	return a
}
