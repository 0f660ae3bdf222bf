package server

import (
	"omniroute/internal/route"
	"omniroute/resilience"
)

// keysChanged tells the engine that a command has given a connection another key, which ends what an old one has
// brought on (law V8), or that one is still without any.
func (m *Main) keysChanged() {
	m.reloading.Lock()
	defer m.reloading.Unlock()
	router := m.router.Load()
	if router == nil || m.draining.Load() {
		return
	}
	if err := m.engine.Configure(route.EngineConfig(router.Config())); err != nil {
		m.log.Error("the engine refuses a connection's new key; this is a bug", "error", err)
	}
	m.withoutKeys()
}

// withoutKeys takes connections out that have no key yet: a request there could only be refused.
func (m *Main) withoutKeys() {
	for _, of := range m.keys.Missing() {
		m.engine.MarkAccountUnavailable(of, resilience.KindAuth)
	}
}
