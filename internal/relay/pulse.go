package relay

import (
	"io"
	"sync"
	"time"
)

// pulse reads an upstream's body and knows how long it has been waiting for it. Time in which
// nobody reads, because the client is slow, counts against nobody.
type pulse struct {
	src io.Reader

	mu      sync.Mutex
	armed   bool
	since   time.Time     // when the present Read began, zero outside of one
	dry     time.Duration // time spent in Reads since the last content
	timer   *time.Timer
	idle    time.Duration
	stall   time.Duration
	expired func(timer string, after time.Duration)
}

// arm starts the two timers of a stream: idle bounds one wait for bytes, stall all waits since
// the last content.
func (p *pulse) arm(idle, stall time.Duration, expired func(timer string, after time.Duration)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.idle, p.stall, p.expired, p.armed = idle, stall, expired, true
	p.timer = time.AfterFunc(min(idle, stall), p.check)
}

// disarm stops the timers.
func (p *pulse) disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.armed = false
	if p.timer != nil {
		p.timer.Stop()
	}
}

// content says that the stream has made progress.
func (p *pulse) content() {
	p.mu.Lock()
	p.dry = 0
	p.mu.Unlock()
}

// Read implements io.Reader.
func (p *pulse) Read(b []byte) (int, error) {
	if !p.armed { // only the reading goroutine arms
		return p.src.Read(b)
	}
	start := time.Now()
	p.mu.Lock()
	p.since = start
	p.mu.Unlock()
	n, err := p.src.Read(b)
	p.mu.Lock()
	p.dry += time.Since(start)
	p.since = time.Time{}
	p.mu.Unlock()
	return n, err
}

// check runs when a timer might have run out and sets it anew when it has not.
func (p *pulse) check() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.armed {
		return
	}
	var waiting time.Duration
	if !p.since.IsZero() {
		waiting = time.Since(p.since)
	}
	switch {
	case waiting >= p.idle:
		p.armed = false
		p.expired("idle_timeout", p.idle)
	case p.dry+waiting >= p.stall:
		p.armed = false
		p.expired("stall_timeout", p.stall)
	default:
		p.timer.Reset(max(min(p.idle-waiting, p.stall-p.dry-waiting), time.Millisecond))
	}
}
