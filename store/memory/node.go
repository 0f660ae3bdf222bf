package memory

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"omniroute/resilience"
)

// Node is one engine's way to a Hub, which can be made slow or cut.
type Node struct {
	hub  *Hub
	name string
	cut  atomic.Pointer[error]
	slow atomic.Int64
	// calls counts calls of the hub but for beats.
	calls atomic.Int64
}

var _ resilience.Shared = (*Node)(nil)

// Node returns a way to the hub under a name that must be unique.
func (h *Hub) Node(name string) *Node { return &Node{hub: h, name: name} }

// Cut makes every call fail with an error from now on; nil mends the way.
func (n *Node) Cut(err error) {
	if err == nil {
		n.cut.Store(nil)
		return
	}
	n.cut.Store(&err)
}

// Slow makes everything take so long each way from now on: half of it before the hub hears.
func (n *Node) Slow(d time.Duration) { n.slow.Store(int64(d)) }

// Calls is how many calls there were apart from beats.
func (n *Node) Calls() int64 { return n.calls.Load() }

// Node returns the name.
func (n *Node) Node() string { return n.name }

// pass is the way to the hub, or back.
func (n *Node) pass(ctx context.Context) error {
	if d := time.Duration(n.slow.Load()) / 2; d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-ctx.Done():
		case <-t.C:
		}
	}
	if err := n.cut.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// call goes to the hub and back. Like on a network, what fails may have been done.
func call[T any](ctx context.Context, n *Node, do func() T) (out T, err error) {
	if err := n.pass(ctx); err != nil {
		return out, err
	}
	out = do()
	return out, n.pass(ctx)
}

// Load returns every record that stands.
func (n *Node) Load(ctx context.Context) ([]resilience.Record, error) {
	var all []resilience.Record
	for at, more := int64(0), true; more; {
		c, err := n.Changes(ctx, at)
		if err != nil {
			return nil, err
		}
		for _, k := range c.Gates {
			if r, ok := k.View.Standing(k.Gate); ok {
				all = append(all, r)
			}
		}
		at, more = c.Revision, c.More
	}
	return all, nil
}

// Apply makes all changes or none, whatever stood there.
func (n *Node) Apply(ctx context.Context, changes []resilience.Change) error {
	if err := check(changes); err != nil {
		return err
	}
	_, err := call(ctx, n, func() struct{} { n.hub.apply(changes); return struct{}{} })
	return err
}

// Beat says that the node lives.
func (n *Node) Beat(ctx context.Context, b resilience.Beat) (resilience.Pulse, error) {
	return call(ctx, n, func() resilience.Pulse { return n.hub.beat(b, n.name) })
}

// Changes returns what has changed since a revision.
func (n *Node) Changes(ctx context.Context, since int64) (resilience.Changes, error) {
	n.calls.Add(1)
	return call(ctx, n, func() resilience.Changes { return n.hub.changes(since) })
}

// Merge joins what the node knows with what is known.
func (n *Node) Merge(ctx context.Context, c resilience.Contribution) (resilience.Merged, error) {
	n.calls.Add(1)
	return call(ctx, n, func() resilience.Merged { return n.hub.merge(c, n.name) })
}

// Lease takes the right to probe all these gates, or none.
func (n *Node) Lease(ctx context.Context, gates []resilience.RecordID, d time.Duration) (resilience.Grant, error) {
	n.calls.Add(1)
	return call(ctx, n, func() resilience.Grant { return n.hub.lend(gates, d, n.name) })
}

// errCut is why a node stops listening.
var errCut = errors.New("the connection was cut")

// Listen hears all news until ctx ends or the way is cut.
func (n *Node) Listen(ctx context.Context, hear func(resilience.News)) error {
	if err := n.pass(ctx); err != nil {
		return err
	}
	e := &ear{ready: make(chan struct{}, 1)}
	n.hub.mu.Lock()
	n.hub.ears[e] = struct{}{}
	n.hub.mu.Unlock()
	defer func() {
		n.hub.mu.Lock()
		delete(n.hub.ears, e)
		n.hub.mu.Unlock()
	}()
	hear(resilience.News{})
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-e.ready:
		}
		for _, news := range e.take() {
			if n.pass(ctx) != nil {
				return errCut
			}
			hear(news)
		}
	}
}
