package failover

import (
	"sync/atomic"
	"testing"
	"time"

	"omniroute/resilience"
)

// A pulse counts what is in flight whatever becomes of it, and knows how soon answers begin by
// answers alone.
func TestPulseFollowsRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := r.plan(t, Limits{Patience: -1}, "a/1/m", "b/1/m")
	for i := range p.Targets {
		p.Targets[i].Pulse = &Pulse{Connection: new(atomic.Int32)}
	}
	a, b := p.Targets[0].Pulse, p.Targets[1].Pulse
	s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
	running := func(want ...int) {
		t.Helper()
		for i, w := range want {
			if p := p.Targets[i].Pulse; p.Running() != w || int(p.Connection.Load()) != w {
				t.Errorf("%s: %d and %d run, want %d", s.req.plan.Targets[i].Key(), p.Running(), p.Connection.Load(), w)
			}
		}
	}
	s.play(`begin -> dispatch a/1/m`)
	running(1, 0)
	s.play(`
		+40ms
		fail 500 -> dispatch b/1/m`)
	running(0, 1)
	if took, _ := a.FirstContent(true, InstantOf(r.now)); took != 0 {
		t.Errorf("a failure after 40ms counts as an answer after %v", took)
	}
	if n := a.Failures(InstantOf(r.now)); n != 1 {
		t.Errorf("%v failures", n)
	}
	if n := a.Failures(InstantOf(r.now.Add(fade))); n != 0.5 {
		t.Errorf("%v failures after %v", n, fade)
	}
	if n := a.Failures(InstantOf(r.now.Add(time.Hour))); n != 0 {
		t.Errorf("%v failures after an hour", n)
	}
	s.play(`
		+300ms
		content -> commit b/1/m`)
	running(0, 1)
	if took, age := b.FirstContent(true, InstantOf(r.now.Add(time.Second))); took != 300*time.Millisecond || age != time.Second {
		t.Errorf("%v, %v ago", took, age)
	}
	s.play(`
		+3s
		end -> finish`)
	running(0, 0)
	if took, _ := b.FirstContent(false, InstantOf(r.now)); took != 0 {
		t.Error("whole answers are another matter than streams")
	}
}

// An average rises at once to a peak and comes down slowly; what waits longer already counts.
func TestPulseIsSensitiveToPeaks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	p := &Pulse{}
	read := func() time.Duration {
		took, _ := p.FirstContent(true, InstantOf(now))
		return took
	}
	p.Seen(true, time.Second, now)
	p.Seen(true, 5*time.Second, now)
	if read() != 5*time.Second {
		t.Errorf("a peak: %v", read())
	}
	now = now.Add(5 * time.Second)
	p.Seen(true, time.Second, now)
	if got := read(); got < 3*time.Second || got >= 5*time.Second {
		t.Errorf("after one quick answer: %v", got)
	}
	now = now.Add(time.Minute)
	p.Seen(true, time.Second, now)
	if read() != time.Second {
		t.Errorf("after a minute: %v", read())
	}
	start := now
	p.begin(true, start)
	now = now.Add(400 * time.Millisecond)
	if read() != time.Second {
		t.Errorf("one that waits no longer than usual: %v", read())
	}
	now = now.Add(9 * time.Second)
	if got := read(); got < 9*time.Second {
		t.Errorf("one that has waited for 9.4s: %v", got)
	}
	p.end(true, true, false, start, now)
	if got := read(); got < 9*time.Second {
		t.Errorf("one that was given up after 9.4s would have taken as long at least: %v", got)
	}
	if p.Running() != 0 {
		t.Error("it runs no more")
	}
}
