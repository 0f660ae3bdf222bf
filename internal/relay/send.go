package relay

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync"

	"omniroute/classify"
	"omniroute/internal/dialect"
)

// send does the round trip. A kept-alive connection that turns out to be dead before any byte of
// an answer is nobody's failure: the request is sent once more at once, on a new connection (law
// R4), unless it would make a lasting thing twice (law R10).
func (c *call) send() (*http.Response, error) {
	t := tracers.Get().(*tracer)
	t.call = c
	defer func() {
		t.call = nil
		tracers.Put(t)
	}()
	ctx := httptrace.WithClientTrace(c.ctx, &t.ClientTrace)
	resp, err := c.roundTrip(ctx, false)
	if err != nil && c.reused && !c.x.lasting && c.ctx.Err() == nil && deadConnection(err) {
		c.phase.Store(uint32(classify.PhaseDial))
		resp, err = c.roundTrip(ctx, true)
	}
	return resp, err
}

// tracer tells a call of the connection that it gets. The transport calls it from within a round trip and never
// later, so that the next call can have it, although the context keeps it for as long as an answer takes.
type tracer struct {
	httptrace.ClientTrace
	call *call
}

var tracers = sync.Pool{New: func() any {
	t := new(tracer)
	t.GotConn = func(i httptrace.GotConnInfo) {
		t.call.reused = i.Reused
		t.call.phase.Store(uint32(classify.PhaseHeaders))
	}
	return t
}}

func (c *call) roundTrip(ctx context.Context, fresh bool) (*http.Response, error) {
	req, err := c.request(ctx)
	if err != nil {
		return nil, err
	}
	return c.x.rl.transports.get(c.up.Provider, c.x.limits.ConnectTimeout, fresh).RoundTrip(req)
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
	x := c.x
	path, query, body := c.open()
	to, err := x.rl.addresses.get(c.baseURL(), path)
	if err != nil {
		return nil, &classify.LocalError{Op: "make the request", Err: err}
	}
	req := plainRequest.WithContext(ctx)
	req.Method, req.URL, req.Host, req.Header = x.r.Method, withQuery(to, query), to.Host, http.Header{}
	c.body.Retain()
	req.Body, req.ContentLength = &upload{body: body, buffer: c.body}, body.Size()
	req.GetBody = func() (io.ReadCloser, error) {
		_, _, again := c.open()
		c.body.Retain()
		return &upload{body: again, buffer: c.body}, nil
	}
	copyHeaders(req.Header, x.r.Header, notUp)
	if c.translation != nil {
		c.translateHeaders(req.Header)
	}
	if !x.Asked.Stream {
		req.Header["Accept-Encoding"] = gzipOnly
	}
	if req.Header["User-Agent"] == nil {
		req.Header["User-Agent"] = noAgent // ours would be a change too
	}
	c.up.Connection.Authorize(req.Header, c.up.Dialect)
	return req, nil
}

// plainRequest is what requests are made of: http.NewRequest parses a URL, which is there.
var plainRequest = &http.Request{Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}

// withQuery returns the address with a query after its own. It leaves to as it is.
func withQuery(to *url.URL, query string) *url.URL {
	if query == "" {
		return to
	}
	with := *to
	if with.RawQuery != "" {
		with.RawQuery += "&"
	}
	with.RawQuery += query
	return &with
}

// open returns the path below the base URL, the query, and the body to send there.
func (c *call) open() (path, query string, body *dialect.Body) {
	path, body = c.asked.Open(c.up.Model)
	if c.translation != nil {
		path, query, _ = strings.Cut(path, "?")
		return path, query, body
	}
	for _, version := range []string{"/v1beta/", "/v1/"} { // the base URL has it
		if rest, ok := strings.CutPrefix(path, version[:len(version)-1]); ok && strings.HasPrefix(path, version) {
			path = rest
			break
		}
	}
	return path, c.x.query(), body
}

// translateHeaders leaves out what belongs to the client's API alone and sets what goes with the
// translated body.
func (c *call) translateHeaders(h http.Header) {
	for name := range h {
		for _, prefix := range vendorOnly {
			if strings.HasPrefix(name, prefix) {
				delete(h, name)
			}
		}
	}
	h["Content-Type"] = jsonType
	for _, pair := range c.translation.Header() {
		h[pair[0]] = []string{pair[1]}
	}
}

var (
	gzipOnly = []string{"gzip"}
	noAgent  = []string{""}
)

// query returns the client's query without a key in it.
func (x *exchange) query() string {
	raw := x.r.URL.RawQuery
	if raw == "" {
		return ""
	}
	q := x.r.URL.Query()
	if !q.Has("key") {
		return raw
	}
	q.Del("key")
	return q.Encode()
}
