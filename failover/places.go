package failover

import (
	"sync"
	"sync/atomic"

	"omniroute/resilience"
)

// Places are how many attempts may run on one connection at once, and the line of those who wait
// for one. It belongs to the connection's identity: every plan that uses the connection has the
// same one. It is safe for concurrent use, reads no clock and starts nothing.
//
// Whoever comes while others wait joins the line. A place that is given back goes to the callers
// in turn, and to the oldest request of the caller whose turn it is, so that a caller with many
// requests does not starve one with few. When the line is full a newcomer takes the place in line
// of the newest request of the caller that has the most, if that is more than its own.
type Places struct {
	used, limit, waiting atomic.Int64

	mu    sync.Mutex
	lines []*line // of the callers that wait, in the order of their turns
	turn  int
}

// line is what waits of one caller, the oldest first.
type line struct {
	caller uint64
	queue  []*ticket
}

// ticket is one request in line for any of several connections.
type ticket struct {
	caller uint64
	wake   func()
	at     []*Places
	lines  atomic.Int32           // how many of them still have it in line
	got    atomic.Pointer[Places] // who gave it a place, or gone or crowdedOut
}

// gone marks a ticket whose request waits no more, crowdedOut one that others took the place in
// line of. Neither has places to give.
var gone, crowdedOut = new(Places), new(Places)

// Limit sets how many attempts may run at once from now on; 0 means any number. Those that run
// already go on.
func (p *Places) Limit(n int) {
	p.limit.Store(int64(max(n, 0)))
	p.serve()
}

// Used returns how many attempts run.
func (p *Places) Used() int { return int(p.used.Load()) }

// Most returns how many may run at once; 0 means any number.
func (p *Places) Most() int { return int(p.limit.Load()) }

// Waiting returns how many requests wait in line here.
func (p *Places) Waiting() int { return int(p.waiting.Load()) }

// Free reports whether one who comes now would have a place at once.
func (p *Places) Free() bool { return !p.busy() }

// busy reports whether a newcomer would have to wait.
func (p *Places) busy() bool {
	if p == nil {
		return false
	}
	limit := p.limit.Load()
	return limit > 0 && (p.used.Load() >= limit || p.waiting.Load() > 0)
}

// take takes a place for one who has not waited, or reports that there is none.
func (p *Places) take() bool {
	if p == nil {
		return true
	}
	if limit := p.limit.Load(); limit > 0 && p.waiting.Load() > 0 {
		return false
	}
	return p.occupy()
}

func (p *Places) occupy() bool {
	for {
		used, limit := p.used.Load(), p.limit.Load()
		if limit > 0 && used >= limit {
			return false
		}
		if p.used.CompareAndSwap(used, used+1) {
			return true
		}
	}
}

// free gives a place back.
func (p *Places) free() {
	if p == nil {
		return
	}
	p.used.Add(-1)
	if p.waiting.Load() > 0 {
		p.serve()
	}
}

// serve gives places to those in line as long as there are any.
func (p *Places) serve() {
	p.mu.Lock()
	var wake []func()
	for p.waiting.Load() > 0 && p.occupy() {
		t := p.next()
		if t.got.CompareAndSwap(nil, p) {
			wake = append(wake, t.wake)
			continue
		}
		p.used.Add(-1) // it has found a place elsewhere, or waits no more
	}
	p.mu.Unlock()
	for _, w := range wake {
		w()
	}
}

// next takes the next ticket out of the line, which must have one.
func (p *Places) next() *ticket {
	if p.turn >= len(p.lines) {
		p.turn = 0
	}
	l := p.lines[p.turn]
	t := l.queue[0]
	l.queue[0] = nil
	l.queue = l.queue[1:]
	p.left(p.turn)
	if len(l.queue) > 0 {
		p.turn++ // the next caller's turn; a line that has ended leaves its index to the next
	}
	return t
}

// left notes that line i has lost one.
func (p *Places) left(i int) {
	p.waiting.Add(-1)
	if len(p.lines[i].queue) > 0 {
		return
	}
	p.lines = append(p.lines[:i], p.lines[i+1:]...)
	if i < p.turn {
		p.turn--
	}
}

