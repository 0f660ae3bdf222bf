package route

import (
	"sync"

	"omniroute/internal/config"
	"omniroute/internal/headroom"
	"omniroute/resilience"
)

// meters keeps what upstreams have left for each target. It outlives reloads.
type meters struct {
	mu       sync.Mutex
	accounts map[resilience.Key]*headroom.Account // by connection
	written  map[resilience.Key]*headroom.Meter   // of targets that the configuration writes down
	others   recent[resilience.Key, *headroom.Meter]
}

func newMeters() *meters {
	return &meters{others: recent[resilience.Key, *headroom.Meter]{limit: maxOnDemand}}
}

// keep says which targets must not be forgotten from now on, and forgets the others. What is known
// of an account is its key's: another key begins anew.
func (l *meters) keep(cfg, before *config.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	accounts := map[resilience.Key]*headroom.Account{}
	fresh := map[resilience.Key]bool{}
	for _, p := range cfg.Providers {
		for _, c := range p.Connections {
			k := resilience.Key{Provider: p.ID, Connection: c.ID}
			if accounts[k] = l.accounts[k]; accounts[k] == nil || !sameKey(before, k, credential(p, c)) {
				accounts[k], fresh[k] = new(headroom.Account), true
			}
		}
	}
	l.accounts = accounts
	written := map[resilience.Key]*headroom.Meter{}
	for _, p := range cfg.Providers {
		for _, model := range modelsOf(cfg, p) {
			for _, c := range p.Connections {
				account := resilience.Key{Provider: p.ID, Connection: c.ID}
				k := resilience.Key{Provider: p.ID, Connection: c.ID, Model: model}
				m := l.written[k]
				if m == nil || fresh[account] {
					m = headroom.NewMeter(accounts[account], model, p.RateLimitScope)
				}
				m.Generic(p.RateLimitScope)
				written[k] = m
			}
		}
	}
	l.written = written
	l.others = recent[resilience.Key, *headroom.Meter]{limit: maxOnDemand}
}

func sameKey(before *config.Config, k resilience.Key, now string) bool {
	if before == nil {
		return false
	}
	p := before.Provider(k.Provider)
	if p == nil {
		return false
	}
	c := p.Connection(k.Connection)
	return c != nil && credential(p, c) == now
}

// of returns the meter of a target.
func (l *meters) of(k resilience.Key, generic resilience.Scope) *headroom.Meter {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m := l.written[k]; m != nil {
		return m
	}
	m, ok := l.others.get(k)
	if !ok {
		m = headroom.NewMeter(l.accounts[resilience.Key{Provider: k.Provider, Connection: k.Connection}], k.Model, generic)
		l.others.put(k, m)
	}
	return m
}
