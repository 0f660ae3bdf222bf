package config

import (
	"cmp"
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
	for _, p := range c.Providers {
		if proxy := p.Proxy(); proxy != nil && proxy.User != nil {
			password, _ := proxy.User.Password()
			look(password)
		}
		for _, h := range p.Headers {
			look(h.Value.Reveal())
		}
		for _, one := range p.Connections {
			look(one.Key.Reveal())
		}
	}
	// The longest first: a secret may begin with another.
	slices.SortFunc(found, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	for _, secret := range found {
		text = strings.ReplaceAll(text, secret, redacted)
	}
	return text
}
