package resilience

import (
	"context"
	"errors"
)

// Sync does now, and before it returns, one round of what Start leaves to the background: it loads
// what was not loaded yet, writes what has changed and cleans up what has ended. With a shared store
// it gives a sign of life, catches up with the others, and asks for the rights that requests wanted.
//
// It is for those who drive an engine on a clock of their own, such as simulators, in place of Start.
// Its error is the store's; the engine goes on from memory and the next Sync tries again.
func (e *Engine) Sync(ctx context.Context) error {
	e.mu.Lock()
	running, now := e.persist.running, e.now()
	due := now-e.persist.swept >= sweepEvery
	if due {
		e.persist.swept = now
	}
	e.mu.Unlock()
	if running {
		return errors.New("the engine is started, so that it syncs by itself")
	}
	if due {
		e.sweep()
	}
	switch {
	case e.opts.Store == nil:
		return nil
	case e.share == nil:
		return e.sync(ctx)
	}
	if due {
		e.sweepShared()
	}
	return e.syncShared(ctx)
}

func (e *Engine) syncShared(ctx context.Context) error {
	e.beat(ctx)
	if err := e.contributeAll(ctx); err != nil {
		return err
	}
	e.leases(ctx)
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.share.failing
}

func (e *Engine) contributeAll(ctx context.Context) error {
	for {
		if _, more, err := e.contribute(ctx, ctx, false); err != nil || !more {
			return err
		}
	}
}

// Hear takes in what a shared store tells of other nodes, for those who use Sync: it may be told
// late, twice, out of order or not at all, and the next Sync makes up for it.
func (e *Engine) Hear(n News) {
	if e.share != nil {
		e.hearNews(n)
	}
}
