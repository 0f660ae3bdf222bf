package resilience

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

const (
	// beatEvery is the pause between two signs of life, and so the longest that a lost message stays
	// unnoticed. It is all that is sent while nothing happens.
	beatEvery = time.Second
	// callTimeout is how long a call may take before the node goes on by itself.
	callTimeout = time.Second
	// listNodes is how many nodes status shows at most.
	listNodes = 100
	// listedPerBeat bounds what listing costs: the more nodes, the rarer each of them lists all.
	listedPerBeat = 16
	// resetsKept is for how long a node that was away learns of an operator's reset.
	resetsKept = 24 * time.Hour
	// sharedBatch bounds one contribution, and so how long the store is held up by it.
	sharedBatch = 256
)

// sharing is the engine's side of a shared store. Its fields are under the engine's lock.
//
// A transition of a gate is noted in changed, taken into the gate's view (absorb) and sent from the
// outbox. What others say is joined into the view, and the gate follows the view (hear, install).
// Each of the three loops that call the store may fail; then the node is isolated until a beat
// comes through again and everything was loaded and compared (catchUp).
type sharing struct {
	store Shared

	views   map[RecordID]View
	changed map[RecordID]transition
	outbox  map[RecordID]int64 // views to send, with the fencing token of what they tell
	free    []Held             // leases to give back

	rights  map[RecordID]*right
	guards  map[uint64]*guard    // by the permit's lease
	freeing map[RecordID]bool    // in free, or on its way
	unsure  map[RecordID]instant // leases that may be ours, until then: what asked for them was not answered
	wants   [][]RecordID

	// What the transitions that are made just now are evidence of.
	installing bool
	refuting   bool // they end what stands; others only add to it
	provenAt   instant
	tokens     map[RecordID]int64

	connected bool
	missed    bool // perhaps news that no revision tells of: the next beat reads everything
	failing   error
	life      string
	revision  int64
	contact   instant // of the last answer
	nodes     []NodeSeen
	count     int
	beats     int

	// origin is the store's clock at the engine's instant 0, as measured by the quickest answer.
	origin     time.Time
	quickest   time.Duration
	measuredAt instant

	sendNow, leaseNow, beatNow chan struct{}
}

// transition is a change of a gate that its view does not have yet.
type transition struct {
	at       instant
	refuted  bool    // by evidence or a person's word, as opposed to the passing of time and failures
	provenAt instant // facts up to then are refuted by it
	token    int64
}

func newSharing(s Shared, start time.Time) *sharing {
	return &sharing{
		store: s, views: map[RecordID]View{}, changed: map[RecordID]transition{}, outbox: map[RecordID]int64{},
		rights: map[RecordID]*right{}, guards: map[uint64]*guard{}, freeing: map[RecordID]bool{}, unsure: map[RecordID]instant{},
		provenAt: longAgo, contact: longAgo, origin: start.Round(0), measuredAt: longAgo,
		sendNow: make(chan struct{}, 1), leaseNow: make(chan struct{}, 1), beatNow: make(chan struct{}, 1),
		failing: errors.New("the store has not answered yet"),
	}
}

func kick(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// active reports whether the nodes act as one: then probes need a lease.
func (s *sharing) active() bool { return s != nil && s.connected }

// note remembers that a gate has changed.
func (s *sharing) note(id RecordID, now instant) {
	if s.installing {
		return // the view has it already
	}
	t, ok := s.changed[id]
	if !ok {
		t.provenAt = longAgo
	}
	t.at, t.provenAt, t.token = now, max(t.provenAt, s.provenAt), max(t.token, s.tokens[id])
	t.refuted = t.refuted || s.refuting
	s.changed[id] = t
	kick(s.sendNow)
}

// proving makes the transitions until the returned function is called the evidence of something
// that began at that time.
func (s *sharing) proving(at instant, tokens map[RecordID]int64) (end func()) {
	if s == nil {
		return func() {}
	}
	s.provenAt, s.tokens = at, tokens
	return func() { s.provenAt, s.tokens = longAgo, nil }
}

// refutes makes the transitions until the returned function is called end what stands, on all nodes.
// Time ends a gate on each node by its own policy, and a failure shortens nothing (law A5).
func (s *sharing) refutes() (end func()) {
	if s == nil {
		return func() {}
	}
	was := s.refuting
	s.refuting = true
	return func() { s.refuting = was }
}

// edge converts between instants and the store's clock.
func (s *sharing) edge(now instant) edge { return edge{s.origin.Add(now), now} }

// stamp dates an instant.
func (s *sharing) stamp(t instant) Stamp { return Stamp(s.origin.Add(t).UnixMicro()) }

// instantOf is the inverse of stamp.
func (s *sharing) instantOf(t Stamp) instant { return time.UnixMicro(int64(t)).Sub(s.origin) }

// timed learns the store's clock from an answer that says what it was between two instants. The
// quickest answer is the most exact; it is believed for a minute, since clocks drift.
func (s *sharing) timed(asked, answered instant, clock time.Time) {
	took := answered - asked
	origin := clock.Round(0).Add(-(asked + took/2))
	jumped := origin.Sub(s.origin).Abs() > time.Second+took
	if jumped || took <= s.quickest || s.measuredAt == longAgo || answered-s.measuredAt > time.Minute {
		s.origin, s.quickest, s.measuredAt = origin, took, answered
	}
}

// runShared is run for a shared store.
func (e *Engine) runShared(life context.Context, done, first chan struct{}) {
	defer close(done)
	var loops sync.WaitGroup
	loops.Go(func() { e.listenLoop(life) })
	loops.Go(func() { e.leaseLoop(life) })
	loops.Go(func() { e.sendLoop(life) })
	e.beatLoop(life, first)
	loops.Wait()
}

func (e *Engine) beatLoop(life context.Context, first chan struct{}) {
	s := e.share
	e.beat(life)
	close(first)
	sweep := time.NewTicker(sweepEvery)
	defer sweep.Stop()
	pause := time.NewTimer(e.beatPause())
	defer pause.Stop()
	for {
		select {
		case <-life.Done():
			return
		case <-sweep.C:
			e.sweep()
			e.sweepShared()
			continue
		case <-pause.C:
		case <-s.beatNow:
		}
		e.beat(life)
		pause.Reset(e.beatPause())
	}
}

// beatPause spreads the nodes' beats, and more so their returns after an outage of the store.
func (e *Engine) beatPause() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.share.connected {
		return beatEvery*9/10 + e.upTo(beatEvery/5)
	}
	return beatEvery/4 + e.upTo(beatEvery/2)
}

