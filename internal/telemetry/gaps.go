package telemetry

import (
	"math"
	"time"
)

// The cells of Gaps are buckets of a native histogram of this schema: four to each power of two, from
// gapFloor seconds to half an hour.
const (
	gapSchema  = 2
	gapPer     = 1 << gapSchema
	gapLowest  = -16 // a power of two, in seconds: 15 µs; what is shorter is as good as nothing
	gapHighest = 11
	gapCells   = (gapHighest - gapLowest) * gapPer
)

// gapFloor is the longest time that counts as none, in seconds.
var gapFloor = math.Ldexp(1, gapLowest)

// The upper bounds of a power of two's cells, as shares of its end; the last is the end itself.
const (
	gapBound1 = 0.5946035575013605
	gapBound2 = 0.7071067811865475
	gapBound3 = 0.8408964152537145
)

// Gaps are the times for which a stream let us wait for each of its pieces, counted in cells. The zero
// value is empty. It is not safe for concurrent use.
type Gaps struct {
	none  uint32 // up to gapFloor
	sum   time.Duration
	cells []gapCount // that have any, in the order in which they got it: of a stream there are few
}

type gapCount struct {
	cell uint8
	n    uint32
}

// Add counts one. It takes some nanoseconds and no clock.
func (g *Gaps) Add(d time.Duration) {
	g.sum += max(d, 0)
	cell := gapCell(d)
	if cell < 0 {
		g.none++
		return
	}
	for i := range g.cells {
		if c := &g.cells[i]; int(c.cell) == cell {
			c.n++
			return
		}
	}
	g.cells = append(g.cells, gapCount{uint8(cell), 1})
}

// gapCell returns the cell of a time, -1 for one that is as good as none.
func gapCell(d time.Duration) int {
	s := d.Seconds()
	if s <= gapFloor {
		return -1
	}
	share, power := math.Frexp(s)
	n := 3
	switch {
	case share <= 0.5:
		n = -1 // just at the end of the power before
	case share <= gapBound1:
		n = 0
	case share <= gapBound2:
		n = 1
	case share <= gapBound3:
		n = 2
	}
	return min((power-1-gapLowest)*gapPer+n, gapCells-1)
}

// Count is how many were added.
func (g *Gaps) Count() uint64 {
	n := uint64(g.none)
	for _, c := range g.cells {
		n += uint64(c.n)
	}
	return n
}
