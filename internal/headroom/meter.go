package headroom

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

const (
	// maxBuckets bounds what is kept for one model, and for one account.
	maxBuckets = 8
	// outputUnsaid is what an answer is taken for that the request does not bound, outputMost what
	// is set aside at most: hardly an answer is as long as it may be.
	outputUnsaid = 1024
	outputMost   = 4096
)

// Account is what is known of one connection, and Meter what is known of one model on it. Both are
// safe for concurrent use. A Meter about which nothing is known answers without a lock.
type Account struct {
	mu      sync.Mutex
	known   atomic.Bool // of any bucket or limit, on it or on one of its models
	buckets []bucket
	learned learned
}

// Meter implements failover.Meter and failover.Headroom.
type Meter struct {
	account *Account
	model   string // in lower case
	// generic is the reach of buckets whose headers do not say theirs.
	generic atomic.Uint32

	// Under the account's lock.
	buckets []bucket
	learned learned
	// How much of what was estimated was charged, as a moving average; 0 while that is not known.
	inputRatio, outputRatio float64
}

var (
	_ failover.Meter    = (*Meter)(nil)
	_ failover.Headroom = (*Meter)(nil)
)

// NewMeter returns the meter of a model on an account. generic is the scope of limits of which the
// upstream does not say whom they are for: resilience.ScopeModel or ScopeConnection.
func NewMeter(a *Account, model string, generic resilience.Scope) *Meter {
	m := &Meter{account: a, model: strings.ToLower(model)}
	m.Generic(generic)
	return m
}

// Generic changes the scope of limits of which the upstream does not say whom they are for.
func (m *Meter) Generic(s resilience.Scope) {
	reach := OfAccount
	if s == resilience.ScopeModel {
		reach = OfModel
	}
	m.generic.Store(uint32(reach))
}

// each calls f with every bucket that counts for the model.
func (m *Meter) each(f func(*bucket)) {
	for i := range m.buckets {
		f(&m.buckets[i])
	}
	for i := range m.account.buckets {
		if b := &m.account.buckets[i]; m.counts(b) {
			f(b)
		}
	}
}

// counts reports whether a bucket of the account is for the model too.
func (m *Meter) counts(b *bucket) bool { return b.class == "" || strings.Contains(m.model, b.class) }

// sizes are what a request takes of buckets, by unit.
type sizes [Share + 1]int64

// expected is what a request is taken for: its prompt, and a bounded part of the answer that it
// allows.
func expected(n failover.Needs) (input, output int64) {
	if output = n.Output; output == 0 {
		output = outputUnsaid
	}
	return max(n.Input, 1), min(output, outputMost)
}

// charged is what such a request takes of buckets, by what was charged of others lately.
func (m *Meter) charged(input, output int64) sizes {
	if m.inputRatio > 0 {
		input = max(int64(float64(input)*m.inputRatio), 1)
	}
	if m.outputRatio > 0 {
		output = max(int64(float64(output)*m.outputRatio), 1)
	}
	return sizes{Requests: 1, Tokens: input + output, InputTokens: input, OutputTokens: output}
}

// sized are buckets whose figures depend on how large a request is.
func sized(u Unit) bool { return u == Tokens || u == InputTokens || u == OutputTokens }

// Hold implements failover.Meter.
func (m *Meter) Hold(a *failover.Ask, now time.Time) (failover.Hold, bool) {
	if !m.account.known.Load() {
		return failover.Hold{}, false
	}
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	worst, until, counted := m.worst(a, now)
	if worst != nil && sized(worst.unit) && !measured(a) {
		// Now it matters how large the request is. Others need not wait while it is read.
		m.account.mu.Unlock()
		a.Needs()
		m.account.mu.Lock()
		worst, until, counted = m.worst(a, now)
	}
	if worst != nil {
		return failover.Hold{Until: until}, true
	}
	if counted {
		return failover.Hold{}, false
	}
	for _, l := range [2]*learned{&m.learned, &m.account.learned} {
		if t, held := l.hold(now); held {
			return failover.Hold{Until: t, Guess: true}, true
		}
	}
	return failover.Hold{}, false
}

// worst returns the bucket that keeps the request away for the longest, nil for none, and whether
// the upstream counts requests by itself.
func (m *Meter) worst(a *failover.Ask, now time.Time) (worst *bucket, until time.Time, counted bool) {
	need := m.charged(expected(rough(a)))
	m.each(func(b *bucket) {
		if !b.known(now) {
			return
		}
		counted = counted || b.unit == Requests
		n := int64(1)
		if sized(b.unit) {
			n = need[b.unit]
		}
		if t, held := b.hold(n, now); held && t.After(until) {
			worst, until = b, t
		}
	})
	return worst, until, counted
}

// Reason implements failover.Meter.
func (m *Meter) Reason(a *failover.Ask, now time.Time) string {
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	if worst, _, _ := m.worst(a, now); worst != nil {
		return worst.reason(now)
	}
	most, _ := m.learned.most(now)
	if n, known := m.account.learned.most(now); known && (most == 0 || n < most) {
		most = n
	}
	return fmt.Sprintf("by its refusals it takes about %d requests a minute, and has had them", most)
}

// rough is what a request needs as far as it was read; of one that was not, more than it can come to.
func rough(a *failover.Ask) failover.Needs {
	n, exact := a.Rough()
	if !exact {
		n.Input, n.Output = a.Bytes, outputMost
	}
	return n
}

func measured(a *failover.Ask) bool {
	_, exact := a.Rough()
	return exact
}

func (b *bucket) reason(now time.Time) string {
	left, _ := b.state(now)
	switch {
	case b.unit == Share:
		return "the " + b.name() + " is used up"
	case b.limit > 0:
		return fmt.Sprintf("%d of %d left of its %s", max(left, 0), b.limit, b.name())
	}
	return fmt.Sprintf("%d left of its %s", max(left, 0), b.name())
}

// Headroom implements failover.Headroom.
func (m *Meter) Headroom(now time.Time) (fraction float64, known bool) {
	if !m.account.known.Load() {
		return 0, false
	}
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	fraction = 1
	note := func(f float64, ok bool) {
		if ok {
			fraction, known = min(fraction, f), true
		}
	}
	counted := false
	m.each(func(b *bucket) {
		counted = counted || b.unit == Requests && b.known(now)
		note(b.fraction(now))
	})
	if !counted {
		note(m.learned.fraction(now))
		note(m.account.learned.fraction(now))
	}
	return fraction, known
}
