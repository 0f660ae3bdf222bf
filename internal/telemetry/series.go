package telemetry

import (
	"sync"
	"time"

	"omniroute/failover"
)

const (
	// SeriesStep is the length of one step of a Series.
	SeriesStep = 10 * time.Second
	// SeriesSpan is how long a Series and Timelines remember.
	SeriesSpan = time.Hour

	steps = int64(SeriesSpan / SeriesStep)

	// noticed is the shortest delay before the first attempt that counts as a wait.
	noticed = 20 * time.Millisecond
)

// Counts are what became of the requests that ended in some span of time.
type Counts struct {
	// Requests are all; Failed those that the client saw fail through no fault of its own: a 5xx, a
	// 429, or an answer that ended in the middle. Canceled are those whose client left.
	Requests, Failed, Canceled uint64
	// Recovered are requests that were answered after a failed attempt or a wait for a target; Delay
	// is how long after the request came the attempt that answered was dispatched, for all of them together.
	Recovered uint64
	Delay     time.Duration
	// Attempts are all upstream calls, Wasted those that failed.
	Attempts, Wasted uint64
	// FirstContent is the time to the first content that clients got.
	FirstContent Spread
}

func (c *Counts) add(o *Counts) {
	c.Requests += o.Requests
	c.Failed += o.Failed
	c.Canceled += o.Canceled
	c.Recovered += o.Recovered
	c.Delay += o.Delay
	c.Attempts += o.Attempts
	c.Wasted += o.Wasted
	c.FirstContent.merge(&o.FirstContent)
}

// Point is one step of a Series.
type Point struct {
	At time.Time // its beginning
	Counts
}

// Load is how much one provider was asked.
type Load struct{ Attempts, Wasted uint64 }

// Series counts the requests of the last hour in steps of ten seconds, in bounded memory whatever
// the traffic. It is safe for concurrent use.
type Series struct {
	mu        sync.Mutex
	ring      [steps]step
	providers map[string]*[steps]load
}

// step is a slot of the ring; number says which step it holds.
type step struct {
	number int64
	counts Counts
}

type load struct {
	number int64
	Load
}

// NewSeries returns an empty Series.
func NewSeries() *Series { return &Series{providers: map[string]*[steps]load{}} }

func numberOf(t time.Time) int64 { return t.UnixMilli() / SeriesStep.Milliseconds() }

func slotOf(number int64) int64 { return (number%steps + steps) % steps }

// Observe counts a request in the step in which it ended.
func (s *Series) Observe(story Story) {
	c := countsOf(&story)
	n := numberOf(story.At.Add(story.Duration))
	s.mu.Lock()
	defer s.mu.Unlock()
	slot := &s.ring[slotOf(n)]
	if slot.number != n {
		*slot = step{number: n}
	}
	slot.counts.add(&c)
	if story.FirstContent > 0 {
		slot.counts.FirstContent.add(story.FirstContent)
	}
	for i := range story.Attempts {
		a := &story.Attempts[i]
		ring := s.providers[a.Key.Provider]
		if ring == nil {
			ring = new([steps]load)
			s.providers[a.Key.Provider] = ring
		}
		l := &ring[slotOf(n)]
		if l.number != n {
			*l = load{number: n}
		}
		l.Attempts++
		if a.Outcome == failover.OutcomeFailed {
			l.Wasted++
		}
	}
}

// countsOf are one request's counts, but for its first content.
func countsOf(s *Story) Counts {
	c := Counts{Requests: 1, Attempts: uint64(len(s.Attempts))}
	for i := range s.Attempts {
		if s.Attempts[i].Outcome == failover.OutcomeFailed {
			c.Wasted++
		}
	}
	switch answered := s.Status < 400; {
	case s.Status == 499:
		c.Canceled = 1
	case s.Broke != "" || s.Status == 429 || s.Status >= 500:
		c.Failed = 1
	case answered:
		for i := range s.Attempts {
			a := &s.Attempts[i]
			if delay := max(a.At.Sub(s.At), 0); a.Outcome == failover.OutcomeAnswered && (c.Wasted > 0 || delay >= noticed) {
				c.Recovered, c.Delay = 1, delay
			}
		}
	}
	return c
}

// Points returns the steps of the hour before now, oldest first, the one that runs included. Steps
// without a request are there too, but for those before the first request of the hour.
func (s *Series) Points(now time.Time) []Point {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := numberOf(now)
	out := make([]Point, 0, steps)
	for n := last - steps + 1; n <= last; n++ {
		slot := &s.ring[slotOf(n)]
		if slot.number != n && len(out) == 0 {
			continue
		}
		p := Point{At: time.UnixMilli(n * SeriesStep.Milliseconds())}
		if slot.number == n {
			p.Counts = slot.counts
		}
		out = append(out, p)
	}
	return out
}

// Total adds up the steps of the span before now, and what each provider was asked in it. The span
// is rounded up to whole steps, the one that runs included.
func (s *Series) Total(now time.Time, span time.Duration) (Counts, map[string]Load) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := numberOf(now)
	first := last - min(int64((span+SeriesStep-1)/SeriesStep), steps) + 1
	var c Counts
	loads := map[string]Load{}
	for n := first; n <= last; n++ {
		if slot := &s.ring[slotOf(n)]; slot.number == n {
			c.add(&slot.counts)
		}
	}
	for id, ring := range s.providers {
		var l Load
		live := false
		for i := range ring {
			n := ring[i].number
			live = live || n > last-steps
			if n >= first && n <= last {
				l.Attempts += ring[i].Attempts
				l.Wasted += ring[i].Wasted
			}
		}
		if !live { // nobody has asked it for an hour; it may be gone from the configuration
			delete(s.providers, id)
			continue
		}
		loads[id] = l
	}
	return c, loads
}
