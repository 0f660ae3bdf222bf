package telemetry

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// vectors are the metrics that are counted as things happen.
type vectors struct {
	requests, errors, broken       *prometheus.CounterVec
	hedges, recoveries             *prometheus.CounterVec
	duration, first, waits         *prometheus.HistogramVec
	attempts, probes, tokens       *prometheus.CounterVec
	attemptFirst, attemptDuration  *prometheus.HistogramVec
	gaps                           *gapVec
	breakers, transitions, clamped *prometheus.CounterVec
}

// What identifies a target, in this order.
var targetLabels = []string{"provider", "connection", "model"}

func newVectors() vectors {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: "omniroute_" + name, Help: help}, labels)
	}
	with := func(labels ...string) []string {
		return append(targetLabels[:len(targetLabels):len(targetLabels)], labels...)
	}
	return vectors{
		requests:   counter("requests_total", "Requests of clients at their end; 499 are those whose client left.", "route", "status"),
		errors:     counter("request_errors_total", "Error answers by their code; \"upstream\" are codes that an upstream made up.", "code"),
		broken:     counter("broken_answers_total", "Answers that ended in the middle, or never began after their status was sent.", "route"),
		hedges:     counter("hedges_total", "Upstream calls that were started beside a slow one, by what became of them: won, lost (the slow one was faster after all), failed, or canceled.", "route", "result"),
		recoveries: counter("recoveries_total", "Answers that broke off where a combo has such finished by another attempt, by what became of them (recovered, failed, ruled_out) and how they were gone on with.", "route", "outcome", "way"),
		duration:   histogram("request_duration_seconds", "Time to the end of the answer.", "route", "stream"),
		first:      histogram("first_content_seconds", "Time to the first content that the client got; the whole answer where nothing streams.", "route", "stream"),
		waits:      histogram("wait_seconds", "Time that a request spent without an attempt under way, of those that waited.", "route"),
		attempts:   counter("attempts_total", "Upstream calls at their end, by outcome and verdict.", with("outcome", "scope", "kind")...),
		probes:     counter("probes_total", "Upstream calls that tried whether an excluded target is back.", "provider", "connection", "outcome"),
		tokens:     counter("tokens_total", "Tokens as upstreams report them.", with("type")...),
		attemptFirst: histogram("attempt_first_content_seconds",
			"Time from the dispatch of an upstream call to its first content.", targetLabels...),
		attemptDuration: histogram("attempt_duration_seconds", "Time from the dispatch of an upstream call to its end.", targetLabels...),
		gaps:            newGapVec("chunk_gap_seconds", "Time for which a stream let us wait for each of its pieces after the first content."),
		breakers:        counter("breaker_transitions_total", "Changes of a circuit breaker's state. The connection is empty for a provider's own.", "provider", "connection", "to"),
		transitions:     counter("gate_events_total", "Events of the gates of every layer.", "layer", "provider", "type"),
		clamped:         counter("clamped_hints_total", "Waits that an upstream asked for and that were cut to their cap.", "provider"),
	}
}

// histogram is a native one, with a few fixed buckets for scrapers that cannot read those.
func histogram(name, help string, labels ...string) *prometheus.HistogramVec {
	return prometheus.NewHistogramVec(prometheus.HistogramOpts{
		Name: "omniroute_" + name, Help: help,
		Buckets:                         []float64{.01, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120, 300},
		NativeHistogramBucketFactor:     1.1,
		NativeHistogramMaxBucketNumber:  160,
		NativeHistogramMinResetDuration: time.Hour,
	}, labels)
}

func (v *vectors) all() []prometheus.Collector {
	return []prometheus.Collector{
		v.requests, v.errors, v.broken, v.hedges, v.recoveries, v.duration, v.first, v.waits,
		v.attempts, v.probes, v.tokens, v.attemptFirst, v.attemptDuration, v.gaps,
		v.breakers, v.transitions, v.clamped,
	}
}

// perProvider are those whose series end with their provider.
func (v *vectors) perProvider() []interface{ DeletePartialMatch(prometheus.Labels) int } {
	return []interface{ DeletePartialMatch(prometheus.Labels) int }{
		v.attempts, v.probes, v.tokens, v.attemptFirst, v.attemptDuration, v.gaps, v.breakers, v.transitions, v.clamped,
	}
}

// perRoute are those whose series end with their route.
func (v *vectors) perRoute() []interface{ DeletePartialMatch(prometheus.Labels) int } {
	return []interface{ DeletePartialMatch(prometheus.Labels) int }{v.requests, v.broken, v.hedges, v.recoveries, v.duration, v.first, v.waits}
}
