package relay

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/dialect"
	"omniroute/internal/dialect/seam"
	"omniroute/internal/dialect/sse"
	"omniroute/internal/dialect/translate"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
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

// call is one attempt: a request to an upstream and what it has answered so far. One goroutine
// runs it up to the first content; the exchange's handler has it from then on.
type call struct {
	watch
	x       *exchange
	attempt *failover.Attempt
	up      *route.Upstream
	ctx     context.Context
	// What the target speaks, and the request in it. Where that is not the client's dialect there
	// is a translation, and words makes the client's stream.
	speaks      dialect.Dialect
	asked       *dialect.Request
	translation *translate.Translation
	words       *translate.Stream
	framer      dialect.Framer // of the client's own dialect, nil where there is none
	body        *Buffer        // of the request, as long as the call may send it

	// What the upstream answers, without the response that it came in: that keeps the request, too.
	status int // 0 before it does
	header http.Header
	src    io.ReadCloser // the body as it comes, encodings undone by whoever reads the call
	events *sse.Reader   // of a stream
	stream dialect.Stream
	last   dialect.Observation
	told   *told                  // of the whole answer
	fault  *dialect.UpstreamError // what an error envelope said, nil where none came

	// follower keeps what the client gets, so that another attempt can go on with it; nil where none
	// will.
	follower *seam.Follower
	recovery *recovery // what the call is to finish, nil for an answer of its own

	held  *Buffer // a stream's events before its first content
	first []byte  // the event with the first content, valid until the next one is read
	// translated is what held and first are to a client of another dialect.
	translated []byte
	whole      *Buffer // an answer that is not streamed

	isStream bool // whole is the client's stream
	reused   bool // the transport's connection had carried a request before
	goesOn   bool // of a call that is to finish an answer: its upstream was asked to go on, not to begin anew
	// The pump's. unsent says that events wait for a flush, and gone why the client did not take
	// one. complete says that nothing more need come, winding that the watch knows.
	pumping, unsent, complete, winding bool
	gone                               error
	gaps                               *telemetry.Gaps // nil where nobody counts them

	outcome *resilience.Verdict // of the answer's end, nil for a good one
}

// told is what an upstream tells of an answer: what it has cost, and what the upstream calls it.
type told struct {
	usage     dialect.Usage
	id, model string
}

func newCall(x *exchange, a *failover.Attempt) *call {
	c := &call{x: x, attempt: a, up: a.Target.Data.(*route.Upstream), body: x.Body}
	c.body.Retain()
	c.ctx, c.cancel = context.WithCancelCause(x.r.Context())
	c.base = a.Start()
	c.deadline = x.handle.Deadline().Sub(c.base)
	c.after, c.limit, c.name = a.Timeout, a.Timeout, "answer_timeout"
	if x.Asked.Stream {
		c.name = "first_token_timeout"
	}
	aside := a.SuspectAfter
	if a.HedgeAfter > 0 {
		aside = min(aside, a.HedgeAfter)
	}
	if aside < a.Timeout {
		c.aside = aside
	}
	c.keeper = c
	c.phase.Store(uint32(classify.PhaseDial))
	c.speak()
	switch {
	case x.recovery != nil:
		c.recovery = x.recovery
		c.recovery.prepare(c)
	case x.recovers:
		c.follower = translate.NewFollower(x.Dialect)
	}
	return c
}

// run brings the call to its first content, or to its failure, and says which.
func (c *call) run() failover.Event {
	defer c.x.reaching.Add(-1)
	c.start()
	verdict := c.reach()
	ok := c.hold()
	c.body.Release()
	if ok && verdict.Scope == resilience.ScopeNone {
		return failover.Event{Type: failover.Content, Attempt: c.attempt.ID, Status: c.status}
	}
	defer c.end()
	c.held.Release()
	c.held = nil
	switch {
	case c.x.r.Context().Err() != nil:
		return failover.Event{Type: failover.Abandoned}
	case c.expired == errDeadline: //nolint:errorlint // our own value, never wrapped
		return failover.Event{Type: failover.TimedOut}
	case verdict.Scope == resilience.ScopeNone:
		verdict = c.judge(c.phaseNow(), nil, c.expired)
	}
	if c.recovery != nil {
		return c.recovery.failed(c, verdict)
	}
	return c.x.failed(c, verdict)
}

// letGo gives back what is of no use once the request needs no further attempt.
func (c *call) letGo() {
	c.asked.Body, c.body = nil, nil
	if c.translation != nil {
		c.translation.Asked()
	}
}

// end gives back what the call holds and cancels what it still does. It may be called again.
func (c *call) end() {
	c.watch.stop()
	c.cancel(context.Canceled)
}

