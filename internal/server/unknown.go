package server

import (
	"omniroute/classify"
	"omniroute/resilience"
)

// noteUnknown keeps answers that no rule knows, for the admin API. What is a key in the configuration
// in force is taken out before anything is kept; whatever else looks like one, the samples take out.
func (m *Main) noteUnknown(in classify.Input, v resilience.Verdict) {
	if !classify.IsDefault(v.Rule) {
		return
	}
	if router := m.router.Load(); router != nil {
		in.Body = []byte(router.Config().Hide(string(in.Body[:min(len(in.Body), maxSampled)])))
	}
	m.unknown.Add(in, v)
}

// maxSampled is how much of a body is looked at; less than that is kept.
const maxSampled = 64 << 10
