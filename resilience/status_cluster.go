package resilience

import (
	"cmp"
	"slices"
	"time"
)

// The states of a cluster.
const (
	ClusterSingle   = "single"   // one node by itself: its store is not shared
	ClusterOK       = "ok"       // the nodes share what they know
	ClusterIsolated = "isolated" // the shared store cannot be reached: this node goes on by itself
)

// ClusterStatus is how this node stands with the others.
type ClusterStatus struct {
	State string
	// Node is this node's name, empty for a single one.
	Node string
	// LastContact is when the shared store last answered; zero if it never has.
	LastContact Timestamp
	// Nodes are those that were seen within a minute, at most 100 of them, and Count how many there
	// are. As of the last contact.
	Nodes []NodeStatus
	Count int
}

// NodeStatus is one node as the shared store has seen it.
type NodeStatus struct {
	ID   string `json:"id"`
	Self bool   `json:"self"`
	// LastContact is when the shared store last heard of it, and AgeMs how long ago that is.
	LastContact Timestamp `json:"last_contact"`
	AgeMs       int64     `json:"age_ms"`
	// Stale nodes have missed several signs of life: they are isolated or gone.
	Stale bool `json:"stale"`
}

// staleAfter is how long a node may be silent.
const staleAfter = 5 * beatEvery

// Cluster returns how this node stands with the others. It waits for nothing.
func (e *Engine) Cluster() ClusterStatus {
	e.mu.Lock()
	defer e.mu.Unlock()
	s := e.share
	if s == nil {
		return ClusterStatus{State: ClusterSingle}
	}
	clock := e.opts.Now()
	now := clock.Sub(e.start)
	out := ClusterStatus{State: ClusterIsolated, Node: s.store.Node(), Count: s.count}
	if s.connected {
		out.State = ClusterOK
	}
	if s.contact != longAgo {
		out.LastContact = Timestamp{wall(s.contact, now, clock)}
	}
	for _, n := range s.nodes {
		age := max(now-n.Seen.Sub(s.origin), 0)
		self := n.Node == s.store.Node()
		if self {
			age = now - s.contact
		}
		out.Nodes = append(out.Nodes, NodeStatus{n.Node, self, Timestamp{wall(now-age, now, clock)}, int64(age / time.Millisecond), age > staleAfter})
	}
	slices.SortFunc(out.Nodes, func(a, b NodeStatus) int { return cmp.Compare(a.ID, b.ID) })
	return out
}
