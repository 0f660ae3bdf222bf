package headroom

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// TestLearned: without headers a limit is learned from a refusal, once for a burst, falls with each
// further one, rises slowly, more slowly when that was wrong, and is forgotten.
func TestLearned(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	b.m.Reserve(oneToken, b.now).Done(limited, b.now)
	if b.held(b.m, oneToken) != 0 {
		t.Fatal("one refusal of one request is taken for a limit")
	}
	for range 10 {
		b.send(oneToken).Done(good, b.now)
		b.now = b.now.Add(time.Second)
	}
	burst := []*Reservation{b.send(oneToken), b.send(oneToken), b.send(oneToken)}
	for _, r := range burst {
		r.Done(limited, b.now)
	}
	if most, _ := b.m.learned.most(b.now); most != 10 {
		t.Fatalf("after 10 requests and a burst of refusals the limit is %d", most)
	}
	if got := b.held(b.m, oneToken); got <= 0 || got > window {
		t.Fatalf("held for %v", got)
	}
	if f, known := b.m.Headroom(b.now); !known || f != 0 {
		t.Errorf("headroom %v, %v", f, known)
	}
	b.now = b.now.Add(b.held(b.m, oneToken))
	if b.held(b.m, oneToken) != 0 {
		t.Error("held when the first request has left the window")
	}
	b.now = now.Add(riseEvery + time.Minute)
	if most, _ := b.m.learned.most(b.now); most != 11 {
		t.Errorf("after a quiet time the limit is %d", most)
	}
	for range 10 {
		b.send(oneToken).Done(good, b.now)
	}
	b.send(oneToken).Done(limited, b.now)
	if most, _ := b.m.learned.most(b.now.Add(riseEvery)); most != 10 {
		t.Errorf("a limit that was confirmed is %d after the usual pause", most)
	}
	b.now = b.now.Add(2 * time.Minute)
	b.send(oneToken).Done(limited, b.now)
	if most, _ := b.m.learned.most(b.now); most != 7 {
		t.Errorf("a refusal long before the limit leaves %d", most)
	}
	b.now = b.now.Add(learnedLife)
	if _, known := b.m.learned.most(b.now); known {
		t.Error("never forgotten")
	}
}

// TestLearnedIsWrong: answers beyond the limit raise it at once.
func TestLearnedIsWrong(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	for range 4 {
		b.send(oneToken).Done(good, b.now)
	}
	b.send(oneToken).Done(account, b.now)
	other := NewMeter(b.a, "other", resilience.ScopeConnection)
	if b.held(b.m, oneToken) == 0 || b.held(other, oneToken) == 0 {
		t.Fatal("the account's limit does not hold")
	}
	for range 3 {
		b.send(oneToken).Done(good, b.now)
	}
	if most, _ := b.a.learned.most(b.now); most != 7 {
		t.Errorf("the limit is %d after seven were taken", most)
	}
}

// TestFiguresGoBeforeGuesses: an upstream that counts by itself is believed.
func TestFiguresGoBeforeGuesses(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	for range 4 {
		b.send(oneToken).Done(good, b.now)
	}
	r := b.send(oneToken)
	r.Heard(headers("x-ratelimit-remaining-requests: 50"), b.now)
	r.Done(limited, b.now)
	if got := b.held(b.m, oneToken); got != 0 {
		t.Errorf("held for %v", got)
	}
}
