package lab

import (
	"math"
	"sync"
	"time"
)

// Fault is one way to fail. The zero Fault is a good answer. A fault is either an answer of its own
// (a status, a hang, a reset) or it shapes the answer that follows (slow, cut, stalled); faults that
// shape may be combined by [All]. A Fault may be shared by phases; those that count ([First],
// [Sequence], the limits) then count together.
type Fault struct {
	// Name is what counts and calls show as the outcome.
	Name string

	// apply says what it does to the exchange. It takes no time and may be called concurrently.
	// A fault that does not meet this call leaves the exchange alone.
	apply func(*exchange)
}

// String returns the fault's name, "ok" for the zero Fault.
func (f Fault) String() string {
	if f.apply == nil {
		return "ok"
	}
	return f.Name
}

// applyTo reports whether the exchange is settled by it.
func (f Fault) applyTo(x *exchange) bool {
	if f.apply != nil {
		f.apply(x)
	}
	return x.final != nil
}

// answers makes a fault that is an answer of its own.
func answers(name string, serve func(*exchange)) Fault {
	return Fault{Name: name, apply: func(x *exchange) {
		x.met = append(x.met, name)
		x.final = serve
	}}
}

// shapes makes a fault that changes the answer that follows.
func shapes(name string, change func(*plan)) Fault {
	return Fault{Name: name, apply: func(x *exchange) {
		x.met = append(x.met, name)
		change(&x.plan)
	}}
}

// All applies faults in order until one of them is an answer of its own:
// All(SlowHeaders(2*time.Second), ServerError()) is a slow 500.
func All(faults ...Fault) Fault {
	name := ""
	for i, f := range faults {
		if i > 0 {
			name += "+"
		}
		name += f.String()
	}
	return Fault{Name: name, apply: func(x *exchange) {
		for _, f := range faults {
			if f.applyTo(x) {
				return
			}
		}
	}}
}

// Sometimes meets a share of the calls, from 0 to 1, drawn from the provider's seed.
func Sometimes(share float64, f Fault) Fault {
	return Fault{Name: f.String(), apply: func(x *exchange) {
		if x.rnd.Float64() < share {
			f.applyTo(x)
		}
	}}
}

// First meets the first n calls that come to it.
func First(n int, f Fault) Fault {
	faults := make([]Fault, n)
	for i := range faults {
		faults[i] = f
	}
	return Sequence(faults...)
}

// Sequence meets the first call with the first fault, the second with the second and so on; a zero
// Fault among them is a good answer, and so is what comes after them.
func Sequence(faults ...Fault) Fault {
	var mu sync.Mutex
	next := 0
	return Fault{Name: "sequence", apply: func(x *exchange) {
		mu.Lock()
		i := next
		next++
		mu.Unlock()
		if i < len(faults) {
			faults[i].applyTo(x)
		}
	}}
}

// RateLimit lets every connection make n calls in a window that begins with its first call, and
// answers 429 to the rest of the window. The hint states the time to the window's end in the given
// form. With headers the good answers too carry x-ratelimit-limit-requests, -remaining-requests and
// -reset-requests.
func RateLimit(n int, window time.Duration, form HintForm, headers bool) Fault {
	type bucket struct {
		end  time.Time
		used int
	}
	var mu sync.Mutex
	buckets := make(map[string]*bucket)
	return Fault{Name: "rate-limit", apply: func(x *exchange) {
		mu.Lock()
		b := buckets[x.connection]
		if b == nil || !x.now.Before(b.end) {
			b = &bucket{end: x.now.Add(window)}
			buckets[x.connection] = b
		}
		ok := b.used < n
		if ok {
			b.used++
		}
		left, wait := n-b.used, b.end.Sub(x.now)
		mu.Unlock()
		if headers {
			x.limitHeaders(n, left, wait)
		}
		if !ok {
			RateLimited(Hint{form, wait}).applyTo(x)
		}
	}}
}

// Capacity fails the calls above perSecond, over all connections, with f. Up to a second's worth
// may come at once.
func Capacity(perSecond float64, f Fault) Fault {
	var mu sync.Mutex
	var last time.Time
	burst := math.Max(1, perSecond)
	tokens := burst
	return Fault{Name: f.String(), apply: func(x *exchange) {
		mu.Lock()
		if !last.IsZero() {
			tokens = math.Min(burst, tokens+x.now.Sub(last).Seconds()*perSecond)
		}
		last = x.now
		ok := tokens >= 1
		if ok {
			tokens--
		}
		mu.Unlock()
		if !ok {
			f.applyTo(x)
		}
	}}
}

// Concurrency fails the calls of a connection that come while n others of it are being answered.
func Concurrency(n int, f Fault) Fault {
	var mu sync.Mutex
	busy := make(map[string]int)
	return Fault{Name: f.String(), apply: func(x *exchange) {
		mu.Lock()
		defer mu.Unlock()
		if busy[x.connection] >= n {
			f.applyTo(x)
			return
		}
		busy[x.connection]++
		x.cleanup = append(x.cleanup, func() {
			mu.Lock()
			defer mu.Unlock()
			busy[x.connection]--
		})
	}}
}
