package relay

import (
	"errors"
	"sync"
)

// Hold bounds what the bodies of all requests come to at once, and shares it among callers. The zero value is
// empty and ready.
type Hold struct {
	mu    sync.Mutex
	total int64
	by    map[uint64]int64 // of callers that hold something
}

// Share is what a caller's body may have of a Hold. The zero value bounds nothing.
type Share struct {
	Of *Hold
	// Most is how many bytes all bodies together may come to.
	Most int64
	// Caller tells callers apart. Fair says that each must leave as much free as it holds, so that however
	// many and large the bodies of one are, there is room for the others'.
	Caller uint64
	Fair   bool
}

// ErrNoRoom says that a Hold has no room for more of a body.
var ErrNoRoom = errors.New("no room for the body")

// take takes n more bytes for a body that has some already, and reports whether there was room. A caller's only body may
// have whatever is free.
func (s *Share) take(has, n int64) bool {
	if s.Of == nil {
		return true
	}
	h := s.Of
	h.mu.Lock()
	defer h.mu.Unlock()
	total, own := h.total+n, h.by[s.Caller]+n
	if total > s.Most || s.Fair && own > s.Most-total && own > has+n {
		return false
	}
	if h.by == nil {
		h.by = map[uint64]int64{}
	}
	h.total, h.by[s.Caller] = total, own
	return true
}

// give gives back what a body had.
func (s *Share) give(n int64) {
	if s.Of == nil || n == 0 {
		return
	}
	h := s.Of
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total -= n
	if h.by[s.Caller] -= n; h.by[s.Caller] == 0 {
		delete(h.by, s.Caller)
	}
}

// Total returns how many bytes are held now.
func (h *Hold) Total() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.total
}
