package lab

import (
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// exchange is one call from its arrival to its end. One goroutine owns it.
type exchange struct {
	p   *Provider
	w   http.ResponseWriter
	r   *http.Request
	now time.Time

	endpoint          endpoint
	req               request
	connection, model string
	turn              int
	reused            bool
	rnd               *rand.Rand
	call              *Call

	met     []string        // names of the faults that met the call
	final   func(*exchange) // set once a fault answers by itself
	plan    plan            // how a good answer is bent
	cleanup []func()
}

// plan is how the answer is to be shaped. The zero plan is a good answer.
type plan struct {
	headers      time.Duration // before the status line
	slow         bool          // firstContent replaces the latency
	firstContent time.Duration
	ping         time.Duration
	gap          time.Duration

	end       ending
	after     int // pieces of content before the end
	style     CutStyle
	err       Error
	stallPing time.Duration

	badEvent                               int
	noDone, noFinish, noContent, noChoices bool
	gzip                                   bool

	begins      begins
	reword      bool
	rewordAfter int
}

// ending is what ends an answer before its time.
type ending uint8

const (
	endWell ending = iota
	endCut
	endStall
	endError
)

func (x *exchange) settle(f Fault) { f.applyTo(x) }

func (x *exchange) outcome() string {
	if len(x.met) == 0 {
		return "ok"
	}
	return strings.Join(x.met, "+")
}

// serve plays out what was decided.
func (x *exchange) serve() {
	defer func() {
		for _, f := range x.cleanup {
			f()
		}
	}()
	h := x.w.Header()
	h.Set("X-Request-Id", fmt.Sprintf("req_%s_%s_%d", x.p.opt.Name, strings.ReplaceAll(x.model, "/", "-"), x.turn))
	switch {
	case x.final != nil:
		x.final(x)
	case x.endpoint == embeddings:
		x.embed()
	case x.endpoint == other:
		x.create()
	case x.req.Stream:
		x.stream()
	default:
		x.plain()
	}
}

// wait sleeps and reports whether the client is still there.
func (x *exchange) wait(d time.Duration) bool {
	ctx := x.r.Context()
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// refuse answers with an error after the wait for headers.
func (x *exchange) refuse(e Error) {
	if x.wait(x.plan.headers) {
		e.write(x.w, x.now)
	}
}

func (x *exchange) writeRaw(status int, contentType string, body []byte, header http.Header) {
	if !x.wait(x.plan.headers) {
		return
	}
	h := x.w.Header()
	for k, v := range header {
		h[k] = v
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	x.w.WriteHeader(status)
	x.w.Write(body)
}

func (x *exchange) limitHeaders(limit, left int, wait time.Duration) {
	h := x.w.Header()
	h.Set("X-Ratelimit-Limit-Requests", strconv.Itoa(limit))
	h.Set("X-Ratelimit-Remaining-Requests", strconv.Itoa(left))
	h.Set("X-Ratelimit-Reset-Requests", wait.Round(time.Millisecond).String())
}

// hangUp ends the connection now, with a reset or with a FIN. What was written before is on its way.
// Where the connection cannot be taken over (HTTP/2), the answer is aborted, which resets the stream.
func (x *exchange) hangUp(reset bool) {
	conn, buf, err := http.NewResponseController(x.w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	buf.Flush()
	if l, ok := conn.(interface{ SetLinger(int) error }); ok && reset {
		l.SetLinger(0)
	}
	conn.Close()
}

var _ interface{ SetLinger(int) error } = (*net.TCPConn)(nil)
