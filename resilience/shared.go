package resilience

import (
	"context"
	"time"
)

// Shared is a Store that several engines use at once (laws K1 to K3). An engine finds by assertion
// that its Store is one; then it keeps the whole view in memory, contributes what it learns, is told
// what the others learn, and lets an excluded target be probed only under a lease.
//
// Everything is dated by the shared store's own clock, so that the nodes' clocks may differ. Views
// are joined (View.Join), so that no order, repetition or loss of messages can make two nodes that
// have heard the same disagree. Methods may be called at the same time from several goroutines. They
// return when ctx ends, and their errors say what to do where a person can act; the engine goes on by
// itself meanwhile and tries again.
type Shared interface {
	Store
	// Node is this node's name, unique among all that use the store.
	Node() string
	// Beat says that this node lives, keeps its leases alive and reads the store's clock.
	Beat(ctx context.Context, b Beat) (Pulse, error)
	// Changes returns what has changed since a revision, oldest change first; 0 returns everything.
	// It returns a page at a time.
	Changes(ctx context.Context, since int64) (Changes, error)
	// Merge joins what a node knows with what is stored, and frees leases, all at once or not at all.
	Merge(ctx context.Context, c Contribution) (Merged, error)
	// Lease takes the right to probe all these gates for d, or none of them. A node that holds one of
	// them already has it prolonged.
	Lease(ctx context.Context, gates []RecordID, d time.Duration) (Grant, error)
	// Listen calls hear with all news from now on, one at a time, until ctx ends or the connection
	// breaks, and returns why. It calls hear with an empty News once it listens.
	Listen(ctx context.Context, hear func(News)) error
}

// Beat is a sign of life.
type Beat struct {
	// Keep are the leases that this node holds. One that the store has lost is made again.
	Keep []Held
	// Nodes is how many nodes to list at most; 0 for none.
	Nodes int
}

// Held is a lease in its owner's hands.
type Held struct {
	Gate  RecordID
	Token int64         // the fencing token
	For   time.Duration // how long it is to last from now on
}

// Pulse is the answer to a Beat.
type Pulse struct {
	// Life names the store's present contents: another one means that it began anew.
	Life     string
	Revision int64
	Now      time.Time // the store's clock
	// Lost are the gates of the leases to keep that are somebody else's by now, or free.
	Lost []RecordID
	// Nodes are those that were seen within the last minute, this one included, or nil where
	// none were asked for; Count is how many there are.
	Nodes []NodeSeen
	Count int
}

// NodeSeen is one of the nodes that share the store.
type NodeSeen struct {
	Node string
	Seen time.Time // on the store's clock
}

// Known is what is known of one gate.
type Known struct {
	Gate RecordID
	View View
}

// Changes is one page of what has changed.
type Changes struct {
	Life     string
	Revision int64 // of the last change on the page: where the next page begins
	More     bool
	Gates    []Known
}

// Contribution is what a node adds.
type Contribution struct {
	Gates []Contributed
	// Free are leases that are not needed any more. A Token of 0 frees whatever lease this node has on
	// the gate: it may have been given one without being told.
	Free  []Held
	Leave bool // the node stops
}

// Contributed is what a node knows of one gate.
type Contributed struct {
	Known
	// Token fences what a probe has found out: it is ignored where a newer lease on the gate was
	// given out since. 0 for what was not found out under a lease.
	Token int64
}

// Merged is the answer to a Contribution.
type Merged struct {
	Life string
	// Fenced are the contributions that were ignored, with what is stored instead.
	Fenced []Known
}

// Grant is the answer to a request for a lease.
type Grant struct {
	// Token is the fencing token, larger than all that were given out before; 0 when refused.
	Token int64
	// Wait is how long the present holder's lease still lasts, when refused.
	Wait time.Duration
}

// News is what another node has just done, or this one.
type News struct {
	Life string
	// From and To are the revisions before and after; equal when only leases have moved.
	From, To int64
	Gates    []Known
	Taken    []RecordID // leases that were given out
	Freed    []RecordID // leases that were given back
	Wanted   []RecordID // leases that another node asks for
}
