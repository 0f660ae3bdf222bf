package resilience

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options configure an Engine. The zero value is a usable engine: default policies, no store,
// any provider and connection that it is asked for.
type Options struct {
	Config

	// Store keeps the state beyond the process. Nil keeps it in memory only.
	Store Store
	// OnEvent receives every event, one at a time and in order, outside every lock: it may call
	// the engine. It should return soon, since the request that caused the event waits for it.
	OnEvent func(Event)
	// History is how many events Events returns at most. Defaults to 1000.
	History int
	// Now is the clock. Defaults to time.Now. Times without a monotonic reading (a simulator's)
	// are fine as long as they do not go back.
	Now func() time.Time
	// Random is where chance comes from, from 0 up to and without 1: for jitter and the spread of
	// signs of life. It is called under the engine's lock. Defaults to rand.Float64 of math/rand/v2;
	// a simulator's own makes its runs repeatable.
	Random func() float64
	// Logger reports what a person should know about the store. Defaults to slog.Default.
	Logger *slog.Logger
}

// Engine owns all gates. Its methods are safe for concurrent use.
type Engine struct {
	opts  Options
	start time.Time
	log   *slog.Logger

	// seq dates attempts and evidence: it moves with every report. Attempts read it before they
	// look at the gates; it is published after the gates' words are, so that an attempt with the
	// date of an exclusion has seen it.
	seq   atomic.Uint64
	watch atomic.Bool // successes matter to the local-outage detector
	_     [64]byte    // the lock's traffic stays off the words that every request reads

	mu       sync.Mutex
	date     uint64 // seq, as the holder of the lock counts it
	config   Config
	policy   *Policy
	domains  map[Key]*domain
	conns    map[Key]*connection
	targets  map[Key]*Target
	operator map[Key]operatorExclusion
	local    localOutage
	lastID   uint64 // last lease
	rotation map[Key]int

	bus     bus
	persist persistence
	share   *sharing // with a shared store; nil else
}

const (
	bitGated    = 1 << iota // admission must look closer
	bitEvidence             // a success would change something
	bitEvicted              // the cell was dropped from the engine; look it up again
)

// domain is a failure domain: a provider, or a connection with an endpoint of its own.
type domain struct {
	word     atomic.Uint32
	key      Key
	endpoint string
	policy   *Policy
	own      *Policy // of a breaker that is used alone; nil else
	breaker  gate
	gone     bool // its connection has another address by now: it learns nothing
	// sent counts the attempts that began while a run of failures stood, from its first failure on.
	sent    atomic.Int64
	onState *handler // a stand-alone breaker's OnStateChange
}

type connection struct {
	word       atomic.Uint32
	key        Key
	credential string
	// credentialAt dates the credential: what older attempts say of the account is void.
	credentialAt uint64
	dom          *domain
	cool         gate
	lastError    *LastError // for people; replaced whole
	targets      map[string]*Target
}

// Target is where an attempt is sent: a provider, a connection and a model. Resolve it once
// with Engine.Target and keep it.
type Target struct {
	word   atomic.Uint32
	key    Key
	engine *Engine
	dom    *domain
	conn   *connection
	cool   gate // transient trouble of the provider, seen by this model on this connection
	lock   gate
}

// New returns an engine. It does no I/O: Start loads the stored state.
func New(o Options) (*Engine, error) {
	def(&o.History, 1000)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	e := &Engine{
		opts: o, start: o.Now(), log: o.Logger,
		domains: map[Key]*domain{}, conns: map[Key]*connection{}, targets: map[Key]*Target{},
		operator: map[Key]operatorExclusion{}, rotation: map[Key]int{},
	}
	e.date = 1
	e.seq.Store(1)
	e.bus.init(o.History, o.OnEvent)
	e.persist.init()
	if s, ok := o.Store.(Shared); ok {
		e.share = newSharing(s, e.start)
	}
	e.local.runs = map[string]*dialRun{}
	if err := e.Configure(o.Config); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *Engine) domain(key Key) *domain {
	d := e.domains[key]
	if d == nil {
		d = &domain{key: key, endpoint: e.endpointOf(key), policy: e.policyOf(key.Provider), breaker: newBreaker()}
		e.domains[key] = d
		e.refreshDomain(d)
	}
	return d
}

func (e *Engine) connection(key Key) *connection {
	c := e.conns[key]
	if c == nil {
		c = &connection{key: key, dom: e.domain(e.domainKey(key)), targets: map[string]*Target{}}
		e.conns[key] = c
		e.refreshConn(c)
	}
	return c
}

func (e *Engine) target(key Key) *Target {
	t := e.targets[key]
	if t == nil {
		c := e.connection(Key{Provider: key.Provider, Connection: key.Connection})
		t = &Target{key: key, engine: e, dom: c.dom, conn: c, lock: newLockout()}
		e.targets[key], c.targets[key.Model] = t, t
		e.refreshTarget(t)
	}
	return t
}

