package headroom

import (
	"sync"
	"testing"
)

// TestSettledWhileItsAnswerIsRead: a hedged attempt is given up by one goroutine while another reads its answer. Nothing
// stays set aside, and what is heard of it after its end changes nothing.
func TestSettledWhileItsAnswerIsRead(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	const left = "x-ratelimit-limit-requests: 1000\nx-ratelimit-remaining-requests: 500\nx-ratelimit-reset-requests: 60"
	b.heard(left)
	for range 100 {
		r := b.send(oneToken)
		var reader sync.WaitGroup
		reader.Go(func() {
			r.Heard(headers(left), b.now)
			r.Used(10, 10)
		})
		r.Done(good, b.now)
		reader.Wait()
		r.Heard(headers("x-ratelimit-limit-requests: 1000\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 60"), b.now)
		r.Done(limited, b.now)
	}
	if got := b.m.buckets[0].reserved; got != 0 {
		t.Errorf("%d requests are still set aside", got)
	}
	if got := b.held(b.m, oneToken); got != 0 {
		t.Errorf("held for %v by the headers of an attempt that was over", got)
	}
}
