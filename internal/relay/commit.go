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
	"omniroute/internal/dialect/sse"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// commit passes a call's answer to the client; the call has the outcome afterwards.
//
// A stream's goroutine spends its life in here, blocked in a read or a write. What it needs at
// that depth decides how large a stack each open stream keeps, so that the functions between
// Serve and the bytes hold no large values of their own.
func (x *exchange) commit(c *call) {
	switch {
	case c.recovery != nil:
		x.goOn(c)
	case c.events != nil:
		x.begin(c)
		x.beginStream(c)
		x.pump(c)
	default:
		x.begin(c)
		x.writeWhole(c)
	}
	x.conclude(c)
}

// begin notes that the answer has come and sets its headers.
func (x *exchange) begin(c *call) {
	x.story.Status = c.status
	x.story.FirstContent = time.Since(x.started)
	if x.alive.stop() {
		x.story.Status = http.StatusOK // its own and its headers come too late
	} else {
		x.answerHeaders(c)
	}
	if c.follower == nil {
		x.part()
	}
}

// conclude gives back what the call holds.
func (x *exchange) conclude(c *call) {
	if c.stream != nil {
		a := c.stream.Answer()
		c.keep(&a)
	}
	c.cancel(context.Canceled) // before Close, which would read a rest that nobody wants
	c.src.Close()
	c.end()
	x.calmWriter()
}

// answerHeaders sets the headers of an answer: the upstream's, less what is between it and us,
// and ours. They stand for the upstream's from then on, so that a stream does not keep both.
func (x *exchange) answerHeaders(c *call) {
	h := x.w.Header()
	copyHeaders(h, c.header, notDown)
	if c.translation != nil || x.Asked.Operation != dialect.OpOther && !isJSON(c.header) { // official clients read no other
		h["Content-Type"] = jsonType
	}
	if id := c.header["X-Request-Id"]; len(id) > 0 {
		h["X-Upstream-Request-Id"] = id[:1:1]
	} else if id := c.header["Request-Id"]; len(id) > 0 {
		h["X-Upstream-Request-Id"] = id[:1:1]
	}
	c.header = h
	names := &c.up.Names
	h["X-Omniroute-Provider"], h["X-Omniroute-Connection"], h["X-Omniroute-Model"] = names[0:1:1], names[1:2:2], names[2:3:3]
	h["X-Omniroute-Attempts"] = []string{strconv.Itoa(x.handle.Dispatched())}
	if x.Session != "" {
		if x.story.Session = string(x.Route.Served(x.picker, c.attempt.Place(), time.Now())); x.story.Session != "" {
			h["X-Omniroute-Session"] = []string{x.story.Session}
		}
	}
}

// largeAnswer is an answer that may not fit into the buffers on the way to a slow client.
const largeAnswer = 64 << 10

func (x *exchange) writeWhole(c *call) {
	text := c.whole.B
	if len(text) > largeAnswer {
		c.watch.write()
	}
	if c.isStream {
		x.streamHead(c)
	} else {
		x.w.Header()["Content-Length"] = []string{strconv.Itoa(len(text))}
		x.w.WriteHeader(c.status)
	}
	if _, err := x.w.Write(text); err != nil {
		x.clientGone(c, err)
	}
	c.whole.Release()
}

var (
	eventStream = []string{"text/event-stream; charset=utf-8"}
	noCache     = []string{"no-cache"}
	noBuffering = []string{"no"}
	jsonType    = []string{dialect.ErrorContentType}
)

// pump passes a stream on, event by event. Events that have come together go out together; none
// waits for bytes that have not come.
func (x *exchange) pump(c *call) {
	more := x.passFirst(c) && !c.last.Terminal
	for more {
		ev, err := c.events.Next()
		if err != nil {
			x.ended(c, err)
			return
		}
		more = x.judged(c, ev) && x.passEvent(c, ev) && !c.last.Terminal
	}
	if c.last.Terminal && c.gone == nil && c.complete {
		x.drain(c)
	}
}

func (x *exchange) beginStream(c *call) {
	x.streamHead(c)
	c.streams()
}

// streamHead sends the head of a stream, unless that was done to keep the client waiting.
func (x *exchange) streamHead(c *call) {
	if !x.alive.stop() {
		streamHeaders(x.w.Header())
		x.w.WriteHeader(c.status)
	}
}

// streams watches the call from its first content on.
func (c *call) streams() {
	c.phase.Store(uint32(classify.PhaseMidStream))
	c.pumping = true
	c.gaps = c.x.count(c)
	c.watch.stream(c.x.limits.IdleTimeout, c.x.limits.StallTimeout)
}

// count returns where the gaps of a call are counted, nil where nobody listens.
func (x *exchange) count(c *call) *telemetry.Gaps {
	if x.rl.o.Observe == nil {
		return nil
	}
	g := new(telemetry.Gaps)
	for len(x.story.Gaps) < c.attempt.ID {
		x.story.Gaps = append(x.story.Gaps, nil)
	}
	x.story.Gaps[c.attempt.ID-1] = g
	return g
}

func streamHeaders(h http.Header) {
	h["Content-Type"], h["Cache-Control"], h["X-Accel-Buffering"] = eventStream, noCache, noBuffering
}

// judged looks at an event after the first content and reports whether the stream goes on with
// it. One that must not be passed on has lost its bytes.
func (x *exchange) judged(c *call, ev *sse.Event) bool {
	o := &c.last
	*o = c.stream.Observe(ev)
	c.frame(ev)
	if o.Finish != dialect.FinishNone || o.Content {
		x.progress(c, o)
	}
	switch {
	case o.Error:
		c.readFault(o.Envelope)
		x.breakOff(c, c.judge(classify.PhaseMidStream, ev.Raw, nil))
		return false
	case o.Malformed:
		ev.Raw = nil
		if c.follower != nil {
			c.follower.Drop()
		}
	case o.Skip:
		ev.Raw = nil
	case o.Terminal && !c.complete:
		// The upstream calls an answer whole that has no finish reason.
		x.breakOff(c, c.judge(classify.PhaseMidStream, nil, &classify.CutError{Content: true}))
		return false
	}
	return true
}

