package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"omniroute/failover"
	"omniroute/resilience"
)

// worthAWait is the shortest time without an attempt that counts as a wait; below it is the work
// between two attempts.
const worthAWait = time.Millisecond

// Observe counts a request. It takes well under a microsecond where the first attempt answers.
func (m *Metrics) Observe(s Story) {
	x := m.known.Load()
	r := x.route(s.Route)
	i := statusIndex(s.Status)
	r.requests[i].get(func() prometheus.Counter { return m.v.requests.WithLabelValues(r.name, statuses[i]) }).Inc()
	if s.Code != "" {
		m.v.errors.WithLabelValues(codeLabel(s.Code)).Inc()
	}
	if c := s.Recovery; c != nil {
		m.v.recoveries.WithLabelValues(r.name, string(c.Outcome), c.Way).Inc()
	}
	if s.Broke != "" {
		m.v.broken.WithLabelValues(r.name).Inc()
	}
	how, stream := 0, "false"
	if s.Stream {
		how, stream = 1, "true"
	}
	if s.Duration > 0 {
		r.duration[how].get(func() prometheus.Observer { return m.v.duration.WithLabelValues(r.name, stream) }).Observe(s.Duration.Seconds())
	}
	if s.FirstContent > 0 {
		r.first[how].get(func() prometheus.Observer { return m.v.first.WithLabelValues(r.name, stream) }).Observe(s.FirstContent.Seconds())
	}
	if w := waited(&s); w >= worthAWait {
		r.waits.get(func() prometheus.Observer { return m.v.waits.WithLabelValues(r.name) }).Observe(w.Seconds())
	}
	for j := range s.Attempts {
		a := &s.Attempts[j]
		t := x.target(a.Key)
		m.attempt(t, a)
		if j < len(s.Gaps) && s.Gaps[j] != nil {
			t.gaps.get(func() *gapSeries { return m.v.gaps.with(t.provider, t.connection, t.model) }).add(s.Gaps[j])
		}
		if a.Hedge {
			m.v.hedges.WithLabelValues(r.name, hedgeResult(a)).Inc()
		}
		if a.Outcome == failover.OutcomeAnswered && s.Usage.Known {
			m.count(t, tokenCounts(s.Usage))
		}
	}
}

func (m *Metrics) attempt(t *targetSeries, a *failover.Record) {
	if a.Outcome == failover.OutcomeAnswered && !a.Probe {
		t.answered.get(func() prometheus.Counter {
			return m.v.attempts.WithLabelValues(t.provider, t.connection, t.model, string(failover.OutcomeAnswered), "none", "unknown")
		}).Inc()
	} else {
		f := m.ending(t, a)
		f.attempts.Inc()
		if a.Probe {
			m.v.probes.WithLabelValues(t.provider, t.connection, string(a.Outcome)).Inc()
		}
	}
	if a.FirstContent > 0 {
		t.first.get(func() prometheus.Observer {
			return m.v.attemptFirst.WithLabelValues(t.provider, t.connection, t.model)
		}).Observe(a.FirstContent.Seconds())
	}
	if a.Outcome != failover.OutcomeRunning {
		t.duration.get(func() prometheus.Observer {
			return m.v.attemptDuration.WithLabelValues(t.provider, t.connection, t.model)
		}).Observe(a.Duration.Seconds())
	}
}

// ending returns the series of the way in which an attempt ended.
func (m *Metrics) ending(t *targetSeries, a *failover.Record) failure {
	known := t.failed.Load()
	if known != nil {
		for _, f := range *known {
			if f.kind == a.Verdict.Kind && f.scope == a.Verdict.Scope && f.outcome == a.Outcome {
				return f
			}
		}
	}
	f := failure{outcome: a.Outcome, scope: a.Verdict.Scope, kind: a.Verdict.Kind,
		attempts: m.v.attempts.WithLabelValues(t.provider, t.connection, t.model, string(a.Outcome), a.Verdict.Scope.String(), a.Verdict.Kind.String())}
	more := []failure{f}
	if known != nil {
		more = append(more, *known...)
	}
	t.failed.CompareAndSwap(known, &more) // whoever loses is found again by the next
	return f
}

func (m *Metrics) count(t *targetSeries, tokens [len(tokenTypes)]int64) {
	for i, n := range tokens {
		if n > 0 {
			t.tokens[i].get(func() prometheus.Counter {
				return m.v.tokens.WithLabelValues(t.provider, t.connection, t.model, tokenTypes[i])
			}).Add(float64(n))
		}
	}
}

// waited returns how long the request had no attempt under way. Attempts come in the order of
// their dispatch and may overlap.
func waited(s *Story) (total time.Duration) {
	free := s.At // until when an attempt was under way
	for i := range s.Attempts {
		a := &s.Attempts[i]
		if gap := a.At.Sub(free); gap >= worthAWait {
			total += gap
		}
		if a.Outcome == failover.OutcomeRunning {
			return total
		}
		if end := a.At.Add(a.Duration); end.After(free) {
			free = end
		}
	}
	if s.FirstContent == 0 {
		if gap := s.At.Add(s.Duration).Sub(free); gap >= worthAWait {
			total += gap
		}
	}
	return total
}

// heard counts an event of the engine.
func (m *Metrics) heard(ev resilience.Event) {
	x := m.known.Load()
	provider := ""
	if ev.Key.Provider != "" {
		provider = x.provider(ev.Key.Provider)
	}
	m.v.transitions.WithLabelValues(ev.Layer.String(), provider, string(ev.Type)).Inc()
	if ev.Clamped {
		m.v.clamped.WithLabelValues(provider).Inc()
	}
	if ev.Layer != resilience.LayerBreaker || provider == unlisted {
		return
	}
	switch ev.Type {
	case resilience.EventDegraded, resilience.EventOpened, resilience.EventHalfOpen, resilience.EventClosed:
		m.v.breakers.WithLabelValues(provider, ev.Key.Connection, breakerState(ev.Type)).Inc()
	}
}

// breakerState is the state that an event of a breaker leads to.
func breakerState(t resilience.EventType) string {
	switch t {
	case resilience.EventDegraded:
		return string(resilience.Degraded)
	case resilience.EventOpened:
		return string(resilience.Open)
	case resilience.EventHalfOpen:
		return string(resilience.HalfOpen)
	}
	return string(resilience.Closed)
}
