package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
	"time"

	"omniroute/classify"
	"omniroute/internal/dialect"
	"omniroute/resilience"
)

// afterTerminator is how long the rest of an upstream's body is read after the end of the
// answer, so that its connection can be used again; afterFinish how long the usage and the
// terminator may take after the finish reason.
const (
	afterTerminator = 50 * time.Millisecond
	afterFinish     = 5 * time.Second
)

// commit passes a call's answer to the client and returns how it ended.
func (x *exchange) commit(ctx context.Context, c *call) (resilience.Verdict, int) {
	x.sent = true
	x.story.Status = c.status
	x.story.FirstContent = time.Since(x.started)
	h := x.w.Header()
	copyHeaders(h, c.resp.Header, notDown)
	if id := c.resp.Header.Get("X-Request-Id"); id != "" {
		h["X-Upstream-Request-Id"] = []string{id}
	} else if id := c.resp.Header.Get("Request-Id"); id != "" {
		h["X-Upstream-Request-Id"] = []string{id}
	}
	k := c.attempt.Target.Key()
	h["X-Omniroute-Provider"] = []string{k.Provider}
	h["X-Omniroute-Connection"] = []string{k.Connection}
	h["X-Omniroute-Model"] = []string{k.Model}
	h["X-Omniroute-Attempts"] = []string{strconv.Itoa(x.handle.Dispatched())}
	var v resilience.Verdict
	if x.Asked.Stream {
		v = x.pump(ctx, c)
	} else {
		h["Content-Length"] = []string{strconv.Itoa(len(c.held))}
		x.w.WriteHeader(c.status)
		if _, err := x.w.Write(c.held); err != nil {
			v = x.clientGone(c, err)
		}
		c.resp.Body.Close()
	}
	x.story.Usage = c.usage.Usage
	return v, c.status
}

// pump passes a stream on, event by event, and returns how it ended.
func (x *exchange) pump(ctx context.Context, c *call) resilience.Verdict {
	defer c.close()
	defer func() { c.usage = c.stream.Answer() }()
	h := x.w.Header()
	h["Content-Type"] = []string{"text/event-stream; charset=utf-8"}
	h["Cache-Control"] = []string{"no-cache"}
	h["X-Accel-Buffering"] = []string{"no"}
	x.w.WriteHeader(c.status)
	out := http.NewResponseController(x.w)
	if err := send(x.w, out, c.held); err != nil {
		return x.clientGone(c, err)
	}
	c.held = nil
	c.phase.Store(uint32(classify.PhaseMidStream))
	c.pulse.arm(x.limits.IdleTimeout, x.limits.StallTimeout, func(timer string, after time.Duration) {
		c.cancel(&classify.TimeoutError{Phase: classify.PhaseMidStream, Timer: timer, After: after})
	})
	defer c.pulse.disarm()

	var grace *time.Timer
	for terminal := c.last.Terminal; !terminal; {
		if a := c.stream.Answer(); a.Complete && grace == nil {
			grace = time.AfterFunc(afterFinish, func() { c.cancel(errEnough) })
			defer grace.Stop()
		}
		ev, err := c.events.Next()
		if err != nil {
			return x.ended(ctx, c, out, err)
		}
		o := c.stream.Observe(ev)
		switch {
		case o.Error:
			c.fault, _ = x.Dialect.ReadError(o.Envelope)
			v := c.judge(classify.PhaseMidStream, ev.Raw, nil)
			return x.breakOff(c, out, v)
		case o.Malformed, o.Skip:
			continue
		}
		if o.Content {
			c.pulse.content()
		}
		if err := send(x.w, out, ev.Raw); err != nil {
			return x.clientGone(c, err)
		}
		terminal = o.Terminal
	}
	if !c.stream.Answer().Complete { // a terminator without a finish reason is a cut
		return x.cut(c, nil)
	}
	c.pulse.disarm()
	drain := time.AfterFunc(afterTerminator, func() { c.cancel(errEnough) })
	defer drain.Stop()
	io.Copy(io.Discard, io.LimitReader(c.resp.Body, maxError))
	return resilience.Verdict{}
}

var errEnough = errors.New("the answer is complete")

func send(w io.Writer, out *http.ResponseController, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if _, err := w.Write(b); err != nil {
		return err
	}
	return out.Flush()
}

// ended judges the end of a stream's bytes that no terminator announced.
func (x *exchange) ended(ctx context.Context, c *call, out *http.ResponseController, err error) resilience.Verdict {
	if c.stream.Answer().Complete && (err == io.EOF || errors.Is(context.Cause(c.ctx), errEnough)) {
		if t, ok := x.Dialect.(interface{ Terminator() []byte }); ok {
			if err := send(x.w, out, t.Terminator()); err != nil {
				return x.clientGone(c, err)
			}
		}
		return resilience.Verdict{}
	}
	if x.r.Context().Err() != nil {
		return x.clientGone(c, err)
	}
	if ctx.Err() != nil { // our own deadline: nobody's failure, and the client must know
		return x.breakOff(c, out, resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindTimeout, Rule: "deadline"})
	}
	if err == io.EOF {
		err = nil
	}
	return x.breakOff(c, out, c.judge(classify.PhaseMidStream, nil, &classify.CutError{Content: true, Err: err}))
}

func (x *exchange) cut(c *call, err error) resilience.Verdict {
	v := c.judge(classify.PhaseMidStream, nil, &classify.CutError{Content: true, Err: err})
	x.story.Broke = v.String()
	return v
}

// breakOff ends a stream after content with an error event in the client's dialect and no
// terminator (law S3).
func (x *exchange) breakOff(c *call, out *http.ResponseController, v resilience.Verdict) resilience.Verdict {
	rep := &dialect.ErrorReport{Code: dialect.CodeUpstreamError, Message: "The upstream broke off its answer (" + v.Kind.String() + ").",
		RequestID: x.ID, Attempts: []dialect.Attempted{{Key: c.attempt.Target.Key(), Status: c.status, Kind: v.Kind, Scope: v.Scope,
			Duration: time.Since(c.attempt.Start())}}}
	if v.Scope == resilience.ScopeLocal && v.Kind == resilience.KindTimeout {
		rep.Code, rep.Message = dialect.CodeDeadlineExceeded, "The request's deadline has passed."
	}
	if c.fault.Message != "" {
		rep.Message = c.fault.Message
	}
	x.story.Broke = v.String()
	if err := send(x.w, out, x.Dialect.ErrorEvent(rep)); err != nil {
		x.story.Broke += "; the client had left"
	}
	return v
}

// clientGone is the end of an answer that its client did not wait for: nobody's failure.
func (x *exchange) clientGone(c *call, err error) resilience.Verdict {
	c.cancel(context.Canceled)
	x.story.Status = statusClientGone
	return resilience.Verdict{Scope: resilience.ScopeClient, Kind: resilience.KindCanceled, Rule: "client.gone", Evidence: err.Error()}
}