func (p *Places) lineOf(caller uint64) int {
	for i, l := range p.lines {
		if l.caller == caller {
			return i
		}
	}
	return -1
}

// join puts a ticket into the line, which takes at most depth, and reports whether it is in.
func (p *Places) join(t *ticket, depth int) bool {
	p.mu.Lock()
	var wake func()
	if in := p.waiting.Load() < int64(depth); !in {
		if wake, in = p.crowd(t.caller, depth); !in {
			p.mu.Unlock()
			return false
		}
	}
	i := p.lineOf(t.caller)
	if i < 0 {
		// Its turn comes after that of all who wait already.
		i = p.turn
		p.lines = append(p.lines, nil)
		copy(p.lines[i+1:], p.lines[i:])
		p.lines[i] = &line{caller: t.caller}
		p.turn++
	}
	p.lines[i].queue = append(p.lines[i].queue, t)
	t.lines.Add(1)
	p.waiting.Add(1)
	p.mu.Unlock()
	if wake != nil {
		wake()
	}
	p.serve() // one may have been given back before we were in line
	return true
}

// crowd takes the newest request of the caller with the most out of a full line, if that has at
// least two more than the one who wants to come in. Of callers with equally many it is the one whose
// turn comes last: that request would be served last of all.
func (p *Places) crowd(caller uint64, depth int) (wake func(), ok bool) {
	most, own := -1, 0
	for k := range p.lines {
		i := (p.turn + k) % len(p.lines)
		n := len(p.lines[i].queue)
		if p.lines[i].caller == caller {
			own = n
		}
		if most < 0 || n >= len(p.lines[most].queue) {
			most = i
		}
	}
	if depth <= 0 || most < 0 || len(p.lines[most].queue) < own+2 {
		return nil, false
	}
	l := p.lines[most]
	n := len(l.queue) - 1
	t := l.queue[n]
	l.queue[n] = nil
	l.queue = l.queue[:n]
	p.left(most)
	if t.lines.Add(-1) == 0 && t.got.CompareAndSwap(nil, crowdedOut) {
		wake = t.wake
	}
	return wake, true
}

// leave takes a ticket out of the line, where it may not be any more.
func (p *Places) leave(t *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := p.lineOf(t.caller)
	if i < 0 {
		return
	}
	l := p.lines[i]
	for k, x := range l.queue {
		if x == t {
			l.queue = append(l.queue[:k], l.queue[k+1:]...)
			p.left(i)
			return
		}
	}
}

// PlaceSet holds the places of connections by their names. It is safe for concurrent use.
type PlaceSet struct {
	mu   sync.Mutex
	kept map[resilience.Key]*Places
}

// Of returns the places of a target's connection.
func (s *PlaceSet) Of(k resilience.Key) *Places {
	k.Model = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.kept[k]
	if p == nil {
		if s.kept == nil {
			s.kept = map[resilience.Key]*Places{}
		}
		p = new(Places)
		s.kept[k] = p
	}
	return p
}

// find is Of, and nil for a connection that nobody has asked Of for.
func (s *PlaceSet) find(k resilience.Key) *Places {
	k.Model = ""
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.kept[k]
}

// Each calls f with each connection's places, in no order.
func (s *PlaceSet) Each(f func(k resilience.Key, p *Places)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, p := range s.kept {
		f(k, p)
	}
}

// Limit sets the limits of all connections, by provider and connection; 0 means any number. Those
// that are not named are forgotten; what runs on them is not affected.
func (s *PlaceSet) Limit(limits map[resilience.Key]int) {
	s.mu.Lock()
	var changed []*Places
	for k := range s.kept {
		if _, stays := limits[k]; !stays {
			s.kept[k].limit.Store(0)
			changed = append(changed, s.kept[k])
			delete(s.kept, k)
		}
	}
	s.mu.Unlock()
	for _, p := range changed {
		p.serve() // whoever waits finds the connection gone
	}
	for k, n := range limits {
		s.Of(k).Limit(n)
	}
}
