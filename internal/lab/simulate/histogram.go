package simulate

import (
	"math/bits"
	"time"
)

// histogram counts durations with an error of at most 2%, in little room however many there are.
type histogram struct {
	counts [64 * 32]uint32
	n      uint64
	worst  time.Duration
}

// bucket numbers a duration: 32 buckets for each doubling of its microseconds.
func bucket(d time.Duration) int {
	us := uint64(max(d.Microseconds(), 0))
	if us < 64 {
		return int(us)
	}
	shift := bits.Len64(us) - 6
	return (shift << 5) + int(us>>shift)
}

// value is the middle of a bucket.
func value(b int) time.Duration {
	if b < 64 {
		return time.Duration(b) * time.Microsecond
	}
	shift := b>>5 - 1
	low := uint64(b-shift<<5) << shift
	return time.Duration(low+1<<shift/2) * time.Microsecond
}

func (h *histogram) add(d time.Duration) {
	h.counts[bucket(d)]++
	h.n++
	h.worst = max(h.worst, d)
}

// quantile returns the duration that q of all do not exceed; 0 when there are none.
func (h *histogram) quantile(q float64) time.Duration {
	if h.n == 0 {
		return 0
	}
	rank := uint64(q * float64(h.n-1))
	var seen uint64
	for b, c := range h.counts {
		if seen += uint64(c); seen > rank {
			return min(value(b), h.worst)
		}
	}
	return h.worst
}
