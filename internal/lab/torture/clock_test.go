package torture

import (
	"testing"
	"time"
	"unsafe"
)

// clock is a virtual clock with two hands: the monotonic one, which only goes on, and the wall's,
// which may jump.
type clock struct {
	mono time.Duration // since the world began
	jump time.Duration // of the wall clock, in all
}

// began is what the wall clock showed when every world began.
var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// now is a time as time.Now makes it, with both hands.
func (c *clock) now() time.Time { return bothHands(began.Add(c.mono+c.jump), c.mono+time.Hour) }

// steady is a wall clock that never jumps.
func (c *clock) steady() time.Time { return began.Add(c.mono) }

// wall is the wall clock in unix milliseconds.
func (c *clock) wall() int64 { return began.Add(c.mono + c.jump).UnixMilli() }

// bothHands makes a time with a monotonic reading of its own. The time package has no function for
// that; TestClock would notice if its representation changed.
func bothHands(wall time.Time, mono time.Duration) time.Time {
	const since1885 = (1969*365+1969/4-1969/100+1969/400)*86400 - (1884*365+1884/4-1884/100+1884/400)*86400
	var t time.Time
	l := (*struct {
		wall uint64
		ext  int64
		loc  *time.Location
	})(unsafe.Pointer(&t))
	l.wall = 1<<63 | uint64(wall.Unix()+since1885)<<30 | uint64(wall.Nanosecond())
	l.ext = int64(mono)
	return t
}

func TestClock(t *testing.T) {
	t.Parallel()
	c := &clock{mono: 5 * time.Second}
	before := c.now()
	c.mono += 3 * time.Second
	c.jump = -time.Hour
	after := c.now()
	if d := after.Sub(before); d != 3*time.Second {
		t.Errorf("%v have passed, want 3s", d)
	}
	if want := began.Add(8*time.Second - time.Hour); !after.Round(0).Equal(want) {
		t.Errorf("the wall clock shows %v, want %v", after, want)
	}
}
