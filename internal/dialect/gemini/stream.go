package gemini

import (
	"bytes"

	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
)

// NewStream begins to judge a streamed answer.
func (Dialect) NewStream(r *dialect.Request) dialect.Stream { return &stream{op: r.Operation} }

type stream struct {
	op     dialect.Operation
	answer dialect.Answer
}

// Observe implements dialect.Stream. Clients of this dialect fail on comments and on [DONE].
func (st *stream) Observe(ev *sse.Event) dialect.Observation {
	data := bytes.TrimSpace(ev.Data)
	a := &st.answer
	switch {
	case len(data) == 0, string(data) == "[DONE]":
		return dialect.Observation{Skip: true}
	case st.op == dialect.OpOther:
		a.Content = true
		return dialect.Observation{Content: true}
	}
	c, err := scanChunk(data)
	if listed(data) {
		c.failed = true
	}
	if err != nil || !c.object && !c.failed {
		a.Dropped++
		return dialect.Observation{Malformed: true}
	}
	if c.failed {
		a.Error = true
		return dialect.Observation{Error: true, Envelope: data}
	}
	if c.id != "" {
		a.ID = c.id
	}
	if c.model != "" {
		a.Model = c.model
	}
	if c.usage.Known {
		a.Usage = c.usage
	}
	o := dialect.Observation{Content: c.content, ToolCall: c.toolCall, UsageReported: c.usage.Known}
	a.Content = a.Content || c.content
	a.ToolCall = a.ToolCall || c.toolCall
	if f, native := c.ending(a.ToolCall); f != dialect.FinishNone {
		a.Finish, a.NativeFinish, o.Finish = f, native, f
		if f == dialect.FinishError {
			a.Error, o.Error = true, true
		}
	}
	return o
}

// ending returns why the answer ended, if it did. Calls end with STOP here.
func (c *chunk) ending(called bool) (dialect.Finish, string) {
	if c.blocked != "" && c.blocked != "BLOCK_REASON_UNSPECIFIED" {
		return dialect.FinishFilter, c.blocked
	}
	f := finishOf(c.finish)
	if f == dialect.FinishStop && called {
		f = dialect.FinishToolCalls
	}
	return f, c.finish
}

// listed reports whether a body is a list with an error in it, as Google sends it.
func listed(data []byte) bool {
	if len(data) == 0 || data[0] != '[' {
		return false
	}
	_, ok := Dialect{}.ReadError(data)
	return ok
}

// Answer implements dialect.Stream.
func (st *stream) Answer() dialect.Answer {
	a := st.answer
	a.Complete = a.Finish != dialect.FinishNone && !a.Error
	if st.op == dialect.OpOther {
		a.Complete = a.Content && !a.Error
	}
	return a
}

// Inspect judges one complete body.
func (Dialect) Inspect(r *dialect.Request, body []byte) dialect.Answer {
	body = bytes.TrimSpace(bytes.TrimPrefix(body, []byte("\xef\xbb\xbf")))
	c, _ := scanChunk(body)
	a := dialect.Answer{Content: c.content, ToolCall: c.toolCall, ID: c.id, Model: c.model, Usage: c.usage}
	a.Finish, a.NativeFinish = c.ending(c.toolCall)
	switch r.Operation {
	case dialect.OpOther:
		a.Content = len(body) > 0 && !c.failed
	case dialect.OpEmbed:
		a.Content, a.Malformed = c.vectors, !c.object
	case dialect.OpCount:
		a.Content, a.Malformed = c.counted, !c.counted
	default:
		a.Malformed = !c.known
	}
	switch {
	case c.failed && !a.Content || listed(body):
		a.Error, a.Envelope, a.Malformed = true, body, false
	case a.Finish == dialect.FinishError:
		a.Error = true
	}
	a.Complete = !a.Error && !a.Malformed
	return a
}
