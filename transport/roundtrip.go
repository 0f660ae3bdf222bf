package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"omniroute/internal/relay"
)

// errClosed is what requests get that come after Close.
var errClosed = errors.New("transport: it is closed")

// errAborted is what a reader of an answer gets that was given up in the middle.
var errAborted = errors.New("transport: the answer was broken off")

// RoundTrip answers one request by the first upstream that does so well. Where none does the
// answer is an error in the client's dialect, as a gateway would give it; the error of RoundTrip is
// left for contexts that end, bodies that cannot be read and transports that are closed.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(r.Context())
	x, err := t.begin(cancel)
	if err != nil {
		cancel(err)
		if r.Body != nil {
			r.Body.Close()
		}
		return nil, err
	}
	near, far := net.Pipe()
	w := &writer{exchange: x, conn: far, header: http.Header{}, began: make(chan struct{})}
	served := serverRequest(ctx, r)
	go func() {
		defer t.end(x)
		defer far.Close()
		defer served.Body.Close()
		defer context.AfterFunc(ctx, w.hurry)()
		defer func() { w.finish(ctx, recover()) }()
		t.gateway.ServeHTTP(w, served)
	}()
	select {
	case <-w.began:
	case <-r.Context().Done():
		near.Close()
		cancel(context.Cause(r.Context()))
		return nil, r.Context().Err()
	}
	resp := &http.Response{
		Status: strconv.Itoa(w.status) + " " + http.StatusText(w.status), StatusCode: w.status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: w.sent, ContentLength: -1, Request: r,
		Body: &body{Conn: near, w: w, ctx: ctx, cancel: cancel},
	}
	if n, err := strconv.ParseInt(w.sent.Get("Content-Length"), 10, 64); err == nil {
		resp.ContentLength = n
	}
	return resp, nil
}

// serverRequest turns a client's request into what a server would see of it.
func serverRequest(ctx context.Context, r *http.Request) *http.Request {
	in := r.Clone(ctx)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	in.URL.Scheme, in.URL.Host, in.URL.User = "", "", nil
	for _, version := range []string{"/v1beta/", "/v1/"} {
		if i := strings.Index(in.URL.Path, version); i > 0 {
			in.URL.Path, in.URL.RawPath = in.URL.Path[i:], ""
		}
	}
	in.RequestURI = in.URL.RequestURI()
	in.Host, in.RemoteAddr = "localhost", "127.0.0.1:0"
	return in
}

// exchange is one request that runs.
type exchange struct{ cancel context.CancelCauseFunc }

func (t *Transport) begin(cancel context.CancelCauseFunc) (*exchange, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, errClosed
	}
	x := &exchange{cancel}
	t.exchanges[x] = struct{}{}
	t.running.Add(1)
	return x, nil
}

func (t *Transport) end(x *exchange) {
	t.mu.Lock()
	delete(t.exchanges, x)
	t.mu.Unlock()
	x.cancel(context.Canceled)
	t.running.Done()
}

// cut ends everything that runs.
func (t *Transport) cut(why error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for x := range t.exchanges {
		x.cancel(why)
	}
}

// writer is the http.ResponseWriter of one request. What is written waits until the client reads
// it, so that a slow client is felt as it is on a socket.
type writer struct {
	*exchange
	conn   net.Conn
	header http.Header // the handler's
	once   sync.Once
	began  chan struct{} // closed when status and sent are set
	status int
	sent   http.Header // as it was when the answer began

	mu     sync.Mutex
	failed bool      // something was not taken
	over   bool      // the answer is whole, or ends as the gateway wants it to
	last   time.Time // no write waits for the client longer, once the request is to end
}

// Header implements http.ResponseWriter.
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *writer) WriteHeader(status int) {
	if status < 200 { // informational ones are for sockets
		return
	}
	w.once.Do(func() {
		w.status, w.sent = status, w.header.Clone()
		close(w.began)
	})
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	n, err := w.conn.Write(p)
	if err != nil {
		w.mu.Lock()
		w.failed = true
		w.mu.Unlock()
	}
	return n, err
}

// Flush implements http.Flusher: nothing is kept back.
func (w *writer) Flush() { w.WriteHeader(http.StatusOK) }

// SetWriteDeadline is for http.ResponseController.
func (w *writer) SetWriteDeadline(t time.Time) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.last.IsZero() && (t.IsZero() || t.After(w.last)) {
		t = w.last
	}
	return w.conn.SetWriteDeadline(t)
}

// hurry leaves a client that does not read just the time to take the end of its answer: nobody may be
// held by it whose context has ended, or who closes the transport.
func (w *writer) hurry() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last = time.Now().Add(leaving)
	_ = w.conn.SetWriteDeadline(w.last) // it is of a pipe
}

// SetReadDeadline is for http.ResponseController. A request's body comes from the same program and
// is not waited for with a clock.
func (w *writer) SetReadDeadline(time.Time) error { return nil }

// finish ends the answer: a handler that has panicked has given it up, and one whose client has
// left has not finished it.
func (w *writer) finish(ctx context.Context, panicked any) {
	w.mu.Lock()
	w.over = panicked == nil && !w.failed && (ctx.Err() == nil || errors.Is(context.Cause(ctx), relay.ErrShuttingDown))
	w.mu.Unlock()
	w.WriteHeader(http.StatusInternalServerError) // a handler that has said nothing has a bug
}

// body is an answer as the client reads it.
type body struct {
	net.Conn
	w      *writer
	ctx    context.Context
	cancel context.CancelCauseFunc
}

// Read implements io.Reader. An answer whose request was ended is never taken for whole.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.Conn.Read(p)
	if err == io.EOF { //nolint:errorlint // a net.Pipe's own, never wrapped
		b.w.mu.Lock()
		defer b.w.mu.Unlock()
		if !b.w.over {
			err = errAborted
			if cause := context.Cause(b.ctx); cause != nil {
				err = cause
			}
		}
	}
	return n, err
}

// leaving is how long an answer that its client has closed may still run: a client that stops
// reading at the terminator has not left before the end.
const leaving = 250 * time.Millisecond

// Close says that the client wants no more.
func (b *body) Close() error {
	time.AfterFunc(leaving, func() { b.cancel(context.Canceled) })
	return b.Conn.Close()
}