func (e *Engine) upTo(d time.Duration) time.Duration {
	return time.Duration(e.opts.Random() * float64(d))
}

// bounded is the context of one call of the store by a loop. Who calls Sync instead drives the engine on a clock of
// their own, of which no timer knows: their context alone bounds it.
func (e *Engine) bounded(life context.Context) (context.Context, context.CancelFunc) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.persist.running {
		return context.WithCancel(life)
	}
	return context.WithTimeout(life, callTimeout)
}

// beat says that this node lives and, where it has missed something, catches up.
func (e *Engine) beat(life context.Context) {
	s := e.share
	ctx, cancel := e.bounded(life)
	defer cancel()
	e.mu.Lock()
	asked, was, missed := e.now(), s.revision, s.missed
	s.missed = false
	b := Beat{Keep: e.keepRights(asked)}
	if s.beats%max(1, min(s.count, listNodes)/listedPerBeat) == 0 {
		b.Nodes = listNodes
	}
	s.beats++
	e.unlock()

	p, err := s.store.Beat(ctx, b)

	e.mu.Lock()
	if err != nil {
		e.isolated(life, err)
		e.unlock()
		return
	}
	answered := e.now()
	s.timed(asked, answered, p.Now)
	s.contact, s.count = answered, p.Count
	if p.Nodes != nil {
		s.nodes = p.Nodes
	}
	for _, h := range b.Keep {
		if slices.Contains(p.Lost, h.Gate) {
			s.lose(h)
		} else {
			s.prolong(h, asked)
		}
	}
	whole := !s.connected || missed || p.Life != s.life || p.Revision < was
	behind := p.Revision > s.revision
	e.unlock()
	if whole {
		err = e.catchUp(life, 0)
	} else if behind {
		err = e.catchUp(life, was)
	}
	if err != nil {
		e.mu.Lock()
		e.isolated(life, err)
		e.unlock()
	}
}

// catchUp hears what has changed since a revision. After everything (0) it compares, and has
// sent what the store does not know: it may have begun anew, or lost the last writes.
func (e *Engine) catchUp(life context.Context, since int64) error {
	s := e.share
	stored := map[RecordID]View{}
	at := since
	for {
		ctx, cancel := e.bounded(life)
		page, err := s.store.Changes(ctx, at)
		cancel()
		if err != nil {
			return err
		}
		e.mu.Lock()
		for _, k := range page.Gates {
			if since == 0 {
				stored[k.Gate] = k.View
			}
			e.hearKnown(k)
		}
		at = page.Revision
		if !page.More {
			s.life = page.Life
			s.revision = at
			if since == 0 {
				e.joined(stored)
			}
			e.unlock()
			return nil
		}
		e.unlock()
	}
}

// joined ends an isolation: everything stored was heard.
func (e *Engine) joined(stored map[RecordID]View) {
	s := e.share
	e.dropEnded()
	for id, v := range s.views {
		if !stored[id].Has(v) {
			s.outbox[id] = max(s.outbox[id], 0)
		}
	}
	kick(s.sendNow)
	e.stored(nil)
	s.disownAll(e.now())
	if s.connected {
		return
	}
	s.connected, s.failing = true, nil
	e.log.Info("the nodes share their exclusions", "node", s.store.Node())
	e.emit(Event{Type: EventClusterJoined})
	e.openedAll()
}

// isolated notes that the store cannot be reached: from now on the node probes by itself.
func (e *Engine) isolated(life context.Context, err error) {
	s := e.share
	if life.Err() != nil {
		return // the engine stops
	}
	e.stored(err)
	s.failing = err
	s.dropDisowned()
	if !s.connected {
		return
	}
	s.connected = false
	s.wants = nil
	clear(s.freeing)
	for id, r := range s.rights {
		r.asked = false // nobody is going to ask
		if r.probes == 0 {
			delete(s.rights, id)
		}
	}
	e.emit(Event{Type: EventClusterIsolated, Cause: err.Error()})
	e.openedAll()
}

func (e *Engine) openedAll() {
	for _, name := range e.providerNames() {
		e.opened(name)
	}
}

// listenLoop hears the others' news.
func (e *Engine) listenLoop(life context.Context) {
	for again := false; life.Err() == nil; again = true {
		begun := !again
		_ = e.share.store.Listen(life, func(n News) { // beats tell when the store is away
			if !begun {
				// The server may be another one that lacks the last writes, though the others have
				// brought its revision up again.
				begun = true
				e.mu.Lock()
				e.share.missed = true
				e.mu.Unlock()
			}
			e.hearNews(n)
		})
		pause := time.NewTimer(beatEvery/10 + rand.N(beatEvery/4))
		select {
		case <-life.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}
