package route

import (
	"time"

	"omniroute/failover"
	"omniroute/internal/config"
)

// Asked is what the choice of a target depends on, of a request.
type Asked struct {
	// Stream says that the client wants a stream.
	Stream bool
	// Session names the conversation that the request belongs to; empty where none was named.
	Session string
}

// Picker chooses the targets of one request: from the top of the plan down, at each node by its
// strategy among the kids of which a target is eligible. It stays with a kid as long as that has
// eligible targets, so that siblings come before everything else.
type Picker struct {
	route  *Route
	asked  Asked
	peek   bool // takes no turn
	states []nodeState
	room   []candidate
	// session stands for Asked.Session, 0 where there is none.
	session uint64
	// What targets are measured by: the moment, what the request is expected to cost, and whether
	// the target in question has the session's prompts cached.
	at   time.Time
	now  failover.Instant
	bill bill
	warm bool
	// spare is the candidate that is being measured.
	spare candidate
}

// nodeState is what one request knows of a node.
type nodeState struct {
	draw
	number  uint64 // the turn as it was taken
	begun   bool
	current int // the kid that is being tried, -1 when none is

	// Of a session: the kid at which it is at home, -1 where none is known, and whether the one that
	// answers becomes its home.
	looked, settles bool
	home            int
}

// Picker returns the picker of a request, nil where the plan's own order is all there is. It must be
// given back to Done.
func (r *Route) Picker(a Asked) failover.Picker { return r.picker(a, false) }

// Peek returns a picker that picks what the next request's would, and changes nothing.
func (r *Route) Peek(a Asked) failover.Picker { return r.picker(a, true) }

func (r *Route) picker(a Asked, peek bool) failover.Picker {
	if r.root == nil {
		return nil
	}
	p, _ := r.pickers.Get().(*Picker)
	if p == nil {
		p = &Picker{route: r, states: make([]nodeState, r.nodes), room: make([]candidate, 0, r.widest)}
	}
	p.asked, p.peek, p.session = a, peek, 0
	if a.Session != "" {
		p.session = hash(a.Session)
	}
	for i := range p.states {
		p.states[i] = nodeState{current: -1, home: -1}
	}
	return p
}

// Done takes back a picker that nobody asks any more.
func (r *Route) Done(p failover.Picker) {
	if p, ok := p.(*Picker); ok {
		r.pickers.Put(p)
	}
}

// Restart lets every node choose anew; the request's turns stay its own.
func (p *Picker) Restart() {
	for i := range p.states {
		p.states[i].current = -1
	}
}

// Pick returns the target to try next, -1 when none is open.
func (p *Picker) Pick(open *failover.Open, now time.Time) int {
	p.at, p.now = now, failover.InstantOf(now)
	if p.route.priced {
		p.bill = billOf(open.Ask())
	}
	return p.pick(p.route.root, open)
}

func (p *Picker) pick(n *node, open *failover.Open) int {
	if n.choose == nil {
		for k := range n.kids {
			if i := p.below(&n.kids[k], open); i >= 0 {
				return i
			}
		}
		return -1
	}
	s := &p.states[n.id]
	if s.current >= 0 {
		if i := p.below(&n.kids[s.current], open); i >= 0 {
			return i
		}
	}
	homely := p.session != 0 && n.affine()
	if homely {
		p.look(n, s)
	}
	cs := p.weigh(n, open)
	if len(cs) == 0 {
		s.current = -1
		return -1
	}
	if homely {
		s.current = p.homeward(n, s, cs)
	} else {
		s.current = p.choose(n, s, cs)
	}
	return p.below(&n.kids[s.current], open)
}

// choose lets the strategy of a node choose.
func (p *Picker) choose(n *node, s *nodeState, cs []candidate) int {
	p.begin(n, s)
	if n.seen != nil {
		for i := range cs {
			cs[i].stale = cs[i].stale && n.rested(int(cs[i].kid), s.number) >= staleTurns
		}
	}
	k := int(n.choose(cs, &s.draw))
	if !p.peek {
		n.taken(k, s.number)
	}
	return k
}

// begin takes the request's turn at a node, once.
func (p *Picker) begin(n *node, s *nodeState) {
	if s.begun {
		return
	}
	s.begun = true
	if p.peek {
		s.number = n.turn.Load()
	} else {
		s.number = n.turn.Add(1) - 1
	}
	s.draw = draw{s.number, newRandom(p.route.seed, n.salt, s.number)}
}

func (p *Picker) below(k *kid, open *failover.Open) int {
	switch {
	case k.node != nil:
		return p.pick(k.node, open)
	case open.Has(k.from):
		return k.from
	}
	return -1
}

// fixed reports whether nothing is ever chosen at a node or below it.
func fixed(n *node) bool {
	for i := range n.kids {
		if k := &n.kids[i]; k.node != nil && !fixed(k.node) {
			return false
		}
	}
	return n.way == config.Priority || len(n.kids) < 2
}
