package route

import (
	"sync/atomic"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
)

// node is a place of a plan where there is something to choose: among the entries of a combo, or
// among the connections of an entry. It is made with its plan; only its counters change.
type node struct {
	id      int // among the plan's nodes
	way     config.Strategy
	choose  chooser // nil: from top to bottom
	measure measure // nil: the strategy goes by none
	kids    []kid
	salt    uint64
	place   uint64         // says what is chosen here, whatever plan it stands in: sessions are at home at a place
	turn    *atomic.Uint64 // counts the requests that had to choose here
	seen    []atomic.Uint64
}

// kid is one that may be chosen: a target, or a node of its own. The targets below it are those of
// the plan from one place up to another.
type kid struct {
	node     *node // nil: a target
	from, to int
	weight   uint64
	id       uint64 // says who it is, whatever its place
	// Of a target, so that choosing among many need not look further.
	pulse  *failover.Pulse
	price  catalog.Price
	priced bool
}

// taken notes that a kid was chosen at this turn, for who wants to know how long ago that was.
func (n *node) taken(k int, turn uint64) {
	if n.seen != nil {
		n.seen[k].Store(turn + 1)
	}
}

// rested returns how many turns ago a kid was chosen.
func (n *node) rested(k int, turn uint64) uint64 {
	at := n.seen[k].Load()
	if at == 0 || at > turn { // never, or before a reload
		return turn
	}
	return turn + 1 - at
}

// turns are the counters of nodes by name.
type turns map[string]*atomic.Uint64

// keep returns the counter of a node, of before where there is one, and keeps it.
func (t turns) keep(name string, before turns) *atomic.Uint64 {
	c := t[name]
	if c == nil {
		if c = before[name]; c == nil {
			c = new(atomic.Uint64)
		}
		t[name] = c
	}
	return c
}

// find returns the counter of a node, or where there is none a new one that begins at start.
func (t turns) find(name string, start uint64) *atomic.Uint64 {
	c := t[name]
	if c == nil {
		c = new(atomic.Uint64)
		c.Store(start)
	}
	return c
}
