package route

import (
	"sync"

	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/fit"
)

// latencies keeps how long each model of each provider took to answer, and what it has refused for
// its length. It outlives reloads.
type latencies struct {
	mu      sync.Mutex
	written map[modelOf]*pair // of models that the configuration writes down
	others  recent[modelOf, *pair]
}

type modelOf struct{ provider, model string }

type pair struct {
	streamed, whole failover.Latency
	fit             fit.Model
}

func newLatencies() *latencies {
	return &latencies{others: recent[modelOf, *pair]{limit: maxOnDemand}}
}

// keep says which models must not be forgotten from now on.
func (l *latencies) keep(cfg *config.Config) {
	l.mu.Lock()
	defer l.mu.Unlock()
	written := map[modelOf]*pair{}
	add := func(provider, model string) {
		key := modelOf{provider, model}
		if written[key] == nil {
			written[key] = l.find(key)
		}
	}
	for _, p := range cfg.Providers {
		for _, model := range modelsOf(cfg, p) {
			add(p.ID, model)
		}
	}
	l.written = written
}

// of returns what is kept of a model: the latencies of streamed answers to their first content and of
// whole ones, and what it can take.
func (l *latencies) of(provider, model string) *pair {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := modelOf{provider, model}
	p := l.find(key)
	if l.written[key] == nil {
		l.others.put(key, p)
	}
	return p
}

func (l *latencies) find(key modelOf) *pair {
	if p := l.written[key]; p != nil {
		return p
	}
	if p, ok := l.others.get(key); ok {
		return p
	}
	return new(pair)
}
