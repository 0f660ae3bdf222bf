package resilience

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// flushEvery is the least time between two writes; with the time of a write it stays well
	// inside the 250 ms that a crash may lose.
	flushEvery = 100 * time.Millisecond
	// sweepEvery is how often forgotten gates and unused cells are cleaned up.
	sweepEvery = 30 * time.Second
	// manyCells is from how many cells on unused ones are dropped.
	manyCells = 10_000

	minRetry, maxRetry = 250 * time.Millisecond, 5 * time.Second
	storeTimeout       = 10 * time.Second
)

// persistence is what the engine knows of its store. Its fields are under the engine's lock.
type persistence struct {
	changed map[RecordID]struct{} // to be written
	stored  map[RecordID]struct{} // what the store has
	kick    chan struct{}
	loaded  bool
	failing error

	running    bool
	stop, done chan struct{}
}

func (s *persistence) init() {
	s.changed, s.stored = map[RecordID]struct{}{}, map[RecordID]struct{}{}
	s.kick = make(chan struct{}, 1)
}

func (s *persistence) health(store bool) string {
	switch {
	case !store:
		return "off"
	case s.failing != nil:
		return "degraded"
	}
	return "ok"
}

func (e *Engine) dirty(id RecordID) {
	if e.opts.Store == nil {
		return
	}
	e.persist.changed[id] = struct{}{}
	select {
	case e.persist.kick <- struct{}{}:
	default:
	}
}

func (e *Engine) forgetRecord(id RecordID) { e.dirty(id) }

func (e *Engine) startPersistence(ctx context.Context) error {
	e.mu.Lock()
	if e.persist.running {
		e.mu.Unlock()
		return errors.New("the engine is already started")
	}
	e.persist.running = true
	e.persist.stop, e.persist.done = make(chan struct{}), make(chan struct{})
	e.mu.Unlock()
	if e.opts.Store != nil {
		e.load(ctx)
	}
	go e.run(e.persist.stop, e.persist.done)
	return nil
}

func (e *Engine) stopPersistence(ctx context.Context) error {
	e.mu.Lock()
	running := e.persist.running
	e.persist.running = false
	stop, done := e.persist.stop, e.persist.done
	e.mu.Unlock()
	if !running {
		return nil
	}
	close(stop)
	<-done
	if e.opts.Store == nil {
		return nil
	}
	if err := e.flush(ctx); err != nil {
		return fmt.Errorf("the last changes were not stored: %w", err)
	}
	return nil
}

// run writes changes and sweeps until it is stopped.
func (e *Engine) run(stop, done chan struct{}) {
	defer close(done)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	pause := time.NewTimer(0)
	defer pause.Stop()
	waiting, retry := true, minRetry
	for {
		kick := e.persist.kick
		if waiting {
			kick = nil
		}
		select {
		case <-stop:
			return
		case <-sweep.C:
			e.sweep()
		case <-pause.C:
			waiting = false
		case <-kick:
			ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
			err := e.sync(ctx)
			cancel()
			waiting = true
			if err == nil {
				retry = minRetry
				pause.Reset(flushEvery)
				continue
			}
			pause.Reset(retry)
			retry = min(retry*2, maxRetry)
		}
	}
}

// sync brings engine and store together: what could not be loaded is loaded, then changes are
// written.
func (e *Engine) sync(ctx context.Context) error {
	e.mu.Lock()
	loaded := e.persist.loaded
	e.mu.Unlock()
	if !loaded {
		if err := e.load(ctx); err != nil {
			return err
		}
	}
	return e.flush(ctx)
}

// flush writes what has changed. What fails is kept for the next time.
func (e *Engine) flush(ctx context.Context) error {
	e.mu.Lock()
	if !e.persist.loaded {
		e.mu.Unlock()
		return e.persist.failing
	}
	ids := e.persist.changed
	e.persist.changed = map[RecordID]struct{}{}
	var changes []Change
	clock := e.opts.Now()
	for id := range ids {
		r, ok := e.record(id, clock)
		_, stored := e.persist.stored[id]
		switch {
		case ok:
			changes = append(changes, Change{Record: r})
		case stored:
			changes = append(changes, Change{Record: Record{Layer: id.Layer, Key: id.Key}, Delete: true})
		}
	}
	e.mu.Unlock()
	var err error
	if len(changes) > 0 {
		err = e.opts.Store.Apply(ctx, changes)
	}
	e.mu.Lock()
	defer e.unlock()
	e.stored(err)
	if err != nil {
		for id := range ids {
			e.dirty(id)
		}
		return err
	}
	for _, c := range changes {
		if c.Delete {
			delete(e.persist.stored, c.Record.ID())
		} else {
			e.persist.stored[c.Record.ID()] = struct{}{}
		}
	}
	return nil
}

// stored notes how the last call of the store went.
func (e *Engine) stored(err error) {
	was := e.persist.failing
	e.persist.failing = err
	switch {
	case err != nil && was == nil:
		e.log.Warn("the store fails; routing goes on from memory and the state is written when it is back", "error", err)
		e.emit(Event{Type: EventPersistenceDegraded, Cause: err.Error()})
	case err == nil && was != nil:
		e.log.Info("the store is back")
		e.emit(Event{Type: EventPersistenceOK})
	}
}

// load takes over the stored state. Where the engine knows something newer already, the later
// deadline and the higher level win.
func (e *Engine) load(ctx context.Context) error {
	records, err := e.opts.Store.Load(ctx)
	e.mu.Lock()
	defer e.unlock()
	e.stored(err)
	if err != nil {
		e.dirty(RecordID{}) // so that the writer tries again
		return err
	}
	e.persist.loaded = true
	clock := e.opts.Now()
	for _, r := range records {
		e.persist.stored[r.ID()] = struct{}{}
		e.restore(r, clock)
	}
	return nil
}

// sweep ends what has expired for good, so that neither memory nor store keeps it.
func (e *Engine) sweep() {
	e.mu.Lock()
	defer e.unlock()
	now := e.now()
	stale := func(g gate, p *Policy) bool { return !g.clean() && !g.live(now) && g.forgotten(p, now) }
	for _, c := range e.conns {
		if stale(c.cool, c.dom.policy) {
			e.setConn(c, c.cool.cleared(c.cool.endedAt), "forgotten")
		}
	}
	for _, t := range e.targets {
		if stale(t.cool, t.dom.policy) {
			e.setCool(t, t.cool.cleared(t.cool.endedAt), "forgotten")
		}
		if stale(t.lock, t.dom.policy) {
			e.setLock(t, t.lock.cleared(t.lock.endedAt), "forgotten")
		}
	}
	for k, o := range e.operator {
		if now >= o.until {
			e.include(k, "expired")
		}
	}
	if len(e.targets) > manyCells {
		e.trim()
	}
}
