package resilience

import (
	"context"
	"errors"
	"fmt"
	"maps"
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
	// batchSize bounds one write, and so how long the engine's lock is held to prepare it.
	batchSize = 1000

	minRetry, maxRetry = 250 * time.Millisecond, 5 * time.Second
	storeTimeout       = 10 * time.Second
	startTimeout       = 5 * time.Second // how long Start waits for the state
	// hangsAfter is from when on a call of the store counts as failing, although it may return yet.
	hangsAfter = time.Second
)

// persistence is what the engine knows of its store. Its fields are under the engine's lock.
type persistence struct {
	changed map[RecordID]struct{} // to be written
	stored  map[RecordID]struct{} // what the store may have
	kick    chan struct{}
	loaded  bool
	swept   instant // by Sync
	failing error
	calling time.Time // since when a call of the store runs

	running bool
	stop    context.CancelFunc
	done    chan struct{}
}

func (s *persistence) init() {
	s.changed, s.stored = map[RecordID]struct{}{}, map[RecordID]struct{}{}
	s.kick = make(chan struct{}, 1)
}

func (s *persistence) health(store bool, clock time.Time) string {
	switch {
	case !store:
		return "off"
	case s.failing != nil || !s.calling.IsZero() && clock.Sub(s.calling) > hangsAfter:
		return "degraded"
	}
	return "ok"
}

func (e *Engine) dirty(id RecordID) {
	switch {
	case e.opts.Store == nil:
		return
	case e.share != nil:
		e.share.note(id, e.now())
		return
	}
	e.persist.changed[id] = struct{}{}
	select {
	case e.persist.kick <- struct{}{}:
	default:
	}
}

func (e *Engine) startPersistence(ctx context.Context) error {
	e.mu.Lock()
	if e.persist.running {
		e.mu.Unlock()
		return errors.New("the engine is already started")
	}
	e.persist.running = true
	life, stop := context.WithCancel(context.Background())
	done, first := make(chan struct{}), make(chan struct{})
	e.persist.stop, e.persist.done = stop, done
	e.mu.Unlock()
	if e.share != nil {
		go e.runShared(life, done, first)
	} else {
		go e.run(life, done, first)
	}
	if e.opts.Store == nil {
		return nil
	}
	// The writer loads, so that a store that hangs holds up neither the start nor a later merge.
	patience := time.NewTimer(startTimeout)
	defer patience.Stop()
	select {
	case <-first:
	case <-ctx.Done():
	case <-patience.C:
		e.mu.Lock()
		e.stored(errors.New("the store does not answer"))
		e.unlock()
	}
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
	stop()
	select {
	case <-done:
	case <-ctx.Done():
		return fmt.Errorf("the last changes were not stored, since the store does not return: %w", ctx.Err())
	}
	if err := e.lastWrite(ctx); err != nil {
		return fmt.Errorf("the last changes were not stored: %w", err)
	}
	return nil
}

func (e *Engine) lastWrite(ctx context.Context) error {
	switch {
	case e.opts.Store == nil:
		return nil
	case e.share != nil:
		return e.leave(ctx)
	}
	return e.sync(ctx)
}

// run loads, writes changes and sweeps until life ends, and with it a call in flight.
func (e *Engine) run(life context.Context, done, first chan struct{}) {
	defer close(done)
	if e.opts.Store != nil {
		e.trySync(life)
	}
	close(first)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	pause := time.NewTimer(flushEvery)
	defer pause.Stop()
	waiting, retry := true, minRetry
	for {
		kick := e.persist.kick
		if waiting {
			kick = nil
		}
		select {
		case <-life.Done():
			return
		case <-sweep.C:
			e.sweep()
		case <-pause.C:
			waiting = false
		case <-kick:
			waiting = true
			if e.trySync(life) {
				retry = minRetry
				pause.Reset(flushEvery)
				continue
			}
			pause.Reset(retry)
			retry = min(retry*2, maxRetry)
		}
	}
}

func (e *Engine) trySync(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return e.sync(ctx) == nil
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
	for {
		if more, err := e.flush(ctx); err != nil || !more {
			return err
		}
	}
}

