package relay

import (
	"context"
	"errors"
	"io"
	"strconv"
	"time"

	"omniroute/classify"
	"omniroute/internal/dialect"
	"omniroute/resilience"
)

// commit passes a call's answer to the client and returns how it ended.
func (x *exchange) commit(c *call) resilience.Verdict {
	x.letGo()
	x.story.Status = c.status
	x.story.FirstContent = time.Since(x.started)
	x.answerHeaders(c)
	var v resilience.Verdict
	if c.events != nil {
		v = x.pump(c)
		c.answer = c.stream.Answer()
	} else {
		v = x.writeWhole(c)
	}
	x.story.Usage = c.answer.Usage
	c.end()
	x.calmWriter()
	return v
}

// answerHeaders sets the headers of an answer: the upstream's, less what is between it and us,
// and ours.
func (x *exchange) answerHeaders(c *call) {
	h := x.w.Header()
	copyHeaders(h, c.resp.Header, notDown)
	if id := c.resp.Header["X-Request-Id"]; len(id) > 0 {
		h["X-Upstream-Request-Id"] = id[:1:1]
	} else if id := c.resp.Header["Request-Id"]; len(id) > 0 {
		h["X-Upstream-Request-Id"] = id[:1:1]
	}
	k := c.attempt.Target.Key()
	v := [...]string{k.Provider, k.Connection, k.Model, strconv.Itoa(x.handle.Dispatched())}
	h["X-Omniroute-Provider"] = v[0:1:1]
	h["X-Omniroute-Connection"] = v[1:2:2]
	h["X-Omniroute-Model"] = v[2:3:3]
	h["X-Omniroute-Attempts"] = v[3:4:4]
}

// largeAnswer is an answer that may not fit into the buffers on the way to a slow client.
const largeAnswer = 64 << 10

func (x *exchange) writeWhole(c *call) (v resilience.Verdict) {
	text := c.whole.B
	x.w.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
	if len(text) > largeAnswer {
		c.watch.write()
	}
	x.w.WriteHeader(c.status)
	if _, err := x.w.Write(text); err != nil {
		v = x.clientGone(c, err)
	}
	c.resp.Body.Close()
	c.whole.Release()
	return v
}

var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
)

// pump passes a stream on, event by event, and returns how it ended. Events that have come
// together go out together; none waits for bytes that have not come.
func (x *exchange) pump(c *call) resilience.Verdict {
	defer func() {
		c.cancel(context.Canceled) // before Close, which would read a rest that nobody wants
		c.resp.Body.Close()
	}()
	h := x.w.Header()
	h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = eventStream, noCache, noBuffering
	x.w.WriteHeader(c.status)
	c.phase.Store(uint32(classify.PhaseMidStream))
	c.pumping = true
	c.watch.stream(x.limits.IdleTimeout, x.limits.StallTimeout)
	if err := x.pass(c, c.held); err != nil {
		return x.clientGone(c, err)
	}
	if err := x.pass(c, c.first); err != nil {
		return x.clientGone(c, err)
	}
	c.held, c.first = nil, nil
	for terminal := c.last.Terminal; !terminal; {
		ev, err := c.events.Next()
		if err != nil {
			return x.ended(c, err)
		}
		o := c.stream.Observe(ev)
		if o.Finish != dialect.FinishNone || o.Content {
			x.progress(c, &o)
		}
		switch {
		case o.Error:
			c.readFault(o.Envelope)
			return x.breakOff(c, c.judge(classify.PhaseMidStream, ev.Raw, nil))
		case o.Malformed, o.Skip:
			continue
		case o.Terminal && !c.complete:
			// The upstream calls an answer whole that has no finish reason.
			return x.breakOff(c, c.judge(classify.PhaseMidStream, nil, &classify.CutError{Content: true}))
		}
		if err := x.pass(c, ev.Raw); err != nil {
			return x.clientGone(c, err)
		}
		terminal = o.Terminal
	}
	if err := x.out.Flush(); err != nil {
		return x.clientGone(c, err)
	}
	c.unsent, c.winding = false, true
	c.watch.close(afterTerminator)
	io.CopyN(io.Discard, c, maxError) // nothing of it counts
	return resilience.Verdict{}
}

