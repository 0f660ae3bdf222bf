package relay

import (
	"net/http"
	"sync"
	"time"

	"omniroute/internal/dialect"
)

// keepalive shows the client of a stream that somebody is there while no answer has begun: after
// every so long without a byte it sends a sign of life in the client's dialect. The first one
// commits the status 200, so that whatever comes of the request afterwards has to be said within the
// stream.
//
// Until stop has returned nothing else may touch the client's side.
type keepalive struct {
	x     *exchange
	every time.Duration

	mu    sync.Mutex
	timer *time.Timer
	begun bool // the status is sent
	over  bool
}

// keepAlive begins to show signs of life, where the combo wants them and the client a stream. A
// whole answer gets none: what could be sent ahead of it is a status that it may not have.
func (x *exchange) keepAlive() {
	if x.limits.Keepalive == 0 || !x.Asked.Stream || x.Asked.Operation != dialect.OpGenerate {
		return
	}
	k := &keepalive{x: x, every: x.limits.Keepalive}
	x.alive = k
	k.mu.Lock() // the timer may fire before it is noted
	k.timer = time.AfterFunc(k.every, k.show)
	k.mu.Unlock()
}

func (k *keepalive) show() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.over {
		return
	}
	if !k.begun {
		k.begun = true
		streamHeaders(k.x.w.Header())
		k.x.w.WriteHeader(http.StatusOK)
	}
	_, err := k.x.w.Write(k.x.Dialect.KeepAlive())
	if err == nil {
		err = k.x.out.Flush()
	}
	if err != nil { // the client has left, which ends its context
		k.over = true
		return
	}
	k.timer.Reset(k.every)
}

// stop ends the signs of life and reports whether any was given. It may be called on nil, and again.
func (k *keepalive) stop() (begun bool) {
	if k == nil {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.over = true
	k.timer.Stop()
	return k.begun
}

// sayError answers with an error: as an answer of its own or, where the status 200 is sent
// already, as the end of the stream. retry tells of the headers that say when to come back.
func (x *exchange) sayError(rep *dialect.ErrorReport, retry bool) {
	x.story.Code = storyCode(rep.Code)
	if !x.alive.stop() {
		x.story.Status = x.Dialect.ErrorStatus(rep)
		WriteError(x.w, x.Dialect, rep, retry)
		return
	}
	x.story.Status, x.story.Broke = http.StatusOK, "no answer came after the status was sent to keep the client: "+x.story.Code
	_, err := x.w.Write(x.Dialect.ErrorEvent(rep))
	if err == nil {
		err = x.out.Flush()
	}
	if err != nil {
		x.story.Broke += "; the client had left"
	}
}
