package failover

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	latencyKept   = 100
	latencyEnough = 20 // fewer recent answers say nothing about a percentile
)

// Latency keeps the last hundred times that a model took to answer. The zero value is ready to
// use; it is safe for concurrent use.
type Latency struct {
	mu    sync.Mutex
	kept  [latencyKept]time.Duration
	count int
	p95   atomic.Int64
}

// Add takes in one more time.
func (l *Latency) Add(d time.Duration) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept[l.count%latencyKept] = d
	l.count++
	// Sorting a hundred numbers at every answer would cost more than it tells.
	if l.count >= latencyEnough && (l.count < latencyKept || l.count%10 == 0) {
		sorted := slices.Clone(l.kept[:min(l.count, latencyKept)])
		slices.Sort(sorted)
		l.p95.Store(int64(sorted[(len(sorted)*95+99)/100-1]))
	}
}

// P95 returns the 95th percentile, and false while too little is known.
func (l *Latency) P95() (time.Duration, bool) {
	if l == nil {
		return 0, false
	}
	d := time.Duration(l.p95.Load())
	return d, d > 0
}

const (
	minSuspect   = time.Second
	minProbeWait = 10 * time.Second
)

// timeout bounds an attempt, recent holds how long such attempts took of late, and unknownPace is
// how long one may take where too few are known.
func (t *Target) timeout(stream bool) time.Duration {
	if stream {
		return t.FirstToken
	}
	return t.Answer
}

func (t *Target) recent(stream bool) *Latency {
	if stream {
		return t.Streamed
	}
	return t.Whole
}

func (t *Target) unknownPace(stream bool) time.Duration {
	return max(t.timeout(stream)/10, minSuspect)
}

// timing returns how long an attempt may take to its first content and when it is suspicious.
func (t *Target) timing(l Limits, stream, probe bool) (timeout, suspect time.Duration) {
	timeout = t.timeout(stream)
	p95, known := t.recent(stream).P95()
	switch {
	case l.SuspectAfter > 0:
		suspect = l.SuspectAfter
	case known:
		suspect = max(2*p95, minSuspect)
	default:
		suspect = t.unknownPace(stream)
	}
	if probe {
		// A whole answer cannot be judged before it is there, so that its bound is its own.
		bound := minProbeWait
		if known {
			bound = max(bound, 3*p95)
		}
		if stream || known {
			timeout = min(timeout, bound)
		}
	}
	return timeout, suspect
}
