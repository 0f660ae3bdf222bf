package route

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/url"
	"slices"

	"omniroute/internal/config"
	"omniroute/resilience"
)

// EngineConfig returns what the engine must know of a configuration: which providers and
// connections there are, where they are, by which policy, and the models and combos that are
// written down.
//
// A connection with its own base URL is a failure domain of its own unless it leads to the host and
// port of its provider: what shares these also shares most of its outages.
func EngineConfig(cfg *config.Config) resilience.Config {
	out := resilience.Config{Policy: cfg.Resilience, Providers: map[string]resilience.Provider{}, Combos: map[string][]resilience.Key{}}
	for _, p := range cfg.Providers {
		policy := p.Policy
		// The preferred dialect's address stands for all.
		dialect := p.Endpoints[0].Dialect
		rp := resilience.Provider{Policy: &policy, Endpoint: hostPort(p.Endpoints[0].BaseURL), Models: modelsOf(cfg, p), Connections: []resilience.Connection{}}
		for _, c := range p.Connections {
			rc := resilience.Connection{ID: c.ID, Credential: credential(p, c)}
			if c.OwnDomain() {
				rc.Endpoint = hostPort(c.BaseURL(dialect))
			}
			rp.Connections = append(rp.Connections, rc)
		}
		out.Providers[p.ID] = rp
	}
	for _, c := range cfg.Combos {
		var keys []resilience.Key
		for _, t := range c.Targets {
			for _, conn := range connections(t) {
				keys = append(keys, resilience.Key{Provider: t.Provider.ID, Connection: conn.ID, Model: t.Model})
			}
		}
		out.Combos[c.Name] = keys
	}
	return out
}

// modelsOf lists the models of a provider that the configuration writes down, in combos too.
func modelsOf(cfg *config.Config, p *config.Provider) []string {
	var models []string
	for _, m := range p.Models {
		models = append(models, m.ID)
	}
	for _, c := range cfg.Combos {
		for _, t := range c.Targets {
			if t.Provider == p {
				models = append(models, t.Model)
			}
		}
	}
	slices.Sort(models)
	return slices.Compact(models)
}

// hostPort returns the host and port of an address, "" when it has none.
func hostPort(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Hostname() == "" {
		return ""
	}
	port := u.Port()
	if port == "" {
		if port = "80"; u.Scheme == "https" {
			port = "443"
		}
	}
	return net.JoinHostPort(u.Hostname(), port)
}

// credential identifies what a connection proves itself with: its key and the provider's headers,
// of which one may be a key too.
func credential(p *config.Provider, c *config.Connection) string {
	h := sha256.New()
	write := func(text string) {
		// Lengths keep "ab", "c" apart from "a", "bc". A hash takes everything.
		_, _ = h.Write([]byte{byte(len(text) >> 16), byte(len(text) >> 8), byte(len(text))})
		_, _ = h.Write([]byte(text))
	}
	write(c.Secret().Reveal())
	for _, header := range p.Headers {
		write(header.Name)
		write(header.Value.Reveal())
	}
	return hex.EncodeToString(h.Sum(nil))
}
