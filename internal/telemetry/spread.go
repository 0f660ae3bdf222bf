package telemetry

import (
	"math"
	"time"
)

const (
	// spreadCells times spreadGrowth's power reach from one millisecond to 14 minutes; each cell is 15% wide.
	spreadCells  = 98
	spreadGrowth = 1.15
)

var spreadLog = math.Log(spreadGrowth)

// Spread is a distribution of times in cells that grow by 15%, so that a quantile is off by less
// than 8%. The zero value is empty; adding two is exact.
type Spread struct{ cells [spreadCells]uint32 }

func (s *Spread) add(d time.Duration) {
	ms := float64(d) / float64(time.Millisecond)
	i := 0
	if ms > 1 {
		i = min(int(math.Log(ms)/spreadLog)+1, spreadCells-1)
	}
	s.cells[i]++
}

func (s *Spread) merge(o *Spread) {
	for i := range s.cells {
		s.cells[i] += o.cells[i]
	}
}

// Count is how many times were added.
func (s *Spread) Count() (n uint64) {
	for _, c := range s.cells {
		n += uint64(c)
	}
	return n
}

// Quantile returns the time that a share q (0 to 1) of all stay below, 0 when there are none.
func (s *Spread) Quantile(q float64) time.Duration {
	n := s.Count()
	if n == 0 {
		return 0
	}
	rank := max(uint64(math.Ceil(q*float64(n))), 1)
	for i, c := range s.cells {
		if rank <= uint64(c) {
			if i == 0 {
				return time.Millisecond
			}
			// The geometric middle of the cell.
			return time.Duration(math.Pow(spreadGrowth, float64(i)-0.5) * float64(time.Millisecond))
		}
		rank -= uint64(c)
	}
	return 0
}
