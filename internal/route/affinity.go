package route

import (
	"math"
	"math/bits"
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/internal/config"
)

// Affinity says how a request's session and the target that answered it are related.
type Affinity string

// The relations.
const (
	NoSession Affinity = ""       // no session was named, or there was nothing to choose
	Settled   Affinity = "new"    // the target is the session's home from now on
	AtHome    Affinity = "home"   // it has been the session's home before
	Detour    Affinity = "detour" // the session's home was out
)

// longOut is how long a home may be out until the session moves: by then a provider has dropped what it
// had cached.
const longOut = 10 * time.Minute

// How many times its share of the sessions one may be home to: where all are alike, and where some
// are better than others.
const (
	crowdedAlike = 1.05
	crowdedBest  = 2
)

// affine says whether a session may be at home at a node: where something is shared out.
func (n *node) affine() bool { return n.choose != nil && len(n.kids) > 1 }

// look finds the session's home at a node, once a request.
func (p *Picker) look(n *node, s *nodeState) {
	if !s.looked {
		s.looked = true
		s.home = p.home(n, p.at)
		s.settles = s.home < 0
	}
}

// homeward chooses for a session: its home where that is open, else a detour that stays the same as
// long as the home is out, else a new home. Affinity comes after eligibility: who is not among the
// candidates is not chosen. It also comes after the price, where that is what counts.
func (p *Picker) homeward(n *node, s *nodeState, cs []candidate) int {
	open := slices.ContainsFunc(cs, func(c candidate) bool { return int(c.kid) == s.home })
	if n.way == config.Cost {
		cs = alike(cs)
	}
	switch {
	case s.home < 0:
	case open && slices.ContainsFunc(cs, func(c candidate) bool { return int(c.kid) == s.home }):
		return s.home
	case open || p.longOut(n, s.home):
		s.settles = true
	case !s.settles:
		return n.nearest(p.session, cs)
	}
	return p.settle(n, s, cs)
}

// home returns the kid at which the session is at home, -1 when there is none.
func (p *Picker) home(n *node, now time.Time) int {
	id, ok := p.route.sessions.home(n.place, p.session, now)
	if !ok {
		return -1
	}
	for k := range n.kids {
		if n.kids[k].id == id {
			return k
		}
	}
	return -1
}

// longOut reports whether nothing of a kid will be back soon.
func (p *Picker) longOut(n *node, k int) bool {
	for i := n.kids[k].from; i < n.kids[k].to; i++ {
		x, out := p.route.Plan.Targets[i].Check()
		if !out || !x.Until.IsZero() && x.RetryAfter < longOut {
			return false
		}
	}
	return true
}

// settle finds a home among those that are not crowded. Strategies that share by a rule give the
// nearest, which is the same on every machine and after a restart; those that go by how things stand
// choose as for any request.
func (p *Picker) settle(n *node, s *nodeState, cs []candidate) int {
	var room [inline]int32
	homes := p.route.sessions.homes(n.place, n.kids, room[:0])
	weights, all := uint64(0), int32(1)
	for i := range cs {
		weights += uint64(cs[i].weight)
		all += homes[cs[i].kid]
	}
	measured, crowded := n.way == config.LeastBusy, crowdedAlike
	if n.way == config.Fastest || n.way == config.Headroom && !math.IsNaN(median(cs)) {
		measured, crowded = true, crowdedBest
	}
	free := cs[:0]
	for _, c := range cs {
		share := float64(all) * float64(c.weight) / float64(weights)
		if float64(homes[c.kid]) < math.Ceil(share*crowded) {
			free = append(free, c)
		}
	}
	if measured {
		return p.choose(n, s, free)
	}
	return n.nearest(p.session, free)
}

// inline is how many kids can be counted without an allocation.
const inline = 64

// nearest is weighted rendezvous hashing: every session ranks the candidates in its own order, which
// does not change for the others when one comes or goes.
func (n *node) nearest(session uint64, cs []candidate) int {
	best, rank := int(cs[0].kid), math.Inf(1)
	for i := range cs {
		c := &cs[i]
		h := mix(session ^ bits.RotateLeft64(n.kids[c.kid].id, 17) ^ n.place)
		// From 0 to 1, and never 0 itself.
		u := (float64(h>>11) + 1) / (1 << 53)
		if r := -math.Log(u) / float64(c.weight); r < rank {
			best, rank = int(c.kid), r
		}
	}
	return best
}

// Served says which of the plan's targets has answered the request with that picker, and returns what
// that is to its session. A session that was without a home has one now.
func (r *Route) Served(p failover.Picker, target int, now time.Time) Affinity {
	if p, ok := p.(*Picker); ok {
		return p.served(target, now)
	}
	return NoSession
}

func (p *Picker) served(target int, now time.Time) Affinity {
	relation := NoSession
	p.path(target, func(n *node, k int, r Affinity) {
		relation = worse(relation, r)
		home := k
		if r == Detour {
			home = p.states[n.id].home // it was seen, and keeps its home
		}
		p.route.sessions.put(n.place, p.session, n.kids[home].id, now)
	})
	return relation
}

// relation is what served would say. It changes nothing.
func (p *Picker) relation(target int) Affinity {
	relation := NoSession
	p.path(target, func(_ *node, _ int, r Affinity) { relation = worse(relation, r) })
	return relation
}

// path calls f at every place on the way to a target at which the request's session may be at home.
func (p *Picker) path(target int, f func(n *node, k int, r Affinity)) {
	if p.session == 0 {
		return
	}
	for n := p.route.root; n != nil; {
		k := 0
		for n.kids[k].to <= target {
			k++
		}
		if n.affine() {
			switch s := &p.states[n.id]; {
			case s.settles || s.home < 0:
				f(n, k, Settled)
			case s.home == k:
				f(n, k, AtHome)
			default:
				f(n, k, Detour)
			}
		}
		n = n.kids[k].node
	}
}

// worse returns the relation that says more of the cache: one detour is enough to miss it.
func worse(a, b Affinity) Affinity {
	rank := map[Affinity]int{NoSession: 0, AtHome: 1, Settled: 2, Detour: 3}
	if rank[b] > rank[a] {
		return b
	}
	return a
}
