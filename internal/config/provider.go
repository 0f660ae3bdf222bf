package config

import (
	"net/http"
	"net/url"
	"time"

	"omniroute/internal/catalog"
	"omniroute/resilience"
)

// Provider is one upstream service.
type Provider struct {
	ID string
	// Known is what the catalogue says of a provider of this name, nil when it says nothing.
	Known *catalog.Provider
	// Endpoints has one entry a dialect that is spoken here, the preferred first. Never empty.
	Endpoints []catalog.Endpoint
	// Models are those that the file lists, in its order. Others may be asked for as provider/model.
	Models []Model
	// RateLimitScope is what an unexplained 429 means here: ScopeConnection or ScopeModel. Where the file
	// says nothing it is what classify knows of the name.
	RateLimitScope resilience.Scope
	// Headers are sent with every call. Their values may be secrets.
	Headers []Header
	// Policy is the general policy with the provider's own numbers over it, all defaults filled in.
	Policy resilience.Policy
	// Strategy says in which order its connections are tried, where any of them will do. Defaults to RoundRobin.
	Strategy Strategy
	// Connections are those that have a key, or need none. Empty when all were left out.
	Connections []*Connection
	// LeftOut are the ids of connections whose key came from a variable that is not set.
	LeftOut []string

	// CACertificates are further root certificates in PEM, nil for none.
	CACertificates []byte

	proxy                     *url.URL
	baseURL                   string        // overrides the endpoints' own, empty when it does not
	firstToken, answerTimeout time.Duration // 0: not set here
	prefill                   catalog.PrefillWay
}

// Prefill returns how a model is asked to go on from the beginning of an answer, on a connection
// and in a dialect.
func (c *Connection) Prefill(d catalog.Dialect, model string) catalog.Prefill {
	p := c.provider
	if m := p.Model(model); m != nil && m.prefill != "" {
		return catalog.Prefill{Way: m.prefill}
	}
	if p.prefill != "" {
		return catalog.Prefill{Way: p.prefill}
	}
	if p.Known == nil {
		return catalog.Prefill{Way: catalog.PrefillNone}
	}
	known := p.Known.PrefillOf(d, model)
	if known.BaseURL != "" && (p.baseURL != "" || c.baseURL != "") {
		return catalog.Prefill{Way: catalog.PrefillNone} // somebody else's address has no such place
	}
	return known
}

// Endpoint returns where a dialect is spoken, false when it is not.
func (p *Provider) Endpoint(d catalog.Dialect) (catalog.Endpoint, bool) {
	for _, e := range p.Endpoints {
		if e.Dialect == d {
			return e, true
		}
	}
	return catalog.Endpoint{}, false
}

// Proxy returns the HTTP or SOCKS5 proxy of this provider, nil when it has none of its own. The URL may hold
// a password: it is for a transport, never for a log.
func (p *Provider) Proxy() *url.URL {
	if p.proxy == nil {
		return nil
	}
	clone := *p.proxy
	return &clone
}

// Model returns the listed model of that id, nil when it is not listed.
func (p *Provider) Model(id string) *Model {
	for i := range p.Models {
		if p.Models[i].ID == id {
			return &p.Models[i]
		}
	}
	return nil
}

// Connection returns the connection of that id, nil when there is none or it was left out.
func (p *Provider) Connection(id string) *Connection {
	for _, c := range p.Connections {
		if c.ID == id {
			return c
		}
	}
	return nil
}

// Model is a model that the file lists.
type Model struct {
	ID string
	// Context is its window in tokens, 0 when the file does not say.
	Context int
	// MaxOutput is how many tokens its answers have at most, 0 when the file does not say.
	MaxOutput int
	// Images, Tools and Schema say whether it takes these, nil when the file does not.
	Images, Tools, Schema *bool

	price                     *catalog.Price // nil where the file does not say
	firstToken, answerTimeout time.Duration
	prefill                   catalog.PrefillWay // empty: not set here
}

// PriceOf returns what a model costs: what the file says, else its list price; false where neither is known.
func (p *Provider) PriceOf(model string) (catalog.Price, bool) {
	if m := p.Model(model); m != nil && m.price != nil {
		return *m.price, true
	}
	if p.Known == nil {
		return catalog.Price{}, false
	}
	return p.Known.PriceOf(model)
}

// Header is one request header.
type Header struct {
	Name  string
	Value Secret
}

// Connection is one account or key at a provider.
type Connection struct {
	ID string
	// Key is what the file says; empty when the service needs none, or where Command gives it. Secret
	// returns what to use.
	Key Secret
	// Command gives the key, nil where the file has it.
	Command *Command
	// Weight is the connection's share among its siblings. At least 1, which is the default.
	Weight int
	// MaxConcurrent is how many calls may run on it at once, 0 for any number.
	MaxConcurrent int

	provider *Provider
	baseURL  string
	live     *Credential // what Command has given
}

// Provider returns the provider that the connection belongs to.
func (c *Connection) Provider() *Provider { return c.provider }

// OwnDomain reports whether the connection has its own address and so fails independently of its siblings.
func (c *Connection) OwnDomain() bool { return c.baseURL != "" }

// BaseURL returns where calls in a dialect go: up to and without /chat/completions, without a trailing slash.
// It is empty when the provider does not speak the dialect.
func (c *Connection) BaseURL(d catalog.Dialect) string {
	e, ok := c.provider.Endpoint(d)
	if !ok {
		return ""
	}
	if c.baseURL != "" {
		return c.baseURL
	}
	return e.BaseURL
}

// Authorize sets the header that carries the key, and the provider's own headers, which win over it.
func (c *Connection) Authorize(h http.Header, d catalog.Dialect) {
	if e, ok := c.provider.Endpoint(d); ok && !c.Secret().Empty() {
		name, value := e.Auth.Header(c.Secret().Reveal())
		h.Set(name, value)
	}
	for _, own := range c.provider.Headers {
		h.Set(own.Name, own.Value.Reveal())
	}
}
