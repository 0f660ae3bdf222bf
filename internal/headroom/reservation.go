package headroom

import (
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// Reserve implements failover.Meter.
func (m *Meter) Reserve(a *failover.Ask, now time.Time) failover.Reservation {
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	m.learned.send(now)
	m.account.learned.send(now)
	r := &Reservation{meter: m, sent: now}
	if !m.account.known.Load() {
		return r
	}
	fresh := false
	m.each(func(b *bucket) { fresh = fresh || b.known(now) })
	if !fresh {
		return r
	}
	n, _ := a.Rough()
	r.input, r.output = expected(n)
	r.size = m.charged(r.input, r.output)
	r.each(func(b *bucket, half int, bit uint16) {
		if b.unit != Share && m.counts(b) {
			b.reserved += r.size[b.unit]
			r.on[half] |= bit
		}
	})
	return r
}

// each calls f with every bucket that may hold something back for the attempt.
func (r *Reservation) each(f func(b *bucket, half int, bit uint16)) {
	for half, list := range [2][]bucket{r.meter.buckets, r.meter.account.buckets} {
		for i := range list {
			f(&list[i], half, 1<<i)
		}
	}
}

// id names a bucket.
type id struct {
	label string
	unit  Unit
	class string
}

// Reservation is what was set aside for one attempt. It is safe for concurrent use: who reads the answer may not
// know yet that the attempt is over.
type Reservation struct {
	meter *Meter
	sent  time.Time
	done  atomic.Bool

	// Under the account's lock.

	// The buckets that hold size back for it: those of the model, and in the upper half those of the
	// account. Neither list ever changes its order.
	on   [2]uint16
	size sizes
	// The estimate, and what was charged where that is known.
	input, output int64
	usedInput     int64
	usedOutput    int64
	used          bool
}

// Heard takes in the headers of the attempt's answer. What an upstream says of its own count has
// this attempt in it already, but for the answer that is still to be written.
func (r *Reservation) Heard(h http.Header, now time.Time) {
	got := readings.Get().(*Readings)
	if got.Read(h, now); got.n > 0 {
		r.take(got, now)
	}
	readings.Put(got)
}

// readings are large, and who reads them goes on to wait for a stream with the stack that this took.
var readings = sync.Pool{New: func() any { return new(Readings) }}

func (r *Reservation) take(got *Readings, now time.Time) {
	m := r.meter
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	if r.done.Load() {
		return
	}
	for i := range got.All() {
		x := &got.list[i]
		reach := x.Reach
		if reach == Unsaid {
			reach = Reach(m.generic.Load())
		}
		list := &m.buckets
		if reach == OfAccount {
			list = &m.account.buckets
		}
		b := find(list, id{x.Label, x.Unit, x.Class}, now)
		if b == nil {
			continue
		}
		b.take(x, r.sent, now)
		if x.Unit != OutputTokens {
			r.giveBack(func(o *bucket) bool { return o == b })
		}
	}
	m.account.known.Store(true)
}

// find finds a bucket or makes it, where there is room or one of which nothing is known any more.
func find(list *[]bucket, k id, now time.Time) *bucket {
	for i := range *list {
		if b := &(*list)[i]; b.label == k.label && b.unit == k.unit && b.class == k.class {
			return b
		}
	}
	fresh := bucket{label: strings.Clone(k.label), unit: k.unit, class: strings.ToLower(k.class), limit: -1}
	if len(*list) < maxBuckets {
		*list = append(*list, fresh)
		return &(*list)[len(*list)-1]
	}
	for i := range *list {
		if b := &(*list)[i]; b.reserved == 0 && !b.known(now) {
			*b = fresh
			return b
		}
	}
	return nil
}

// giveBack ends the hold on the buckets that f chooses.
func (r *Reservation) giveBack(f func(*bucket) bool) {
	r.each(func(b *bucket, half int, bit uint16) {
		if r.on[half]&bit != 0 && f(b) {
			b.reserved -= r.size[b.unit]
			r.on[half] &^= bit
		}
	})
}

// Used says what the answer has cost: prompt tokens that were charged, and tokens of the answer.
func (r *Reservation) Used(input, output int64) {
	r.meter.account.mu.Lock()
	defer r.meter.account.mu.Unlock()
	r.used, r.usedInput, r.usedOutput = true, input, output
}

// Done implements failover.Reservation.
func (r *Reservation) Done(v resilience.Verdict, now time.Time) {
	if r.done.Swap(true) {
		return
	}
	m := r.meter
	limited := v.Kind == resilience.KindRateLimit && (v.Scope == resilience.ScopeModel || v.Scope == resilience.ScopeConnection)
	if !limited && !m.account.known.Load() {
		return
	}
	m.account.mu.Lock()
	defer m.account.mu.Unlock()
	if r.used && r.input > 0 {
		m.inputRatio = average(m.inputRatio, float64(r.usedInput)/float64(r.input))
		m.outputRatio = average(m.outputRatio, float64(r.usedOutput)/float64(r.output))
	}
	spent := r.size
	if r.used {
		spent = sizes{Requests: 1, Tokens: r.usedInput + r.usedOutput, InputTokens: r.usedInput, OutputTokens: r.usedOutput}
	}
	r.giveBack(func(b *bucket) bool {
		if v.Scope == resilience.ScopeNone || b.unit == Requests {
			b.spend(spent[b.unit], now)
		}
		return true
	})
	switch {
	case limited:
		l := &m.learned
		if v.Scope == resilience.ScopeConnection {
			l = &m.account.learned
		}
		counted := false
		m.each(func(b *bucket) { counted = counted || b.unit == Requests && b.known(now) })
		if l.refuse(r.sent, now); counted {
			l.limit = 0 // the upstream tells it better
		}
		m.account.known.Store(true)
	case v.Scope == resilience.ScopeNone:
		m.learned.accept(now)
		m.account.learned.accept(now)
	}
}

// average is a moving average that begins with its first value.
func average(before, now float64) float64 {
	now = min(max(now, 0.001), 2)
	if before == 0 {
		return now
	}
	return before + (now-before)*0.3
}
