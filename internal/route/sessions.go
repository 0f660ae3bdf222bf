package route

import (
	"sync"
	"time"
)

// sessions remembers where each session is at home, so that it meets a warm cache. It is bounded: a
// session that was not seen for long is forgotten, and when there are too many the one that was not
// seen for longest. It outlives reloads.
type sessions struct {
	mu    sync.Mutex
	limit int
	keep  time.Duration
	at    map[uint64]int32 // the slot of a session at a place
	slots []slot           // slot 0 is the ring's anchor
	free  []int32
	count map[uint64]int32 // sessions by home
}

// slot is one session at one place, in a ring from the one seen last to the one seen first.
type slot struct {
	key, home  uint64
	place      uint64
	seen       time.Time
	prev, next int32
}

func newSessions() *sessions {
	return &sessions{at: map[uint64]int32{}, slots: make([]slot, 1), count: map[uint64]int32{}}
}

// set changes the bounds.
func (s *sessions) set(limit int, keep time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.limit, s.keep = limit, keep
	s.trim()
}

// home returns where a session is at home at a place, false where it is not known. It changes nothing.
func (s *sessions) home(place, session uint64, now time.Time) (uint64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	i, ok := s.at[mix(place^session)]
	if !ok || now.Sub(s.slots[i].seen) > s.keep {
		return 0, false
	}
	return s.slots[i].home, true
}

// put notes that a session was seen, and where it is at home from now on.
func (s *sessions) put(place, session, home uint64, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for last := s.slots[0].prev; last != 0 && now.Sub(s.slots[last].seen) > s.keep; last = s.slots[0].prev {
		s.remove(last)
	}
	key := mix(place ^ session)
	i, ok := s.at[key]
	switch {
	case ok:
		s.cut(i)
		s.add(s.slots[i].home, place, -1)
	case len(s.free) > 0:
		i = s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
	default:
		i = int32(len(s.slots))
		s.slots = append(s.slots, slot{})
	}
	s.slots[i] = slot{key: key, home: home, place: place, seen: now}
	s.at[key] = i
	s.add(home, place, +1)
	first := s.slots[0].next
	s.slots[i].next, s.slots[first].prev = first, i
	s.slots[0].next = i
	s.trim()
}

// at home returns how many sessions are at home at each of several.
func (s *sessions) homes(place uint64, kids []kid, into []int32) []int32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range kids {
		into = append(into, s.count[mix(place^kids[i].id)])
	}
	return into
}

func (s *sessions) add(home, place uint64, n int32) {
	key := mix(place ^ home)
	if s.count[key] += n; s.count[key] == 0 {
		delete(s.count, key)
	}
}

func (s *sessions) trim() {
	for len(s.at) > s.limit {
		s.remove(s.slots[0].prev)
	}
}

func (s *sessions) cut(i int32) {
	prev, next := s.slots[i].prev, s.slots[i].next
	s.slots[prev].next, s.slots[next].prev = next, prev
}

func (s *sessions) remove(i int32) {
	s.cut(i)
	s.add(s.slots[i].home, s.slots[i].place, -1)
	delete(s.at, s.slots[i].key)
	s.free = append(s.free, i)
}