// progress follows whether the answer is complete: with several choices one may begin after
// another has ended.
func (x *exchange) progress(c *call, o *dialect.Observation) {
	if o.Content {
		c.watch.content()
	}
	if o.Finish == dialect.FinishNone && !c.complete {
		return
	}
	c.complete = c.stream.Answer().Complete
	if !c.complete && c.winding {
		c.winding = false
		c.watch.reopen(x.limits.IdleTimeout)
	}
}

// pass writes bytes for the client; they are on their way at the latest before the next wait.
func (x *exchange) pass(c *call, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	c.unsent = true
	_, err := x.w.Write(b)
	return err
}

// ended judges the end of a stream's bytes that no terminator announced. An answer that is
// complete stays so, however its bytes end.
func (x *exchange) ended(c *call, err error) resilience.Verdict {
	cause := context.Cause(c.ctx)
	switch {
	case c.gone != nil:
		return x.clientGone(c, c.gone)
	case x.ctx.Err() != nil:
		return x.clientGone(c, err)
	case c.complete:
		if err := x.terminate(c); err != nil {
			return x.clientGone(c, err)
		}
		return resilience.Verdict{}
	case errors.Is(cause, errDeadline): // nobody's failure, and the client must know
		return x.breakOff(c, resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindTimeout, Rule: "deadline"})
	case err == io.EOF: //nolint:errorlint // a wrapped io.EOF is some layer's failure, not the end
		err = nil
	}
	return x.breakOff(c, c.judge(classify.PhaseMidStream, nil, &classify.CutError{Content: true, Err: err}))
}

// terminate writes the terminator that the upstream has left out, where the dialect has one.
func (x *exchange) terminate(c *call) error {
	t, ok := x.Dialect.(interface{ Terminator() []byte })
	if ok && x.Asked.Operation == dialect.OpGenerate && !c.stream.Answer().Terminated {
		if err := x.pass(c, t.Terminator()); err != nil {
			return err
		}
	}
	return x.out.Flush()
}

// breakOff ends a stream after content with an error event in the client's dialect and no
// terminator (law S3).
func (x *exchange) breakOff(c *call, v resilience.Verdict) resilience.Verdict {
	rep := &dialect.ErrorReport{Code: dialect.CodeUpstreamError, Message: "The upstream broke off its answer (" + v.Kind.String() + ").",
		RequestID: x.ID, Attempts: []dialect.Attempted{{Key: c.attempt.Target.Key(), Status: c.status, Kind: v.Kind, Scope: v.Scope,
			Duration: time.Since(c.attempt.Start())}}}
	if v.Rule == "deadline" {
		rep.Code, rep.Message = dialect.CodeDeadlineExceeded, "The request's deadline has passed."
	}
	if c.fault.Message != "" {
		rep.Message = c.fault.Message
	}
	x.story.Broke = v.String()
	err := x.pass(c, x.Dialect.ErrorEvent(rep))
	if err == nil {
		err = x.out.Flush()
	}
	if err != nil {
		x.story.Broke += "; the client had left"
	}
	return v
}

// clientGone is the end of an answer that its client did not wait for: nobody's failure.
func (x *exchange) clientGone(c *call, err error) resilience.Verdict {
	if errors.Is(context.Cause(c.ctx), errDeadline) {
		x.story.Broke = "the client read too slowly until the deadline"
		return resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindTimeout, Rule: "deadline"}
	}
	c.cancel(context.Canceled)
	x.story.Status = statusClientGone
	return resilience.Verdict{Scope: resilience.ScopeClient, Kind: resilience.KindCanceled, Rule: "client.gone", Evidence: err.Error()}
}

// hurryWriter bounds what a client that reads slowly may still take, and calmWriter takes that
// back for the connection's next request. The watch calls the first, and not after its end.
func (x *exchange) hurryWriter() {
	x.hurried = true
	x.out.SetWriteDeadline(time.Now().Add(lastWords)) // a writer that cannot is bounded by its server
}

func (x *exchange) calmWriter() {
	if x.hurried {
		x.out.SetWriteDeadline(time.Time{})
	}
}
