package config

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
)

// shortestHidden is the length from which a secret is hidden, in bytes: shorter ones guard nothing,
// and would blank out words.
const shortestHidden = 4

// Hide returns text with "[redacted]" in place of every key, token, header value and proxy password of
// the configuration. It is for what comes from outside, such as an upstream's message. Clients' keys
// are known by their hashes alone and cannot be found in it. It may be called at any time by anybody.
func (c *Config) Hide(text string) string {
	var found []string
	look := func(secret string) {
		if len(secret) >= shortestHidden && strings.Contains(text, secret) {
			found = append(found, secret)
		}
	}
	look(c.AdminToken.Reveal())
	if c.Tracing != nil {
		for _, h := range c.Tracing.Headers {
			look(h.Value.Reveal())
		}
	}
	for _, a := range c.Alerts {
		look(a.URL.Reveal())
		look(a.Secret.Reveal())
	}
	if c.Store.Redis != nil {
		look(c.Store.Redis.Password.Reveal())
	}
	for _, p := range c.Providers {
		if proxy := p.Proxy(); proxy != nil && proxy.User != nil {
			password, _ := proxy.User.Password()
			look(password)
		}
		for _, h := range p.Headers {
			look(h.Value.Reveal())
		}
		for _, one := range p.Connections {
			one.secrets(look)
		}
	}
	// The longest first: a secret may begin with another.
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range found {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}

// shortestEchoed is the length from which a secret is looked for in headers, in bytes. Shorter values of
// `headers:`, such as a region, are words that an answer may have of its own.
const shortestEchoed = 8

// HideEchoes puts "[redacted]" in place of what Authorize has sent wherever an answer's headers repeat it.
func (c *Connection) HideEchoes(h http.Header) {
	for _, values := range h {
		for i := range values {
			c.secrets(func(key string) { hideEcho(&values[i], key) })
			for _, own := range c.provider.Headers {
				hideEcho(&values[i], own.Value.Reveal())
			}
		}
	}
}

func hideEcho(value *string, secret string) {
	if len(secret) >= shortestEchoed && strings.Contains(*value, secret) {
		*value = strings.ReplaceAll(*value, secret, redacted)
	}
}
