package harness

import (
	"sync/atomic"
	"testing"
	"time"
)

// Rest waits for so long, and for as long again as the machine has let this process wait for its turn meanwhile.
func Rest(t testing.TB, d time.Duration) {
	lag, begun := Lag(t), time.Now()
	for time.Since(begun) < d+lag() {
		time.Sleep(5 * time.Millisecond)
	}
}

// Lag measures, until the test ends, for how long the machine lets this process wait for its turn, and returns what
// that has come to since. It is what a busy machine, or one that stands still for a while, adds to the time that
// something takes, and no gateway's fault.
func Lag(t testing.TB) (sum func() time.Duration) {
	const nap, usual = 5 * time.Millisecond, 2 * time.Millisecond
	var total atomic.Int64
	go func() {
		for t.Context().Err() == nil {
			begun := time.Now()
			time.Sleep(nap)
			if late := time.Since(begun) - nap; late > usual {
				total.Add(int64(late))
			}
		}
	}()
	return func() time.Duration { return time.Duration(total.Load()) }
}
