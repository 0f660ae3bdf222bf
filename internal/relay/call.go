package relay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync/atomic"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/sse"
	"omniroute/internal/route"
	"omniroute/resilience"
)

const (
	// maxError is how much of an error answer is read; more says nothing more.
	maxError = 64 << 10
	// maxHeld bounds what a stream may send before its first content.
	maxHeld = 1 << 20
	// maxAnswer bounds a whole answer that is not streamed.
	maxAnswer = 256 << 20
)

// call is one attempt: a request to an upstream and what it has answered so far. It runs in its
// own goroutine up to the first content and belongs to the exchange from then on.
type call struct {
	x       *exchange
	attempt *failover.Attempt
	up      *route.Upstream
	ctx     context.Context
	cancel  context.CancelCauseFunc
	timer   *time.Timer // armed at dispatch, stopped at the first content
	phase   atomic.Uint32

	resp   *http.Response
	pulse  pulse
	events *sse.Reader // of a stream
	stream dialect.Stream
	held   []byte // a stream's events up to the first content, or a whole body
	last   dialect.Observation
	usage  dialect.Answer
	status int
	fault  dialect.UpstreamError // what an error envelope said
}

func newCall(ctx context.Context, x *exchange, a *failover.Attempt) *call {
	c := &call{x: x, attempt: a, up: a.Target.Data.(*route.Upstream)}
	c.ctx, c.cancel = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(a.Timeout, func() {
		name := "answer_timeout"
		if x.Asked.Stream {
			name = "first_token_timeout"
		}
		c.cancel(&classify.TimeoutError{Phase: classify.Phase(c.phase.Load()), Timer: name, After: a.Timeout})
	})
	c.phase.Store(uint32(classify.PhaseDial))
	return c
}

// run brings the call to its first content, or to its failure, and says which.
func (c *call) run() failover.Event {
	verdict := c.reach()
	c.timer.Stop()
	ev := failover.Event{Type: failover.Content, Attempt: c.attempt.ID, Status: c.status}
	if verdict.Scope != resilience.ScopeNone {
		ev.Type, ev.Verdict = failover.Failed, verdict
		c.close()
	}
	return ev
}

func (c *call) close() {
	if c.resp != nil {
		c.resp.Body.Close()
	}
	c.cancel(context.Canceled)
}

// reach sends the request and reads up to the first content.
func (c *call) reach() resilience.Verdict {
	resp, err := c.send()
	if err != nil {
		return c.judge(c.phaseNow(), nil, err)
	}
	c.resp, c.status = resp, resp.StatusCode
	c.pulse.src = resp.Body
	body, err := Decode(&c.pulse, strings.Join(resp.Header["Content-Encoding"], ","))
	if err != nil {
		return c.judge(classify.PhaseBody, nil, &classify.CutError{Err: err})
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		text, err := io.ReadAll(io.LimitReader(body, maxError))
		c.fault, _ = c.x.Dialect.ReadError(text)
		if len(text) > 0 {
			err = nil // what came says more than how it ended
		}
		return c.judge(classify.PhaseBody, text, err)
	}
	if c.x.Asked.Stream {
		return c.firstContent(body)
	}
	return c.whole(body)
}

// judge asks the classifier, with the cause of a cancellation in place of its symptom.
func (c *call) judge(phase classify.Phase, body []byte, err error) resilience.Verdict {
	if cause := context.Cause(c.ctx); cause != nil && err != nil {
		err = cause
	}
	in := classify.Input{Provider: c.up.Provider.ID, Dialect: string(c.up.Dialect), Model: c.up.Model,
		RateLimitScope: c.up.RateLimitScope, Phase: phase, Body: body, Err: err, Now: time.Now()}
	if c.resp != nil {
		in.Status, in.Header = c.resp.StatusCode, c.resp.Header
		if in.Header.Get("Content-Encoding") != "" { // it has been undone
			in.Header = in.Header.Clone()
			in.Header.Del("Content-Encoding")
		}
	}
	v := c.x.rl.o.Classifier().Classify(in)
	if v.Scope == resilience.ScopeNone {
		// The dialect or the transport has seen a failure where the classifier sees none: the
		// narrower reading of the two is that this answer cannot be used.
		v = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindMalformedResponse, RetryElsewhere: true, Rule: "relay.unusable"}
	}
	return v
}

func (c *call) phaseNow() classify.Phase { return classify.Phase(c.phase.Load()) }

// send does the round trip. A kept-alive connection that turns out to be dead before any byte of
// an answer is nobody's failure: the request is sent once more at once (law R4).
func (c *call) send() (*http.Response, error) {
	resp, reused, err := c.roundTrip()
	if err != nil && reused && c.ctx.Err() == nil && deadConnection(err) {
		resp, _, err = c.roundTrip()
	}
	return resp, err
}

func (c *call) roundTrip() (resp *http.Response, reused bool, err error) {
	trace := &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		reused = i.Reused
		c.phase.Store(uint32(classify.PhaseHeaders))
	}}
	req, err := c.request(httptrace.WithClientTrace(c.ctx, trace))
	if err != nil {
		return nil, false, err
	}
	resp, err = c.x.rl.transports.get(c.up.Provider, c.x.limits.ConnectTimeout).RoundTrip(req)
	return resp, reused, err
}

