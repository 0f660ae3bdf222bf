package gateway

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/internal/config"
)

// TestMeterHoldsTheRate: whenever requests come, no span of the rate's time takes more than twice its requests (a full
// bucket and what refills meanwhile), the long run no more than the rate, and who waits as long as told gets in.
func TestMeterHoldsTheRate(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r := config.Rate{Requests: rapid.IntRange(1, 50).Draw(t, "requests"), Per: time.Duration(rapid.IntRange(1, 120).Draw(t, "seconds")) * time.Second}
		var m meter
		now, taken := time.Duration(0), 0
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			now += time.Duration(rapid.Int64Range(0, int64(r.Per)/int64(r.Requests)*2).Draw(t, "pause"))
			wait := m.take(r, now)
			if wait == 0 {
				taken++
			} else if m.take(r, now+wait) != 0 {
				t.Fatalf("told to wait %v, and then there was no room", wait)
			} else {
				now += wait
				taken++
			}
			if most := float64(r.Requests) + float64(now)/float64(r.Per)*float64(r.Requests) + 1; float64(taken) > most {
				t.Fatalf("%d requests by %v, at most %v should be", taken, now, most)
			}
		}
	})
	r, m := config.Rate{Requests: 3, Per: 3 * time.Second}, meter{}
	for i, want := range []time.Duration{0, 0, 0, time.Second} {
		if got := m.take(r, 0); got != want {
			t.Errorf("request %d at once: wait %v, want %v", i, got, want)
		}
	}
}