// reach sends the request and reads up to the first content.
func (c *call) reach() resilience.Verdict {
	resp, err := c.send()
	if err != nil {
		return c.judge(c.phaseNow(), nil, err)
	}
	c.status, c.header, c.src = resp.StatusCode, resp.Header, resp.Body
	resp.Header, resp.Request = nil, nil // a body may keep its response
	c.up.Connection.HideEchoes(c.header)
	c.phase.Store(uint32(classify.PhaseBody))
	c.hearLimits()
	v := c.read(resp.ContentLength)
	if v.Scope != resilience.ScopeNone {
		resp.Body.Close()
	}
	return v
}

// read reads an answer whose body has a length, below 0 where that is not known.
func (c *call) read(length int64) resilience.Verdict {
	body, err := Decode(c, strings.Join(c.header["Content-Encoding"], ","))
	if err != nil {
		return c.unusable(err.Error())
	}
	switch {
	case c.status < 200 || c.status > 299:
		return c.refused(body)
	case c.recovery != nil:
		body, whole := c.answersWhole(body)
		if whole {
			return c.wholeToSeam(body)
		}
		return c.reachSeam(body)
	case c.x.Asked.Stream && (c.x.Asked.Operation != dialect.OpOther || isEvents(c.header)):
		body, whole := c.answersWhole(body)
		if whole {
			return c.readWhole(body, -1)
		}
		return c.firstContent(body)
	}
	return c.readWhole(body, length)
}

// refused reads an error answer.
func (c *call) refused(body io.Reader) resilience.Verdict {
	c.shorten(errorBodyWait)
	text, err := io.ReadAll(io.LimitReader(body, maxError))
	c.readFault(text)
	v := c.judge(classify.PhaseBody, text, err) // the status outranks the error
	switch {
	case c.x.Stored != "" && c.status == http.StatusNotFound:
		return resilience.Verdict{Scope: resilience.ScopeRequest, Kind: resilience.KindInvalidRequest, RetrySame: true, RetryElsewhere: true, Rule: ruleNotStored}
	case noSuchCall(c.status) && v.Kind != resilience.KindModelNotFound && !c.everyUpstreamHas():
		return resilience.Verdict{Scope: resilience.ScopeRequest, Kind: resilience.KindInvalidRequest, RetryElsewhere: true, Rule: ruleNoSuchCall}
	case c.status == http.StatusNotFound && v.Scope == resilience.ScopeClient:
		// A question names nothing but what another account may have, a file say, and the model.
		v.Scope, v.RetryElsewhere = resilience.ScopeRequest, true
	}
	return v
}

// ruleNotStored stands in the verdict on an upstream that does not have a stored response. Another account
// may have it, and whatever words the 404 has, they say nothing of this one.
const ruleNotStored = "relay.not_stored"

// ruleNoSuchCall stands in the verdict on an upstream that does not have a call: a count of tokens, embeddings, images,
// or what a client has made up. Another provider may have it, and it says nothing of the answers.
const ruleNoSuchCall = "relay.no_such_call"

// everyUpstreamHas reports whether the call is the one for which an upstream of its dialect is there: where that is
// not found the address is wrong.
func (c *call) everyUpstreamHas() bool {
	if c.asked.Operation != dialect.OpGenerate {
		return false
	}
	switch strings.TrimRight(c.x.Asked.Path, "/") {
	case "/v1/chat/completions", "/v1/messages", "/v1/responses":
		return true
	}
	return c.translation != nil || c.asked.PathModel.End > 0
}

func noSuchCall(status int) bool {
	return status == http.StatusNotFound || status == http.StatusMethodNotAllowed || status == http.StatusNotImplemented
}

// readFault keeps what an error envelope says, without the key that some upstreams repeat in it.
func (c *call) readFault(envelope []byte) {
	fault, ok := c.speaks.ReadError(envelope)
	if !ok && c.status >= 400 {
		fault.Message = plainWords(c.header, envelope)
	}
	for _, s := range []*string{&fault.Message, &fault.Code, &fault.Type, &fault.Param} {
		*s = c.x.rl.o.Hide(*s)
	}
	c.fault = &fault
}

// lastWords returns what an error envelope said in prose, empty where there was none.
func (c *call) lastWords() string {
	if c.fault == nil {
		return ""
	}
	return c.fault.Message
}