// deadConnection reports whether an error tells of a connection that had ended before the
// answer, rather than of an upstream that took its time or said something.
func deadConnection(err error) bool {
	if ne, ok := errors.AsType[interface {
		error
		Timeout() bool
	}](err); ok && ne.Timeout() {
		return false
	}
	text := err.Error()
	for _, sign := range []string{"EOF", "connection reset", "broken pipe", "server closed idle connection", "connection lost",
		"use of closed network connection", "GOAWAY", "goaway"} {
		if strings.Contains(text, sign) {
			return true
		}
	}
	return false
}

// request makes the upstream's request: the client's own but for model, credentials and what
// belongs to one connection (law R8).
func (c *call) request(ctx context.Context) (*http.Request, error) {
	path, body := c.x.Asked.Open(c.up.Model)
	url := c.up.BaseURL + strings.TrimPrefix(path, "/v1")
	if q := c.x.query(); q != "" {
		url += "?" + q
	}
	req, err := http.NewRequestWithContext(ctx, c.x.r.Method, url, body)
	if err != nil {
		return nil, &classify.LocalError{Op: "make the request", Err: err}
	}
	req.ContentLength = body.Size()
	req.GetBody = func() (io.ReadCloser, error) {
		_, b := c.x.Asked.Open(c.up.Model)
		return b, nil
	}
	copyHeaders(req.Header, c.x.r.Header, notUp)
	if !c.x.Asked.Stream {
		req.Header["Accept-Encoding"] = []string{"gzip"}
	}
	if req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = []string{""} // ours would be a change too
	}
	c.up.Connection.Authorize(req.Header, c.up.Dialect)
	return req, nil
}

// query returns the client's query without a key in it.
func (x *exchange) query() string {
	raw := x.r.URL.RawQuery
	if !strings.Contains(raw, "key=") {
		return raw
	}
	q := x.r.URL.Query()
	q.Del("key")
	return q.Encode()
}

// whole reads an answer that is not streamed to its end and looks at it.
func (c *call) whole(body io.Reader) resilience.Verdict {
	c.phase.Store(uint32(classify.PhaseBody))
	text, err := readAll(body, c.resp.ContentLength)
	if err != nil {
		return c.judge(classify.PhaseBody, text, &classify.CutError{Err: err})
	}
	a := c.x.Dialect.Inspect(c.x.Asked, text)
	if a.Error || a.Malformed || a.Empty() || dialect.Sniff(c.resp.Header.Get("Content-Type"), text) == dialect.FormatSSE {
		c.fault, _ = c.x.Dialect.ReadError(text)
		return c.judge(classify.PhaseBody, text, nil)
	}
	c.held, c.usage = text, a
	return resilience.Verdict{}
}

// readAll reads a body of at most maxAnswer bytes.
func readAll(r io.Reader, size int64) ([]byte, error) {
	if size < 0 || size > maxAnswer {
		size = 4 << 10
	}
	buf := make([]byte, 0, size+512)
	for {
		n, err := r.Read(buf[len(buf):cap(buf)])
		buf = buf[:len(buf)+n]
		switch {
		case err == io.EOF:
			return buf, nil
		case err != nil:
			return buf, err
		case len(buf) > maxAnswer:
			return buf[:maxError], fmt.Errorf("the answer is over %d MiB", maxAnswer>>20)
		case len(buf) == cap(buf):
			buf = append(buf, 0)[:len(buf)]
		}
	}
}

// firstContent reads a stream's events up to the first content and holds them back.
func (c *call) firstContent(body io.Reader) resilience.Verdict {
	c.phase.Store(uint32(classify.PhaseFirstEvent))
	c.events = sse.NewReader(body)
	c.stream = c.x.Dialect.NewStream(c.x.Asked)
	var said []byte // everything, for the classifier
	for {
		ev, err := c.events.Next()
		if err == io.EOF {
			if a := c.stream.Answer(); a.Complete && !a.Empty() {
				return resilience.Verdict{} // a legitimate answer without content
			}
			return c.judge(classify.PhaseFirstEvent, said, nil)
		}
		if err != nil {
			return c.judge(classify.PhaseFirstEvent, said, &classify.CutError{Err: err})
		}
		if len(said)+len(ev.Raw) <= maxHeld {
			said = append(said, ev.Raw...)
		}
		o := c.stream.Observe(ev)
		c.last = o
		switch {
		case o.Error:
			c.fault, _ = c.x.Dialect.ReadError(o.Envelope)
			return c.judge(classify.PhaseFirstEvent, said, nil)
		case o.Malformed:
			return c.judge(classify.PhaseFirstEvent, said, nil)
		case o.Content:
			c.held = append(c.held, ev.Raw...)
			return resilience.Verdict{}
		case o.Terminal:
			if a := c.stream.Answer(); a.Complete && !a.Empty() {
				c.held = append(c.held, ev.Raw...)
				return resilience.Verdict{}
			}
			return c.judge(classify.PhaseFirstEvent, said, nil)
		case o.Skip:
		case len(c.held)+len(ev.Raw) > maxHeld:
			return c.judge(classify.PhaseFirstEvent, nil, fmt.Errorf("over %d bytes came before any content", maxHeld))
		default:
			c.held = append(c.held, ev.Raw...)
		}
	}
}
