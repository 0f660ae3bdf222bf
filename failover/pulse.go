package failover

import (
	"math"
	"sync/atomic"
	"time"
)

// Pulse is how a target is doing, as its requests see it: how many calls are in flight, how often
// it failed lately, and how soon it answers. It is what strategies choose by; it excludes nobody.
// The zero value is ready to use; it is safe for concurrent use, and reading takes no lock.
//
// What fails fast must never look idle or fast. So a failure goes on counting as a call in flight
// for about as long as an answer takes, and only answers say how soon a target answers.
type Pulse struct {
	// Connection counts what runs on the same connection, whatever the model. Nil: nobody counts.
	Connection *atomic.Int32

	running  atomic.Int32
	failures atomic.Uint64 // a float64 that fades: the recent failures
	failedAt atomic.Int64
	streamed pace
	whole    pace
}

// fade is how long it takes until half of the recent failures are forgotten.
const fade = 10 * time.Second

// origin is where instants count from: differences of times keep their monotonic reading.
var origin = time.Now()

// Instant is a time as pulses have it. Whoever asks many of them makes it once.
type Instant int64

// InstantOf returns the instant of a time.
func InstantOf(t time.Time) Instant { return Instant(t.Sub(origin)) }

// Seen takes in one time to a first content that was measured elsewhere.
func (p *Pulse) Seen(stream bool, took time.Duration, now time.Time) { p.pace(stream).add(took, now) }

// Running returns how many calls are in flight.
func (p *Pulse) Running() int { return int(p.running.Load()) }

// Busy returns how many calls are in flight, with recent failures as if they still were. What runs
// on the connection for other models decides between two that are otherwise alike.
func (p *Pulse) Busy(now Instant) float64 {
	if p == nil {
		return 0
	}
	busy := float64(p.running.Load()) + p.Failures(now)
	if p.Connection != nil {
		busy += float64(p.Connection.Load()) / (1 << 20)
	}
	return busy
}

// Failures returns how many calls failed lately; half of them are forgotten every 10s.
func (p *Pulse) Failures(now Instant) float64 {
	if p == nil {
		return 0
	}
	if bits := p.failures.Load(); bits != 0 {
		return p.faded(math.Float64frombits(bits), now)
	}
	return 0
}

func (p *Pulse) faded(n float64, now Instant) float64 {
	age := int64(now) - p.failedAt.Load()
	if age > int64(10*fade) {
		return 0
	}
	return n * math.Exp2(-float64(max(age, 0))/float64(fade))
}

// FirstContent returns how long a first content takes at present, 0 when none ever came, and how long
// ago the last one came. Calls that have waited longer than that already count as well.
func (p *Pulse) FirstContent(stream bool, now Instant) (took, age time.Duration) {
	if p == nil {
		return 0, 0
	}
	return p.pace(stream).read(now)
}

func (p *Pulse) pace(stream bool) *pace {
	if stream {
		return &p.streamed
	}
	return &p.whole
}

// begin hears of an attempt.
func (p *Pulse) begin(stream bool, now time.Time) {
	if p == nil {
		return
	}
	p.running.Add(1)
	if p.Connection != nil {
		p.Connection.Add(1)
	}
	p.pace(stream).wait(+1, now)
}

// content hears of an attempt's first content, which says how soon the target answers unless telling is false.
func (p *Pulse) content(stream, telling bool, start, now time.Time) {
	if p == nil {
		return
	}
	pc := p.pace(stream)
	pc.wait(-1, start)
	if telling {
		pc.add(now.Sub(start), now)
	}
}

// end hears of the end of an attempt; waited says that no first content had come.
func (p *Pulse) end(stream, waited, failed bool, start, now time.Time) {
	if p == nil {
		return
	}
	p.running.Add(-1)
	if p.Connection != nil {
		p.Connection.Add(-1)
	}
	if waited {
		pc := p.pace(stream)
		pc.wait(-1, start)
		// It would have taken at least so long.
		if took := now.Sub(start); pc.average.Load() > 0 && int64(took) > pc.average.Load() {
			pc.add(took, now)
		}
	}
	if failed {
		at := InstantOf(now)
		n := p.Failures(at) + 1
		p.failedAt.Store(int64(at))
		p.failures.Store(math.Float64bits(n))
	}
}

// pace is an average that is sensitive to peaks: it rises at once to what was just seen, and
// comes down in the course of settle.
type pace struct {
	average atomic.Int64 // nanoseconds, 0 while nothing is known
	last    atomic.Int64
	// Those that wait for their first content, and the sum of the instants since when, in microseconds.
	waiting atomic.Int64
	since   atomic.Int64
}

// settle is how long it takes until what was seen before weighs a third.
const settle = 10 * time.Second

func (c *pace) wait(n int64, start time.Time) {
	c.since.Add(n * (int64(InstantOf(start)) / 1000))
	c.waiting.Add(n)
}

// add takes in one more time. Of two that do so at once one may get lost, which is no harm.
func (c *pace) add(took time.Duration, now time.Time) {
	took = max(took, 1)
	at := int64(InstantOf(now))
	before := c.average.Load()
	if age := max(at-c.last.Load(), 0); int64(took) < before && age < int64(3*settle) { // what is older says nothing now
		weight := math.Exp(-float64(age) / float64(settle))
		took = max(time.Duration(float64(before)*weight+float64(took)*(1-weight)), 1)
	}
	c.average.Store(int64(took))
	c.last.Store(at)
}

func (c *pace) read(now Instant) (took, age time.Duration) {
	took = time.Duration(c.average.Load())
	if took == 0 {
		return 0, 0
	}
	if n := c.waiting.Load(); n > 0 {
		took = max(took, time.Duration(int64(now)-c.since.Load()/n*1000))
	}
	return took, time.Duration(int64(now) - c.last.Load())
}
