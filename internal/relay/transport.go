package relay

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
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
	kept map[transportKey]*transportPair
	// last is the answer for a provider that was asked for before, so that the way there is
	// worked out once per configuration.
	last   sync.Map // *config.Provider to *transportPair
	lasted atomic.Int32
}

// transportPair is a transport that keeps connections, and one that does not: what has to be sent
// again because a kept connection was dead must not meet the next dead one.
type transportPair struct{ keeping, fresh *http.Transport }

type transportKey struct {
	proxy, ca string
	connect   time.Duration
}

// maxLast bounds how many providers of former configurations are remembered.
const maxLast = 1000

func (t *transports) get(p *config.Provider, connect time.Duration, fresh bool) *http.Transport {
	pair, ok := t.last.Load(p)
	if !ok {
		pair = t.find(p, connect)
	}
	if fresh {
		return pair.(*transportPair).fresh
	}
	return pair.(*transportPair).keeping
}

func (t *transports) find(p *config.Provider, connect time.Duration) *transportPair {
	key := transportKey{ca: string(p.CACertificates), connect: connect}
	if u := p.Proxy(); u != nil {
		key.proxy = u.String()
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	pair := t.kept[key]
	if pair == nil {
		pair = &transportPair{keeping: t.build(p, connect), fresh: t.build(p, connect)}
		pair.fresh.DisableKeepAlives = true
		if t.kept == nil {
			t.kept = map[transportKey]*transportPair{}
		}
		t.kept[key] = pair
	}
	if t.lasted.Add(1) > maxLast {
		t.last.Clear()
		t.lasted.Store(1)
	}
	t.last.Store(p, pair)
	return pair
}

func (t *transports) build(p *config.Provider, connect time.Duration) *http.Transport {
	dial := plain((&net.Dialer{Timeout: connect, KeepAlive: 30 * time.Second}).DialContext)
	if t.dial != nil {
		dial = func(ctx context.Context, network, address string) (Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, connect)
			defer cancel()
			return t.dial(ctx, network, address)
		}
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
		// Each open stream holds both. Long bodies are written past the one, and the reader of
		// events has a buffer of its own behind the other.
		WriteBufferSize: 512,
		ReadBufferSize:  512,
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
	for _, pair := range t.kept {
		pair.keeping.CloseIdleConnections()
		pair.fresh.CloseIdleConnections()
	}
}
