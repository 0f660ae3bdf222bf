// Package catalog knows public model providers by name: where they are, how they want the key, which dialects they
// speak, and which environment variable holds the key. What their refusals mean is known to classify.
//
// It is data. It calls nobody, reads no environment and never lists models: those change weekly and
// a provider's own word is better.
package catalog

import (
	"time"
)

// Dialect is a request and answer format.
type Dialect string

// The dialects. OpenAI is chat completions and its siblings; Responses is OpenAI's newer format.
const (
	OpenAI    Dialect = "openai"
	Responses Dialect = "responses"
	Anthropic Dialect = "anthropic"
	Gemini    Dialect = "gemini"
)

// Dialects returns every dialect in a fixed order.
func Dialects() []Dialect { return []Dialect{OpenAI, Responses, Anthropic, Gemini} }

// Auth says in which request header a key travels.
type Auth string

// The ways to send a key.
const (
	Bearer     Auth = "bearer"         // Authorization: Bearer KEY
	XAPIKey    Auth = "x-api-key"      // x-api-key: KEY
	APIKey     Auth = "api-key"        // api-key: KEY
	GoogAPIKey Auth = "x-goog-api-key" // x-goog-api-key: KEY
)

// Header returns the canonical request header that carries the key, and its value.
func (a Auth) Header(key string) (name, value string) {
	switch a {
	case XAPIKey:
		return "X-Api-Key", key
	case APIKey:
		return "Api-Key", key
	case GoogAPIKey:
		return "X-Goog-Api-Key", key
	}
	return "Authorization", "Bearer " + key
}

// DefaultAuth returns how a service of the dialect that nobody knows takes its key.
func DefaultAuth(d Dialect) Auth {
	switch d {
	case Anthropic:
		return XAPIKey
	case Gemini:
		return GoogAPIKey
	}
	return Bearer
}

// Endpoint is where a provider speaks one dialect.
type Endpoint struct {
	Dialect Dialect
	// BaseURL goes up to and without /chat/completions, /messages or /models/…; without a trailing slash.
	// Empty means that every customer has another one (Azure).
	BaseURL string
	Auth    Auth
}

// Provider is what is known of one service.
type Provider struct {
	// ID is the name in a configuration, Title the one for people.
	ID, Title string
	// Aliases are other names under which it is known.
	Aliases []string
	// Endpoints has one entry a dialect, the preferred first. Never empty.
	Endpoints []Endpoint
	// KeyVariables are the environment variables that hold a key, the usual first.
	// Empty when no key is needed.
	KeyVariables []string
	// BaseURLVariable holds the customer's own address, to which BaseURLPath is appended. Empty but for
	// providers whose endpoints have no BaseURL; BaseURLExample then shows what one looks like.
	BaseURLVariable, BaseURLPath, BaseURLExample string
	// Models are patterns of the model names that belong to this provider when a bare name is asked for.
	Models []Pattern
	// Timeouts are of models that think for long before the first word. The first match counts.
	Timeouts []Timeout
	// Retired is the day on which the service ended, "" while it is there. It is still known, so that a configuration
	// which names it can be told.
	Retired string
	// FreeCacheReads: prompt tokens from its cache do not count for its rate limits.
	FreeCacheReads bool
}

// Timeout holds the patience that a model needs. A zero duration means the general default.
type Timeout struct {
	Models             Pattern
	FirstToken, Answer time.Duration
}

// NeedsKey reports whether the service refuses calls without a key.
func (p *Provider) NeedsKey() bool { return len(p.KeyVariables) > 0 }

// Local reports whether the service runs on the user's own machine.
func (p *Provider) Local() bool { return !p.NeedsKey() }

// Endpoint returns the endpoint of a dialect.
func (p *Provider) Endpoint(d Dialect) (Endpoint, bool) {
	for _, e := range p.Endpoints {
		if e.Dialect == d {
			return e, true
		}
	}
	return Endpoint{}, false
}

// Owns reports whether a bare model name belongs to this provider, and how many characters of it said so:
// among several owners the one with the longest match is meant.
func (p *Provider) Owns(model string) (length int, ok bool) {
	for _, pattern := range p.Models {
		if pattern.Match(model) {
			length, ok = max(length, pattern.weight()), true
		}
	}
	return length, ok
}

// TimeoutOf returns the timeouts that are known for a model; zero durations where none are.
func (p *Provider) TimeoutOf(model string) Timeout {
	for _, t := range p.Timeouts {
		if t.Models.Match(model) {
			return t
		}
	}
	return Timeout{}
}

// Lookup returns the provider of that id or alias, nil when it is not known.
func Lookup(id string) *Provider { return byID[id] }

// All returns every known provider, the best known first. The slice must not be changed.
func All() []*Provider { return providers }

var byID = func() map[string]*Provider {
	m := make(map[string]*Provider, len(providers))
	for _, p := range providers {
		m[p.ID] = p
		for _, alias := range p.Aliases {
			m[alias] = p
		}
	}
	return m
}()
