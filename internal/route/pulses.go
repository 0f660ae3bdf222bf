package route

import (
	"sync"
	"sync/atomic"

	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/resilience"
)

// pulses keeps how each target is doing. It outlives reloads.
type pulses struct {
	mu      sync.Mutex
	written map[resilience.Key]*failover.Pulse // of targets that the configuration writes down
	others  recent[resilience.Key, *failover.Pulse]
	running map[resilience.Key]*atomic.Int32 // by connection
}

func newPulses() *pulses {
	return &pulses{others: recent[resilience.Key, *failover.Pulse]{limit: maxOnDemand}, running: map[resilience.Key]*atomic.Int32{}}
}

// keep says which targets must not be forgotten from now on, and forgets connections that are gone.
func (l *pulses) keep(cfg *config.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	running := map[resilience.Key]*atomic.Int32{}
	for _, p := range cfg.Providers {
		for _, c := range p.Connections {
			k := resilience.Key{Provider: p.ID, Connection: c.ID}
			running[k] = l.running[k]
			if running[k] == nil {
				running[k] = new(atomic.Int32)
			}
		}
	}
	l.running = running
	written := map[resilience.Key]*failover.Pulse{}
	for _, p := range cfg.Providers {
		for _, model := range modelsOf(cfg, p) {
			for _, c := range p.Connections {
				k := resilience.Key{Provider: p.ID, Connection: c.ID, Model: model}
				written[k] = l.find(k)
			}
		}
	}
	l.written = written
}

// of returns the pulse of a target.
func (l *pulses) of(k resilience.Key) *failover.Pulse {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.find(k)
	if l.written[k] == nil {
		l.others.put(k, p)
	}
	return p
}

func (l *pulses) find(k resilience.Key) *failover.Pulse {
	if p := l.written[k]; p != nil {
		return p
	}
	if p, ok := l.others.get(k); ok {
		return p
	}
	return &failover.Pulse{Connection: l.running[resilience.Key{Provider: k.Provider, Connection: k.Connection}]}
}
