package torture

import (
	"context"
	"maps"
	"slices"
	"time"

	"omniroute/resilience"
)

// lent is the newest lease on a gate, as its owner was told.
type lent struct {
	node  int
	token int64
	until time.Duration
}

// Lease is K2: the right to probe a gate is one node's at a time, each with a larger token than the one
// before, and a lease that its owner does not keep alive ends.
func (x *wire) Lease(ctx context.Context, gates []resilience.RecordID, d time.Duration) (resilience.Grant, error) {
	if x.cut {
		return resilience.Grant{}, errDown
	}
	g, err := x.node.Lease(ctx, gates, d)
	if err != nil {
		return g, err
	}
	w, held := x.w, false
	for _, id := range gates {
		l := w.lent[id]
		others := l.node != x.n.id && w.mono < l.until
		held = held || others
		switch {
		case g.Token == 0:
			continue
		case others:
			w.broke("K2 one owner at a time", "node %d is lent %v, which is node %d's until %v", x.n.id, id.Key, l.node, l.until)
		case g.Token <= l.token:
			w.broke("K2 fencing tokens grow", "node %d is lent %v under %d after %d", x.n.id, id.Key, g.Token, l.token)
		}
		w.lent[id] = lent{x.n.id, g.Token, w.mono + d}
	}
	if g.Token == 0 {
		if !held {
			w.broke("K2 a dead owner's lease ends", "node %d is not lent %v, which nobody has", x.n.id, gates)
		}
		p, _ := x.node.Beat(ctx, resilience.Beat{})
		x.spread(resilience.News{Life: p.Life, From: p.Revision, To: p.Revision, Wanted: gates})
	}
	return g, nil
}

// Beat keeps leases alive.
func (x *wire) Beat(ctx context.Context, b resilience.Beat) (resilience.Pulse, error) {
	if x.cut {
		return resilience.Pulse{}, errDown
	}
	p, err := x.node.Beat(ctx, b)
	for _, h := range b.Keep {
		if l := x.w.lent[h.Gate]; err == nil && l.token == h.Token && !slices.Contains(p.Lost, h.Gate) {
			x.w.lent[h.Gate] = lent{x.n.id, h.Token, x.w.mono + h.For}
		}
	}
	return p, err
}

// freed ends leases that were given back.
func (x *wire) freed(free []resilience.Held) {
	for _, h := range free {
		if l, ok := x.w.lent[h.Gate]; ok && (l.token == h.Token || h.Token == 0 && l.node == x.n.id) {
			x.w.lent[h.Gate] = lent{l.node, l.token, 0}
		}
	}
}

// voided forgets what a node has said under a lease that another one has by now: it holds no more.
func (x *wire) voided(fenced []resilience.Known) {
	for _, g := range fenced {
		maps.DeleteFunc(x.n.seen, func(k resilience.Key, _ seen) bool { return g.Gate.Key.Contains(k) })
	}
}

// fenced is K2: what was found out under a lease says nothing any more once a newer one was given out.
func (x *wire) fenced(ctx context.Context, c resilience.Contribution, merge func() (resilience.Merged, error)) (resilience.Merged, error) {
	var old []resilience.RecordID
	for _, g := range c.Gates {
		if l := x.w.lent[g.Gate]; g.Token != 0 && l.token > g.Token {
			old = append(old, g.Gate)
		}
	}
	if len(old) == 0 {
		return merge()
	}
	before := x.views(ctx)
	m, err := merge()
	after := x.views(ctx)
	for _, id := range old {
		if b, a := before[id], after[id]; !a.Has(b) || !b.Has(a) {
			x.w.broke("K2 a fencing token keeps out what an older owner says", "node %d has changed %v from %v to %v", x.n.id, id.Key, b, a)
		}
	}
	return m, err
}

// views is all that the shared store has.
func (x *wire) views(ctx context.Context) map[resilience.RecordID]resilience.View {
	all := map[resilience.RecordID]resilience.View{}
	c, err := x.node.Changes(ctx, 0)
	if err != nil || c.More {
		panic(err)
	}
	for _, k := range c.Gates {
		all[k.Gate] = k.View
	}
	return all
}