// drain ends an answer whose terminator has been passed on. Nothing that follows it counts, but
// when the body ends soon its connection can be used again.
func (x *exchange) drain(c *call) {
	if x.terminate(c); c.gone != nil {
		return
	}
	c.unsent, c.winding = false, true
	c.watch.close(afterTerminator)
	_, _ = io.CopyN(io.Discard, c, maxError) // an error here says nothing about the answer
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

// passEvent passes an event on, in the client's words.
func (x *exchange) passEvent(c *call, ev *sse.Event) bool {
	raw := ev.Raw
	if len(raw) == 0 {
		return true
	}
	if c.words != nil {
		raw = c.words.Next(ev)
	}
	if c.follower != nil {
		x.follow(c, ev)
	}
	return x.pass(c, raw)
}

// pass writes bytes for the client, which are on their way at the latest before the next wait, and
// reports whether the client is still there.
func (x *exchange) pass(c *call, b []byte) bool {
	if len(b) == 0 {
		return true
	}
	c.unsent = true
	if _, err := x.w.Write(b); err != nil {
		x.clientGone(c, err)
		return false
	}
	return true
}

// ended judges the end of a stream's bytes that no terminator announced. An answer that is
// complete stays so, however its bytes end.
func (x *exchange) ended(c *call, err error) {
	switch {
	case c.gone != nil:
		x.clientGone(c, c.gone)
		return
	case x.r.Context().Err() != nil && !x.shuttingDown():
		x.clientGone(c, err)
		return
	case c.complete:
		x.terminate(c)
		return
	case x.shuttingDown():
		x.breakOff(c, resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindCanceled, Rule: ruleShutdown})
		return
	case errors.Is(context.Cause(c.ctx), errDeadline): // nobody's failure, and the client must know
		x.breakOff(c, resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindTimeout, Rule: "deadline"})
		return
	case err == io.EOF: //nolint:errorlint // a wrapped io.EOF is some layer's failure, not the end
		err = nil
	}
	x.breakOff(c, c.judge(classify.PhaseMidStream, nil, &classify.CutError{Content: true, Err: err}))
}

// ruleShutdown stands in the verdict on an answer that we have not waited for.
const ruleShutdown = "shutting_down"

// terminate writes the end of a translated stream, or the terminator that the upstream has left
// out, where the dialect has one.
func (x *exchange) terminate(c *call) {
	t, ok := x.Dialect.(dialect.Terminator)
	switch {
	case c.words != nil:
		ok = x.pass(c, c.words.End())
	case ok && x.Asked.Operation == dialect.OpGenerate && !c.stream.Answer().Terminated:
		ok = x.pass(c, t.Terminator())
	default:
		ok = true
	}
	if !ok {
		return
	}
	if err := x.out.Flush(); err != nil {
		x.clientGone(c, err)
	}
}

// breakOff ends an attempt's stream after content, and with it the client's, unless another attempt
// may go on with that.
func (x *exchange) breakOff(c *call, v resilience.Verdict) {
	if c.outcome = &v; !x.mayGoOn(c, v) {
		x.fail(c, v)
	}
}

// fail ends the client's stream with an error event in its dialect and no terminator (law S3). The
// failure is the call's.
func (x *exchange) fail(c *call, v resilience.Verdict) {
	rep := &dialect.ErrorReport{Code: dialect.CodeUpstreamError, Message: "The upstream broke off its answer (" + v.Kind.String() + ").",
		RequestID: x.ID, Attempts: []dialect.Attempted{{Key: c.attempt.Target.Key(), Status: c.status, Kind: v.Kind, Scope: v.Scope,
			Duration: time.Since(c.attempt.Start())}}}
	switch v.Rule {
	case "deadline":
		rep.Code, rep.Message = dialect.CodeDeadlineExceeded, "The request's deadline has passed."
	case ruleShutdown:
		rep.Code, rep.Message = dialect.CodeShuttingDown, shutdownReport("").Message
	}
	if said := c.lastWords(); said != "" {
		rep.Message = said
	}
	x.story.Broke = v.String()
	_, err := x.w.Write(c.errorEvent(rep))
	if err == nil {
		err = x.out.Flush()
	}
	if err != nil {
		x.story.Broke += "; the client had left"
	}
}

// clientGone is the end of an answer that its client did not wait for: nobody's failure.
func (x *exchange) clientGone(c *call, err error) {
	if c.gone = err; errors.Is(context.Cause(c.ctx), errDeadline) {
		x.story.Broke = "the client read too slowly until the deadline"
		c.outcome = &resilience.Verdict{Scope: resilience.ScopeLocal, Kind: resilience.KindTimeout, Rule: "deadline"}
		return
	}
	c.cancel(context.Canceled)
	x.left()
	c.outcome = &resilience.Verdict{Scope: resilience.ScopeClient, Kind: resilience.KindCanceled, Rule: "client.gone", Evidence: err.Error()}
}

// hurryWriter bounds what a client that reads slowly may still take, and calmWriter takes that
// back for the connection's next request. A watch calls the first, and not after its end.
func (x *exchange) hurryWriter() {
	x.hurried = true
	_ = x.out.SetWriteDeadline(time.Now().Add(lastWords)) // a writer that cannot is bounded by its server
}

func (x *exchange) calmWriter() {
	if x.hurried {
		_ = x.out.SetWriteDeadline(time.Time{})
	}
}