// Target returns the handle for a target, the same one each time while anything is known of it.
// Handles are cheap to keep; a model that nobody has failed on costs one small cell until Trim.
func (e *Engine) Target(key Key) *Target {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.handle(key)
}

// handle returns the key's cell or, for what the configuration does not name, a target that has
// its cells to itself until it does.
func (e *Engine) handle(key Key) *Target {
	if e.known(key) {
		return e.target(key)
	}
	t := e.glimpse(key)
	t.word.Store(bitGated | bitEvidence | bitEvicted)
	return t
}

// Trim drops the cells of models about which nothing is known and that no configuration names,
// so that made-up model names from clients cannot fill the memory. Handles that were given out
// stay usable; a late report of an attempt from before counts like a new one's. The engine does
// so by itself when there are many. It returns how many are left.
func (e *Engine) Trim() int {
	e.mu.Lock()
	defer e.unlock()
	return e.trim()
}

func (e *Engine) trim() int {
	for key, t := range e.targets {
		if t.cool.clean() && t.lock.clean() && !slices.Contains(e.config.Providers[key.Provider].Models, key.Model) {
			t.word.Store(bitGated | bitEvidence | bitEvicted)
			delete(e.targets, key)
			delete(t.conn.targets, key.Model)
		}
	}
	return len(e.targets)
}

// now returns the engine's monotonic clock.
func (e *Engine) now() instant { return e.opts.Now().Sub(e.start) }

// wall returns the wall-clock time of an instant, given both clocks' present.
func wall(t, now instant, clock time.Time) time.Time {
	if t == never {
		return time.Time{}
	}
	return clock.Round(0).Add(t - now)
}

// tick returns the date of a new report.
func (e *Engine) tick() uint64 {
	e.date++
	return e.date
}

// unlock ends a critical section: it publishes the date and delivers the events that were queued.
func (e *Engine) unlock() {
	if e.seq.Load() != e.date {
		e.seq.Store(e.date)
	}
	e.mu.Unlock()
	e.bus.deliver()
}

// The setters are the only places where a gate in a cell changes: they keep the cell's word,
// the store and the events in step with it.

func (e *Engine) setBreaker(d *domain, next gate, cause string) {
	if d.gone {
		return
	}
	before := d.breaker
	d.breaker = next
	if len(before.run) == 0 && len(next.run) > 0 {
		d.sent.Store(0)
	}
	e.refreshDomain(d)
	e.changed(LayerBreaker, d.key, before, next, d.policy, cause)
}

func (e *Engine) setConn(c *connection, next gate, cause string) {
	before := c.cool
	c.cool = next
	e.refreshConn(c)
	e.changed(LayerConnection, c.key, before, next, c.dom.policy, cause)
}

func (e *Engine) setCool(t *Target, next gate, cause string) {
	before := t.cool
	t.cool = next
	e.refreshTarget(t)
	e.changed(LayerConnection, t.key, before, next, t.dom.policy, cause)
}

func (e *Engine) setLock(t *Target, next gate, cause string) {
	before := t.lock
	t.lock = next
	e.refreshTarget(t)
	e.changed(LayerModel, t.key, before, next, t.dom.policy, cause)
}

func (e *Engine) refreshDomain(d *domain) {
	d.word.Store(word(&d.breaker) | e.operatorBits(d.key) | bits(e.local.runs[d.endpoint] != nil, bitEvidence))
}

func (e *Engine) refreshConn(c *connection) {
	c.word.Store(word(&c.cool))
}

func (e *Engine) refreshTarget(t *Target) {
	if t.word.Load()&bitEvicted == 0 {
		t.word.Store(word(&t.cool) | word(&t.lock))
	}
}

func word(g *gate) uint32 {
	return bits(g.excluded, bitGated) | bits(!g.clean(), bitEvidence)
}

func bits(on bool, b uint32) uint32 {
	if on {
		return b
	}
	return 0
}

// honoured caps the upstream's hint and reports whether it was cut.
func honoured(v Verdict, p *Policy, clock time.Time) (time.Duration, bool) {
	h := v.hint(clock)
	limit := p.Hints.of(v.Kind)
	if v.Prose {
		limit = min(limit, p.Hints.MaxProse)
	}
	return min(h, limit), h > limit
}

func (e *Engine) random(p *Policy) float64 {
	if p.Cooldown.Jitter == 0 {
		return 0
	}
	return e.opts.Random()
}

// Start loads the stored state and begins to write changes. It returns when the state is
// loaded; a store that fails is reported as degraded persistence, never as an error. Stop must
// be called after it.
func (e *Engine) Start(ctx context.Context) error { return e.startPersistence(ctx) }

// Stop writes what is still to be written and ends the engine's goroutine. It may be called
// more than once.
func (e *Engine) Stop(ctx context.Context) error { return e.stopPersistence(ctx) }