// judge asks the classifier, with the cause of a cancellation in place of its symptom.
func (c *call) judge(phase classify.Phase, body []byte, err error) resilience.Verdict {
	if cause := context.Cause(c.ctx); cause != nil && err != nil {
		err = cause
	}
	in := classify.Input{Provider: c.up.Provider.ID, Dialect: string(c.up.Dialect), Model: c.up.Model,
		RateLimitScope: c.up.RateLimitScope, Phase: phase, Body: body, Err: err, Now: time.Now()}
	if c.status != 0 {
		in.Status, in.Header = c.status, c.header
		if in.Header.Get("Content-Encoding") != "" { // it has been undone
			in.Header = in.Header.Clone()
			in.Header.Del("Content-Encoding")
		}
	}
	v := c.x.rl.o.Classifier().Classify(in)
	if v.Scope == resilience.ScopeNone {
		// The dialect or the transport has seen a failure where the classifier sees none: the
		// narrower reading of the two is that this answer cannot be used.
		v = c.unusable("")
	}
	return v
}

// unusable is the verdict on an answer that may be good in itself and is not what was asked for:
// in an encoding that nobody asked for and nobody knows, or whole where a stream was wanted.
func (c *call) unusable(why string) resilience.Verdict {
	return resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindMalformedResponse,
		RetryElsewhere: true, Rule: "relay.unusable", Evidence: why}
}

func (c *call) phaseNow() classify.Phase { return classify.Phase(c.phase.Load()) }

// Read reads the upstream's body. Once content has come it lets the client have what waits for a
// flush before it waits for more, and keeps the watch.
func (c *call) Read(p []byte) (int, error) {
	if !c.pumping {
		return c.src.Read(p)
	}
	if c.unsent {
		c.unsent = false
		if c.gone = c.x.out.Flush(); c.gone != nil {
			return 0, c.gone
		}
	}
	if c.complete && !c.winding {
		c.winding = true
		c.watch.close(afterFinish)
	}
	began := c.readBegins()
	n, err := c.src.Read(p)
	if took := c.readEnds(began); n > 0 && c.gaps != nil {
		c.gaps.Add(took)
	}
	return n, err
}

// keep takes of a whole answer what is told of it, and not the rest.
func (c *call) keep(a *dialect.Answer) { c.told = &told{a.Usage, a.ID, a.Model} }

// firstContent reads a stream's events up to the first content and holds them back.
func (c *call) firstContent(body io.Reader) resilience.Verdict {
	c.phase.Store(uint32(classify.PhaseFirstEvent))
	c.events, c.held = sse.NewReader(body), NewBuffer()
	c.stream = c.speaks.NewStream(c.asked)
	if c.translation != nil {
		c.words = c.translation.Stream().FollowedBy(c.follower)
	}
	nothing := true // but comments has come
	var said []byte // everything, for the classifier; nil while it is what is held
	for {
		ev, err := c.events.Next()
		if err == io.EOF { //nolint:errorlint // a wrapped io.EOF is some layer's failure, not the end
			if c.whollyEmpty() {
				return resilience.Verdict{}
			}
			return c.judge(classify.PhaseFirstEvent, c.said(said, nil), nil)
		}
		if err != nil {
			return c.judge(classify.PhaseFirstEvent, c.said(said, nil), &classify.CutError{Err: err})
		}
		if nothing && isWhole(ev) {
			return c.notEvents(ev)
		}
		nothing = nothing && ev.Comment
		o := c.stream.Observe(ev)
		c.frame(ev)
		c.last = o
		switch {
		case o.Error:
			c.readFault(o.Envelope)
			return c.judge(classify.PhaseFirstEvent, c.said(said, ev), nil)
		case o.Malformed:
			return c.judge(classify.PhaseFirstEvent, c.said(said, ev), nil)
		case o.Content, o.Terminal && c.whollyEmpty():
			c.first = ev.Raw
			c.hear(ev)
			c.complete = c.stream.Answer().Complete
			return resilience.Verdict{}
		case o.Terminal:
			return c.judge(classify.PhaseFirstEvent, c.said(said, ev), nil)
		case o.Skip:
			said = c.said(said, ev)
		case len(c.held.B)+len(ev.Raw) <= maxHeld:
			if said != nil {
				said = append(said, ev.Raw...)
			}
			c.hear(ev)
			c.held.B = append(c.held.B, ev.Raw...)
		case !ev.Comment: // comments beyond the bound are let go; they mean nothing
			return c.unusable(fmt.Sprintf("over %d bytes came before any content", maxHeld))
		}
	}
}

// whollyEmpty reports whether the stream is a legitimate answer without content, which comes to
// its end now.
func (c *call) whollyEmpty() bool {
	a := c.stream.Answer()
	c.complete = a.Complete && !a.Empty()
	return c.complete
}

// said returns all that the stream has said, with one more event.
func (c *call) said(said []byte, ev *sse.Event) []byte {
	if said == nil {
		said = append(make([]byte, 0, len(c.held.B)+256), c.held.B...)
	}
	if ev != nil && len(said)+len(ev.Raw) <= maxHeld {
		said = append(said, ev.Raw...)
	}
	return said
}
