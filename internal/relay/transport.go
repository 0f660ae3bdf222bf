package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"time"

	"omniroute/internal/config"
)

// Conn is a connection to an upstream.
type Conn = net.Conn

// transports keeps one http.Transport for each way to reach upstreams, so that a reload which
// leaves a provider alone leaves its connections alone too.
type transports struct {
	dial func(ctx context.Context, network, address string) (Conn, error)
	mu   sync.Mutex
	kept map[transportKey]*http.Transport
	// last is the answer for a provider that was asked for before, so that the way there is
	// worked out once per configuration.
	last sync.Map // *config.Provider to *http.Transport
}

type transportKey struct {
	proxy, ca string
	connect   time.Duration
}

func (t *transports) get(p *config.Provider, connect time.Duration) *http.Transport {
	if tr, ok := t.last.Load(p); ok {
		return tr.(*http.Transport)
	}
	key := transportKey{ca: string(p.CACertificates), connect: connect}
	if u := p.Proxy(); u != nil {
		key.proxy = u.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	tr := t.kept[key]
	if tr == nil {
		tr = t.build(p, connect)
		if t.kept == nil {
			t.kept = map[transportKey]*http.Transport{}
		}
		t.kept[key] = tr
	}
	t.last.Store(p, tr)
	return tr
}

func (t *transports) build(p *config.Provider, connect time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}
	dial := dialer.DialContext
	if t.dial != nil {
		dial = t.dial
	}
	tr := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		DialContext:         dial,
		TLSHandshakeTimeout: connect,
		ForceAttemptHTTP2:   true,
		MaxIdleConns:        0,
		MaxIdleConnsPerHost: 256,
		IdleConnTimeout:     90 * time.Second,
		// We read what we relay, so that we ask for an encoding and undo it ourselves.
		DisableCompression:     true,
		MaxResponseHeaderBytes: 256 << 10,
	}
	if u := p.Proxy(); u != nil {
		tr.Proxy = http.ProxyURL(u)
	}
	if len(p.CACertificates) > 0 {
		pool, err := x509.SystemCertPool()
		if err != nil {
			pool = x509.NewCertPool()
		}
		pool.AppendCertsFromPEM(p.CACertificates) // checked with the configuration
		tr.TLSClientConfig = &tls.Config{RootCAs: pool}
	}
	return tr
}

func (t *transports) close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, tr := range t.kept {
		tr.CloseIdleConnections()
	}
}
