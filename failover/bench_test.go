package failover

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// BenchmarkRequest is the loop's own share of a request that is answered at once.
func BenchmarkRequest(b *testing.B) {
	r := newRig(b, resilience.Policy{})
	p := r.plan(b, Limits{}, "a/1/m", "a/2/m", "b/1/m")
	for i := range p.Targets {
		p.Targets[i].Streamed = new(Latency)
	}
	b.ReportAllocs()
	for b.Loop() {
		req := NewRequest(p, nil, true)
		a := req.Step(Event{Type: Begin}, r.now)
		req.Step(Event{Type: Content, Attempt: a.Attempt.ID}, r.now.Add(600*time.Millisecond))
		req.Step(Event{Type: Ended, Attempt: a.Attempt.ID}, r.now.Add(4*time.Second))
	}
}

// BenchmarkHandle is the same in real time, with its timer and its queue.
func BenchmarkHandle(b *testing.B) {
	r := newRig(b, resilience.Policy{})
	rn := NewRunner(r.Engine)
	defer rn.Close()
	p := r.plan(b, Limits{}, "a/1/m", "a/2/m", "b/1/m")
	b.ReportAllocs()
	for b.Loop() {
		h := rn.Handle(NewRequest(p, nil, true))
		a := h.Do(Event{Type: Begin})
		h.Tell(Event{Type: Content, Attempt: a.Attempt.ID})
		h.Do(h.Next(b.Context()))
		h.Do(Event{Type: Ended, Attempt: a.Attempt.ID})
		h.Close()
	}
}

// BenchmarkFullRoom is one more request in a room of 2,000, and its leaving.
func BenchmarkFullRoom(b *testing.B) {
	h := newHall(b, resilience.Policy{})
	p := h.plan(b, Limits{WaitingRoom: 3000}, "a/1/m", "a/2/m", "b/1/m")
	for _, t := range []string{"a/1/m", "a/2/m", "b/1/m"} {
		h.fails(t, "429/60s")
	}
	wake := func(time.Duration) {}
	for i := range 2000 {
		h.now = h.now.Add(time.Millisecond)
		h.Enter(NewRequest(p, nil, true), time.Hour, wake, h.now)
		if i%100 == 0 {
			h.Poll(h.now)
		}
	}
	req := NewRequest(p, nil, true)
	b.ReportAllocs()
	for b.Loop() {
		h.Enter(req, time.Hour, wake, h.now)
		h.Poll(h.now)
		h.Leave(req, h.now)
	}
}