// flush writes one batch of what has changed and reports whether there is more. What fails is
// kept for the next time.
func (e *Engine) flush(ctx context.Context) (more bool, err error) {
	e.mu.Lock()
	clock := e.opts.Now()
	var ids []RecordID
	var changes []Change
	for id := range e.persist.changed {
		if len(ids) == batchSize {
			more = true
			break
		}
		ids = append(ids, id)
		delete(e.persist.changed, id)
		r, ok := e.record(id, edge{clock, clock.Sub(e.start)})
		_, stored := e.persist.stored[id]
		switch {
		case ok:
			changes = append(changes, Change{Record: r})
			e.persist.stored[id] = struct{}{} // even if the call fails: who knows
		case stored:
			changes = append(changes, Change{Record: Record{Layer: id.Layer, Key: id.Key}, Delete: true})
		}
	}
	if len(changes) == 0 {
		e.mu.Unlock()
		return more, nil
	}
	e.persist.calling = clock
	e.mu.Unlock()

	err = e.opts.Store.Apply(ctx, changes)

	e.mu.Lock()
	defer e.unlock()
	e.stored(err)
	if err != nil {
		for _, id := range ids {
			e.dirty(id)
		}
		return false, err
	}
	for _, c := range changes {
		if c.Delete {
			delete(e.persist.stored, c.Record.ID())
		}
	}
	return more, nil
}

// stored notes how the last call of the store went.
func (e *Engine) stored(err error) {
	was := e.persist.failing
	e.persist.failing, e.persist.calling = err, time.Time{}
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
	e.mu.Lock()
	e.persist.calling = e.opts.Now()
	e.mu.Unlock()
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
	// The ids and the gates of a large load take about as long, and need nothing of each other.
	ids := make(chan map[RecordID]struct{}, 1)
	go func(known map[RecordID]struct{}) { ids <- withIDs(known, records) }(e.persist.stored)
	e.makeRoom(records)
	for _, r := range records {
		e.restore(r, clock)
	}
	e.persist.stored = <-ids
	return nil
}

// withIDs returns what is known and the ids of the records.
func withIDs(known map[RecordID]struct{}, records []Record) map[RecordID]struct{} {
	all := make(map[RecordID]struct{}, len(records)+len(known))
	maps.Copy(all, known)
	for i := range records {
		all[records[i].ID()] = struct{}{}
	}
	return all
}

// makeRoom sizes the maps for what is to be restored, which saves much of the time of a large load.
func (e *Engine) makeRoom(records []Record) {
	models := 0
	for i := range records {
		models += one(records[i].Key.Model != "")
	}
	targets := make(map[Key]*Target, models+len(e.targets))
	maps.Copy(targets, e.targets)
	e.targets = targets
	for len(records) > 0 { // those of a connection stand together
		n := 1
		for n < len(records) && records[n].Key.Connection == records[0].Key.Connection && records[n].Key.Provider == records[0].Key.Provider {
			n++
		}
		if c := e.conns[Key{Provider: records[0].Key.Provider, Connection: records[0].Key.Connection}]; c != nil && n > 1 {
			own := make(map[string]*Target, n+len(c.targets))
			maps.Copy(own, c.targets)
			c.targets = own
		}
		records = records[n:]
	}
}

// sweep ends what has expired for good, so that neither memory nor store keeps it.
func (e *Engine) sweep() {
	e.mu.Lock()
	defer e.unlock()
	now := e.now()
	stale := func(g *gate, p *Policy) bool { return !g.clean() && !g.live(now) && g.forgotten(p, now) }
	for _, c := range e.conns {
		if stale(&c.cool, c.dom.policy) {
			e.setConn(c, c.cool.aged(c.dom.policy, now, e.tick()), "forgotten")
		}
	}
	for _, d := range e.domains {
		gone := func(m movedModel) bool { return now-m.at >= d.policy.Cooldown.ForgetAfter }
		if next := d.breaker.withoutMoved(gone); !next.same(&d.breaker) {
			e.setBreaker(d, next, "forgotten")
		}
	}
	for _, t := range e.targets {
		if stale(&t.cool, t.dom.policy) {
			e.setCool(t, t.cool.aged(t.dom.policy, now, e.tick()), "forgotten")
		}
		if stale(&t.lock, t.dom.policy) {
			e.setLock(t, t.lock.aged(t.dom.policy, now, e.tick()), "forgotten")
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
