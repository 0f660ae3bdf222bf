package livecheck

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/tidwall/gjson"

	"omniroute/classify"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// question is one connection on its way to a result.
type question struct {
	Result
	rules      *classify.Classifier
	client     *http.Client
	provider   *config.Provider
	connection *config.Connection
	dialect    catalog.Dialect
	timeout    time.Duration
	keyless    error // why its api_key_command has given no key
}

// maxAnswer bounds what is read of an answer; lists of models are the longest.
const maxAnswer = 4 << 20

func (q *question) ask(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, q.timeout, &classify.TimeoutError{Timer: "check", After: q.timeout})
	defer cancel()
	if q.keyless != nil {
		q.Text = "its api_key_command has given no key: " + q.keyless.Error()
		return
	}
	if q.Model == "" {
		list, ok := q.call(ctx, http.MethodGet, "/models", nil)
		if !ok {
			return
		}
		if q.Model = askable(list); q.Model == "" {
			q.Text = "the key is accepted, but no model is known to ask; list one under models"
			return
		}
		q.From = "offered"
	}
	path, body := tiny(q.dialect, q.provider, q.Model)
	_, q.OK = q.call(ctx, http.MethodPost, path, body)
}

// call makes one call and judges it. After a good one the body is returned.
func (q *question) call(ctx context.Context, method, path string, body []byte) (answer []byte, ok bool) {
	var phase atomic.Uint32
	phase.Store(uint32(classify.PhaseDial))
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { phase.Store(uint32(classify.PhaseHeaders)) }})
	in := classify.Input{Provider: q.Provider, Dialect: string(q.dialect), Model: q.Model, RateLimitScope: q.provider.RateLimitScope}
	q.Status = 0
	resp, err := q.send(ctx, method, path, body)
	if err == nil {
		phase.Store(uint32(classify.PhaseBody))
		q.Status, in.Status, in.Header = resp.StatusCode, resp.StatusCode, resp.Header
		in.Body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		resp.Body.Close()
	}
	if cause := context.Cause(ctx); cause != nil && err != nil {
		err = cause
	}
	in.Phase, in.Err, in.Now = classify.Phase(phase.Load()), withoutAddress(err), time.Now()
	if method == http.MethodGet && err == nil && in.Status == http.StatusOK {
		// A list of models is no answer of a model, which is what the classifier knows.
		if gjson.ValidBytes(in.Body) {
			return in.Body, true
		}
		q.Verdict = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindMalformedResponse, Rule: "livecheck.list"}
		q.Text = q.words(nil)
		return nil, false
	}
	q.Verdict = q.rules.Classify(in)
	q.Text = q.words(in.Err)
	return in.Body, q.Verdict.Scope == resilience.ScopeNone
}

func (q *question) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	base, err := url.Parse(q.connection.BaseURL(q.dialect))
	if err != nil {
		return nil, &classify.LocalError{Op: "read the base URL", Err: errors.New("it is malformed")}
	}
	req, err := http.NewRequestWithContext(ctx, method, base.JoinPath(path).String(), bytes.NewReader(body))
	if err != nil {
		return nil, &classify.LocalError{Op: "make the request", Err: err}
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if q.dialect == catalog.Anthropic {
		req.Header.Set("Anthropic-Version", "2023-06-01")
	}
	q.connection.Authorize(req.Header, q.dialect)
	return q.client.Do(req)
}

// withoutAddress takes the request's URL out of an error: an address may hold a key.
func withoutAddress(err error) error {
	if u, ok := errors.AsType[*url.Error](err); ok {
		return u.Err
	}
	return err
}

// clientOf returns a client that goes the provider's own way to it. Nothing is followed: where an
// API sends its callers elsewhere, the base URL is wrong.
func clientOf(p *config.Provider, connect time.Duration) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSHandshakeTimeout = connect
	t.DialContext = (&net.Dialer{Timeout: connect}).DialContext
	if u := p.Proxy(); u != nil {
		t.Proxy = http.ProxyURL(u)
	}
	if len(p.CACertificates) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(p.CACertificates) // checked with the configuration
		t.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}
