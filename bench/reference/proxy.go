// Package reference is what a gateway's cost is compared with: Go's own reverse proxy, which
// does nothing but relay, with the transport settings of our relay.
package reference

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"
)

// Serve relays everything to the upstream at to ("http://HOST:PORT") until ctx ends, with key as
// the upstream's credential. It writes its own URL to out as one line of JSON once it listens.
func Serve(ctx context.Context, listen, to, key string, out io.Writer) error {
	target, err := url.Parse(to)
	if err != nil || target.Host == "" {
		return fmt.Errorf("%q is no URL of an upstream; write http://HOST:PORT", to)
	}
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return fmt.Errorf("the reference cannot listen: %w", err)
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header["Authorization"] = []string{"Bearer " + key}
		},
		FlushInterval: -1, // streams are passed on as they come
		Transport: &http.Transport{
			DialContext:            (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			Proxy:                  http.ProxyFromEnvironment,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    256,
			IdleConnTimeout:        90 * time.Second,
			DisableCompression:     true,
			MaxResponseHeaderBytes: 256 << 10,
		},
	}
	srv := &http.Server{Handler: proxy, ReadHeaderTimeout: time.Minute}
	served := make(chan error, 1)
	go func() { served <- srv.Serve(l) }()
	if err := json.NewEncoder(out).Encode(map[string]string{"url": "http://" + l.Addr().String()}); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return srv.Close()
	case err := <-served:
		if errors.Is(err, http.ErrServerClosed) {
			return nil
		}
		return err
	}
}
