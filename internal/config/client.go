package config

import (
	"crypto/sha256"
	"crypto/subtle"
	"slices"
	"time"

	"omniroute/internal/catalog"
)

// Client is one client key and what its callers may ask for.
type Client struct {
	ClientKey
	// Name is for people; empty where the file gives none.
	Name string
	// Models are what its callers may ask for: names of combos and models, or provider/model. Targets are
	// the provider/model that their requests may go to, whatever they ask for. Empty means all.
	Models, Targets []catalog.Pattern
	// Rate bounds how many requests they may send. The zero value means any number.
	Rate Rate
}

// Rate is so many requests in that time.
type Rate struct {
	Requests int
	Per      time.Duration
}

// Rated reports whether there is a bound to how many requests its callers may send. Nil is nobody in particular.
func (c *Client) Rated() bool { return c != nil && c.Rate.Requests > 0 }

// Restricted reports whether there is anything that its callers may not have. Nil is nobody in particular.
func (c *Client) Restricted() bool { return c != nil && len(c.Models)+len(c.Targets) > 0 }

// MayAsk reports whether its callers may ask for a name.
func (c *Client) MayAsk(name string) bool { return c == nil || matches(c.Models, name) }

// MayUse reports whether their requests may go to a provider/model. named says that they may have what they
// have asked for under its own name; else it has to be one of the models that they may ask for.
func (c *Client) MayUse(target string, named bool) bool {
	return c == nil || matches(c.Targets, target) && (named || matches(c.Models, target))
}

func matches(patterns []catalog.Pattern, name string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p catalog.Pattern) bool { return p.Match(name) })
}

// Client returns whose key that is, false when nobody's. Where clients need no key it is nil and true.
func (c *Config) Client(presented string) (*Client, bool) {
	if len(c.ClientKeys) == 0 {
		return nil, true
	}
	// Every key is compared, so that the time tells nothing of which.
	sum, found := sha256.Sum256([]byte(presented)), -1
	for i, k := range c.ClientKeys {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(k.sum[:], sum[:]), i, found)
	}
	if found < 0 {
		return nil, false
	}
	return c.ClientKeys[found], true
}

// ClientAllowed reports whether a client that presents that key (or "") may call.
func (c *Config) ClientAllowed(presented string) bool {
	_, ok := c.Client(presented)
	return ok
}

// ClientNamed returns the client of that name, nil when there is none.
func (c *Config) ClientNamed(name string) *Client {
	for _, k := range c.ClientKeys {
		if k.Name != "" && k.Name == name {
			return k
		}
	}
	return nil
}
