package lab

import (
	"compress/gzip"
	"io"
	"net/http"
	"time"
)

// event is one server-sent event of a good stream.
type event struct {
	data    []byte
	content bool
}

type delta struct {
	Role      string     `json:"role,omitempty"`
	Content   *string    `json:"content,omitempty"`
	ToolCalls []toolCall `json:"tool_calls,omitempty"`
}

// events returns the stream as it should be, with what the plan leaves out left out.
func (x *exchange) events(a answer) []event {
	p := &x.plan
	c := completion{ID: x.id(), Object: "chat.completion.chunk", Created: x.now.Unix(), Model: x.model}
	if x.endpoint == completions {
		c.Object = "text_completion"
	}
	events := make([]event, 0, len(a.pieces)+4)
	add := func(content bool, ch choice) {
		c.Choices = []choice{ch}
		if p.noChoices {
			c.Choices = []choice{}
			content = false
		}
		events = append(events, event{marshal(c), content})
	}

	empty, zero := "", 0
	switch {
	case x.endpoint == completions:
	case a.tool != "":
		add(false, choice{Delta: delta{Role: "assistant"}})
	default:
		add(false, choice{Delta: delta{Role: "assistant", Content: &empty}})
	}
	for i, piece := range a.pieces {
		switch {
		case x.endpoint == completions:
			add(true, choice{Text: &piece})
		case a.tool != "":
			call := toolCall{Index: &zero, Function: functionCall{Arguments: piece}}
			if i == 0 {
				call.ID, call.Type, call.Function.Name = x.toolID(), "function", a.tool
			}
			add(true, choice{Delta: delta{ToolCalls: []toolCall{call}}})
		default:
			add(true, choice{Delta: delta{Content: &piece}})
		}
	}
	if !p.noFinish {
		end := choice{Finish: &a.finish, Delta: delta{}}
		if x.endpoint == completions {
			end.Delta, end.Text = nil, &empty
		}
		add(false, end)
		if x.req.StreamOptions.IncludeUsage && !p.noContent && !p.noChoices {
			c.Choices, c.Usage = []choice{}, a.usage()
			events = append(events, event{marshal(c), false})
		}
	}
	if !p.noDone {
		events = append(events, event{[]byte("[DONE]"), false})
	}
	if n := p.badEvent; n > 0 && n <= len(events) {
		data := events[n-1].data
		events[n-1].data = data[:len(data)/2]
	}
	return events
}

// sse writes events, compressed if the plan says so.
type sse struct {
	w  io.Writer
	z  *gzip.Writer
	rc *http.ResponseController
}

func (x *exchange) newSSE() *sse {
	s := &sse{w: x.w, rc: http.NewResponseController(x.w)}
	if x.plan.gzip {
		s.z = gzip.NewWriter(x.w)
		s.w = s.z
	}
	return s
}

func (s *sse) send(parts ...string) {
	for _, p := range parts {
		io.WriteString(s.w, p) // a client that left is noticed by the next wait
	}
	s.flush()
}

func (s *sse) flush() {
	if s.z != nil {
		s.z.Flush()
	}
	s.rc.Flush()
}

func (s *sse) close() {
	if s.z != nil {
		s.z.Close()
	}
}

// stream answers event by event.
func (x *exchange) stream() {
	p := &x.plan
	events := x.events(x.answer())
	if !x.wait(p.headers) {
		return
	}
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream; charset=utf-8")
	h.Set("Cache-Control", "no-cache")
	if p.gzip {
		h.Set("Content-Encoding", "gzip")
	}
	if p.end == endCut && p.style == CutUnframed {
		h.Set("Transfer-Encoding", "identity")
	}
	x.w.WriteHeader(http.StatusOK)
	out := x.newSSE()
	out.flush()

	sent := 0
	for _, e := range events {
		if p.end != endWell && sent >= p.after && (e.content || sent > 0 || p.end == endError) {
			if sent > 0 || x.pause(out, 0) {
				x.endStream(out, e)
			}
			return
		}
		if e.content {
			if !x.pause(out, sent) {
				return
			}
			sent++
		}
		out.send("data: ", string(e.data), "\n\n")
	}
	if p.end != endWell {
		// The answer was shorter than the place of its end.
		x.endStream(out, event{data: []byte("{}")})
		return
	}
	out.close()
}

// pause waits before a piece of content and reports whether the client is still there.
func (x *exchange) pause(out *sse, sent int) bool {
	p := &x.plan
	switch {
	case sent > 0:
		return x.wait(x.gap())
	case !p.slow:
		return x.wait(x.p.opt.Latency.FirstContent.draw(x.rnd))
	}
	return x.quiet(out, p.firstContent, p.ping)
}

// quiet waits, with comments on the way if ping is positive.
func (x *exchange) quiet(out *sse, d, ping time.Duration) bool {
	if ping <= 0 {
		return x.wait(d)
	}
	for d > ping {
		if !x.wait(ping) {
			return false
		}
		out.send(": ping\n\n")
		d -= ping
	}
	return x.wait(d)
}

// endStream ends the stream where the event next would have come.
func (x *exchange) endStream(out *sse, next event) {
	p := &x.plan
	switch {
	case p.end == endError:
		out.send("data: ", string(p.err.envelope()), "\n\n")
		out.close()
	case p.end == endStall && p.stallPing > 0:
		for x.wait(p.stallPing) {
			out.send(": ping\n\n")
		}
	default:
		if p.end == endCut && (p.style == CutReset || p.style == CutFIN) {
			out.send("data: ", string(next.data[:len(next.data)/2]))
		}
		x.finishEarly()
	}
}
