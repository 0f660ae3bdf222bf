package simulate

import (
	"math/rand/v2"
	"testing"
	"time"
)

// Things happen in the order of their time, those of one time in the order of their entry, and what is
// entered for a time that has passed happens now.
func TestQueue(t *testing.T) {
	t.Parallel()
	var q queue
	rng := rand.New(rand.NewPCG(1, 2))
	type entry struct {
		at time.Duration
		n  int
	}
	var last entry
	entries, happened := 0, 0
	var enter func()
	enter = func() {
		entries++
		want := entry{max(time.Duration(rng.IntN(100)-5)+q.now, q.now), entries}
		q.at(want.at, func() {
			happened++
			if q.now != want.at || want.at < last.at || want.at == last.at && want.n < last.n {
				t.Errorf("%+v at %d, after %+v", want, q.now, last)
			}
			last = want
			for range rng.IntN(3) {
				if entries < 5000 {
					enter()
				}
			}
		})
	}
	for range 100 {
		enter()
	}
	for q.step() {
	}
	if happened != entries || len(q.items) != 0 {
		t.Errorf("%d of %d happened", happened, entries)
	}
}
