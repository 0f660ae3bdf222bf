package memory

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"omniroute/resilience"
)

// Hub is a shared store inside one process, for tests and simulations of several engines: what
// store/redis is over the network. It says what a shared store must do in the fewest words, and
// storetest.RunShared holds both to it. Every method is safe for concurrent use.
type Hub struct {
	now func() time.Time

	mu       sync.Mutex
	life     int
	revision int64
	token    int64
	gates    map[resilience.RecordID]*kept
	leases   map[resilience.RecordID]lease
	seen     map[string]time.Time
	ears     map[*ear]struct{}
}

type kept struct {
	view     resilience.View
	revision int64
}

type lease struct {
	node  string
	token int64
	until time.Time
}

// ear is one node that listens. Its news wait in a queue, since no node may hold up another.
type ear struct {
	mu    sync.Mutex
	queue []resilience.News
	ready chan struct{}
}

func (e *ear) tell(n resilience.News) {
	e.mu.Lock()
	e.queue = append(e.queue, n)
	e.mu.Unlock()
	select {
	case e.ready <- struct{}{}:
	default:
	}
}

func (e *ear) take() []resilience.News {
	e.mu.Lock()
	defer e.mu.Unlock()
	q := e.queue
	e.queue = nil
	return q
}

// NewHub returns an empty hub with a clock of its own; nil means time.Now.
func NewHub(now func() time.Time) *Hub {
	if now == nil {
		now = time.Now
	}
	h := &Hub{now: now, ears: map[*ear]struct{}{}}
	h.Empty()
	return h
}

// Empty makes the hub forget everything but its last fencing token, as a server does that starts
// without its data.
func (h *Hub) Empty() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.life++
	h.revision = 0
	h.gates, h.leases, h.seen = map[resilience.RecordID]*kept{}, map[resilience.RecordID]lease{}, map[string]time.Time{}
}

func (h *Hub) name() string { return fmt.Sprint("hub-", h.life) }

// spread tells everybody. It needs the lock.
func (h *Hub) spread(n resilience.News) {
	n.Life, n.To = h.name(), h.revision
	if len(n.Gates) == 0 {
		n.From = n.To
		if len(n.Taken)+len(n.Freed)+len(n.Wanted) == 0 {
			return
		}
	}
	for e := range h.ears {
		e.tell(n)
	}
}

// free ends the leases that these tokens are of. The tokens stay: they fence what an older owner
// may still say.
func (h *Hub) free(given []resilience.Held, node string) (freed []resilience.RecordID) {
	for _, g := range given {
		if l, ok := h.leases[g.Gate]; ok && (l.token == g.Token || g.Token == 0 && l.node == node) {
			h.leases[g.Gate] = lease{token: l.token}
			freed = append(freed, g.Gate)
		}
	}
	return freed
}

func (h *Hub) merge(c resilience.Contribution, node string) (out resilience.Merged) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out.Life = h.name()
	n := resilience.News{From: h.revision}
	for _, g := range c.Gates {
		k := h.gates[g.Gate]
		if k == nil {
			k = &kept{}
		}
		if g.Token != 0 && h.leases[g.Gate].token > g.Token {
			out.Fenced = append(out.Fenced, resilience.Known{Gate: g.Gate, View: k.view})
			continue
		}
		if k.view.Has(g.View) {
			continue
		}
		h.revision++
		h.gates[g.Gate] = &kept{k.view.Join(g.View), h.revision}
		n.Gates = append(n.Gates, resilience.Known{Gate: g.Gate, View: h.gates[g.Gate].view})
	}
	n.Freed = h.free(c.Free, node)
	if c.Leave {
		delete(h.seen, node)
	}
	h.spread(n)
	return out
}

func (h *Hub) beat(b resilience.Beat, node string) (p resilience.Pulse) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	h.seen[node] = now
	for _, k := range b.Keep {
		switch l, ok := h.leases[k.Gate]; {
		case !ok, l.token == k.Token && l.node != "":
			h.token = max(h.token, k.Token)
			h.leases[k.Gate] = lease{node, k.Token, now.Add(k.For)}
		default:
			p.Lost = append(p.Lost, k.Gate)
		}
	}
	maps.DeleteFunc(h.gates, func(_ resilience.RecordID, k *kept) bool { return k.view.KeepMs <= now.UnixMilli() })
	for n, at := range h.seen {
		if now.Sub(at) > time.Minute {
			delete(h.seen, n)
		} else if b.Nodes > 0 {
			p.Nodes = append(p.Nodes, resilience.NodeSeen{Node: n, Seen: at})
		}
	}
	slices.SortFunc(p.Nodes, func(a, b resilience.NodeSeen) int { return cmp.Compare(a.Node, b.Node) })
	p.Nodes = p.Nodes[:min(len(p.Nodes), b.Nodes)]
	p.Life, p.Revision, p.Now, p.Count = h.name(), h.revision, now, len(h.seen)
	return p
}

const page = 1000

func (h *Hub) changes(since int64) (c resilience.Changes) {
	h.mu.Lock()
	defer h.mu.Unlock()
	c.Life, c.Revision = h.name(), h.revision
	var ids []resilience.RecordID
	for id, k := range h.gates {
		if k.revision > since {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b resilience.RecordID) int { return cmp.Compare(h.gates[a].revision, h.gates[b].revision) })
	if len(ids) > page {
		ids, c.More = ids[:page], true
		c.Revision = h.gates[ids[page-1]].revision
	}
	for _, id := range ids {
		c.Gates = append(c.Gates, resilience.Known{Gate: id, View: h.gates[id].view})
	}
	return c
}

func (h *Hub) lend(ids []resilience.RecordID, d time.Duration, node string) (g resilience.Grant) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	n := resilience.News{}
	for _, id := range ids {
		if l := h.leases[id]; now.Before(l.until) && l.node != node {
			g.Wait = max(g.Wait, l.until.Sub(now))
			n.Wanted = append(n.Wanted, id)
		}
	}
	if g.Wait == 0 {
		h.token++
		g.Token, n.Taken = h.token, ids
		for _, id := range ids {
			h.leases[id] = lease{node, g.Token, now.Add(d)}
		}
	}
	h.spread(n)
	return g
}

func (h *Hub) apply(changes []resilience.Change) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n := resilience.News{From: h.revision}
	for _, c := range changes {
		id := c.Record.ID()
		k := h.gates[id]
		if k == nil {
			k = &kept{}
		}
		at := resilience.Stamp(h.now().UnixMicro())
		for _, f := range k.view.Facts {
			at = max(at, f.Stamp)
		}
		v := resilience.View{Cleared: max(at, k.view.Cleared+1), KeepMs: math.MaxInt64}
		if !c.Delete {
			v.Facts = []resilience.Fact{
				resilience.NewFact(c.Record, v.Cleared+1)}
		}
		h.revision++
		h.gates[id] = &kept{k.view.Join(v), h.revision}
		n.Gates = append(n.Gates, resilience.Known{Gate: id, View: h.gates[id].view})
	}
	h.spread(n)
}
