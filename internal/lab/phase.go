package lab

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Phase is a part of a provider's script: a fault that holds from one time to another for some of
// its targets. The phases of a script are asked in order; a fault that answers ends the search, one
// that only shapes the answer (a slow start, a cut) adds to what follows.
type Phase struct {
	// From and To are counted from the start of the script or of its round. To is exclusive; zero
	// means for ever.
	From, To time.Duration
	// Match says whom the phase meets. Nil means everybody. It must be quick and not block.
	Match func(connection, model string) bool
	// Fault is what happens. The zero Fault is a good answer; it ends the search too, so that a
	// phase can make an exception from those after it.
	Fault Fault
}

func (p Phase) covers(at time.Duration, connection, model string) bool {
	return at >= p.From && (p.To == 0 || at < p.To) && (p.Match == nil || p.Match(connection, model))
}

// Always returns a phase that lasts for ever and meets every target.
func Always(f Fault) Phase { return Phase{Fault: f} }

// OnConnection matches the named connections, whatever the model.
func OnConnection(names ...string) func(connection, model string) bool {
	return func(connection, _ string) bool { return slices.Contains(names, connection) }
}

// OnModel matches the named models, whatever the connection.
func OnModel(names ...string) func(connection, model string) bool {
	return func(_, model string) bool { return slices.Contains(names, model) }
}

// OnTarget matches one model on one connection.
func OnTarget(connection, model string) func(connection, model string) bool {
	return func(c, m string) bool { return c == connection && m == model }
}

// Delay is a distribution of waits: lognormal, as the times of real services nearly are.
// The zero Delay waits for nothing.
type Delay struct {
	// Median is the middle of the distribution.
	Median time.Duration
	// Sigma is the standard deviation of the logarithm: 0 always gives the median, 0.5 has its
	// 99th percentile at 3.2 times the median, 1 at 10 times.
	Sigma float64
	// Max bounds a wait. Zero means no bound.
	Max time.Duration
}

func (d Delay) draw(rnd *rand.Rand) time.Duration {
	if d.Median <= 0 {
		return 0
	}
	v := d.Median
	if d.Sigma != 0 {
		f := float64(d.Median) * math.Exp(d.Sigma*rnd.NormFloat64())
		v = time.Duration(min(f, float64(math.MaxInt64/2)))
	}
	if d.Max > 0 {
		v = min(v, d.Max)
	}
	return v
}

// Latency is how a well provider takes its time.
type Latency struct {
	// FirstContent is the wait from the request to the first content. A streamed answer sends its
	// headers before it.
	FirstContent Delay
	// Gap is the wait between two pieces of content. A plain answer takes the sum of both.
	Gap Delay
}
