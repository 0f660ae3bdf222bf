package resilience

import (
	"math"
	"time"
)

// Backoff is the ladder of cooldowns: Base x 2^level, at most Max.
// The zero Backoff is the default one: 1, 2, 4, 8, 16, 32, 64, 120, 120, ... seconds.
type Backoff struct {
	Base     time.Duration // defaults to 1s
	Max      time.Duration // defaults to 120s
	MaxLevel int           // levels above it count as it; defaults to 15
}

// Duration returns the cooldown of that level. A fractional level counts as its floor, a
// negative one (or NaN) as 0. There is no jitter.
func (b Backoff) Duration(level float64) time.Duration {
	def(&b.Base, time.Second)
	def(&b.Max, 120*time.Second)
	def(&b.MaxLevel, 15)
	n := 0
	if level >= 1 { // false for NaN
		n = int(math.Min(level, float64(b.MaxLevel)))
	}
	return b.at(n)
}

// at is Duration for a level that is already an integer within bounds; it cannot overflow.
func (b Backoff) at(level int) time.Duration {
	d := b.Base
	for range min(level, b.MaxLevel) {
		if d >= b.Max-d {
			return b.Max
		}
		d *= 2
	}
	return min(d, b.Max)
}

// CalculateBackoffCooldown returns the default ladder's cooldown of that level.
func CalculateBackoffCooldown(level float64) time.Duration { return Backoff{}.Duration(level) }
