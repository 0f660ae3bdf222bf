package config

import (
	"net/url"
	"strings"
)

// Tracing says where spans go.
type Tracing struct {
	// URL is the collector's address, up to and without /v1/traces.
	URL string
	// Headers are sent along. Their values may be secrets.
	Headers []Header
	// Sample is the share of requests that is traced where the client does not say. Defaults to 1.
	Sample float64
	// Service is the name that spans have. Defaults to omniroute.
	Service string
}

func (b *builder) tracing(n *node) {
	at := n.get("otlp")
	if !n.ok() || !at.ok() || at.text == "" {
		return
	}
	u, err := url.Parse(at.text)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		b.errorf(at, "this is no address of a collector; write one such as http://127.0.0.1:4318")
		return
	case u.User != nil:
		b.errorf(at, "an address must not hold a password; use headers")
		return
	case u.RawQuery != "" || u.Fragment != "":
		b.errorf(at, "an address must not have a ? or #; requests could not be appended to it")
		return
	case strings.HasSuffix(u.Path, "/v1/traces"):
		b.errorf(at, "the address goes up to and without /v1/traces; write %s", quote(strings.TrimSuffix(at.text, "/v1/traces")))
		return
	}
	t := &Tracing{URL: at.text, Sample: 1, Service: "omniroute"}
	b.share(n.get("sample"), &t.Sample)
	if name := n.get("service"); name.ok() && name.text != "" {
		t.Service = name.text
	}
	t.Headers = b.headers(n.get("headers"))
	b.cfg.Tracing = t
}
