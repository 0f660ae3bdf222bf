package server

import (
	"bytes"

	"omniroute/classify"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// noteUnknown keeps answers that no rule knows, for the admin API. What is a key in the configuration
// in force is taken out before anything is kept; whatever else looks like one, the samples take out.
func (m *Main) noteUnknown(in classify.Input, v resilience.Verdict) {
	if !classify.IsDefault(v.Rule) {
		return
	}
	if router := m.router.Load(); router != nil {
		in.Body = withoutSecrets(in.Body, router.Config())
	}
	m.unknown.Add(in, v)
}

// maxSampled is how much of a body is looked at; less than that is kept.
const maxSampled = 64 << 10

// withoutSecrets returns the beginning of a body without any key or token of the configuration.
func withoutSecrets(body []byte, cfg *config.Config) []byte {
	if len(body) > maxSampled {
		body = body[:maxSampled]
	}
	hide := func(s config.Secret) {
		const shortest = 4 // shorter ones guard nothing, and would blank out words
		if key := s.Reveal(); len(key) >= shortest {
			body = bytes.ReplaceAll(body, []byte(key), []byte(s.String()))
		}
	}
	hide(cfg.AdminToken)
	for _, p := range cfg.Providers {
		for _, h := range p.Headers {
			hide(h.Value)
		}
		for _, c := range p.Connections {
			hide(c.Key)
		}
	}
	return body
}
