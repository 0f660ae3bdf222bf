package resilience

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
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
	// Logger reports what a person should know about the store. Defaults to slog.Default.
	Logger *slog.Logger
}

// Config is the part of Options that may be replaced while the engine runs.
type Config struct {
	// Policy holds for every provider that has none of its own.
	Policy Policy
	// Providers names what exists. With Providers set, the state of what it does not name is
	// dropped; nil means that anything goes.
	Providers map[string]Provider
	// Combos are named lists of targets for ResolveComboTargets.
	Combos map[string][]Key
}

// Provider is what the engine must know of one provider.
type Provider struct {
	// Policy is the provider's own, whole; nil means Config.Policy.
	Policy *Policy
	// Endpoint is the host and port that its connections share. Two failure domains on one
	// endpoint are related: their dial failures are no sign of a local outage. Defaults to the
	// provider's name.
	Endpoint string
	// Connections in the order in which they are shown and selected.
	Connections []Connection
	// Models are those whose cells are kept even while nothing is known of them, because
	// handles to them are kept; see Engine.Trim.
	Models []string
}

// Connection is one account or key of a provider.
type Connection struct {
	ID string
	// Endpoint, where it differs from the provider's, makes the connection a failure domain of
	// its own, with its own breaker.
	Endpoint string
	// Credential identifies the secret without telling it (a hash). A changed one ends a
	// quarantine.
	Credential string
}

// Engine owns all gates. Its methods are safe for concurrent use.
type Engine struct {
	opts  Options
	start time.Time
	log   *slog.Logger

	seq   atomic.Uint64 // moves with every report; dates attempts and evidence
	watch atomic.Bool   // successes matter to the local-outage detector

	mu       sync.Mutex
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
	// moved marks models whose present run of failures is their own (law V4).
	moved map[string]bool
}

type connection struct {
	word       atomic.Uint32
	key        Key
	credential string
	dom        *domain
	cool       gate
	lastError  *LastError // for people; replaced whole
	targets    map[string]*Target
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
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	e := &Engine{
		opts: o, start: o.Now(), log: o.Logger,
		domains: map[Key]*domain{}, conns: map[Key]*connection{}, targets: map[Key]*Target{},
		operator: map[Key]operatorExclusion{}, rotation: map[Key]int{},
	}
	e.seq.Store(1)
	e.bus.init(o.History, o.OnEvent)
	e.persist.init()
	e.local.runs = map[string]*dialRun{}
	if err := e.Configure(o.Config); err != nil {
		return nil, err
	}
	return e, nil
}

// Validate reports the first value of the config that cannot be meant.
func (c Config) Validate() error {
	if err := c.Policy.Validate(); err != nil {
		return err
	}
	for name, p := range c.Providers {
		if name == "" {
			return fmt.Errorf("a provider has an empty name")
		}
		if p.Policy != nil {
			if err := p.Policy.Validate(); err != nil {
				return fmt.Errorf("provider %q: %w", name, err)
			}
		}
		seen := map[string]bool{}
		for _, c := range p.Connections {
			if c.ID == "" || seen[c.ID] {
				return fmt.Errorf("provider %q: connection id %q is empty or used twice", name, c.ID)
			}
			seen[c.ID] = true
		}
	}
	for name, keys := range c.Combos {
		for _, k := range keys {
			if k.Provider == "" || k.Model == "" {
				return fmt.Errorf("combo %q: target %q needs a provider and a model", name, k)
			}
		}
	}
	return nil
}

// Configure replaces policies and what exists. State belongs to identity: what keeps its name
// keeps its state, a removed provider or connection takes its state along, a renamed one starts
// clean, and a changed credential ends a quarantine.
func (e *Engine) Configure(c Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.unlock()
	e.config = c
	p := c.Policy.Defaults()
	e.policy = &p
	if c.Providers != nil {
		e.dropUnknown()
	}
	for _, d := range e.domains {
		if d.policy = d.own; d.own == nil {
			d.policy = e.policyOf(d.key.Provider)
		}
		d.endpoint = e.endpointOf(d.key)
	}
	for name, p := range c.Providers {
		e.domain(Key{Provider: name})
		for _, pc := range p.Connections {
			e.adopt(Key{Provider: name, Connection: pc.ID}, pc)
		}
	}
	return nil
}

// adopt makes the connection's cell fit its configuration.
func (e *Engine) adopt(key Key, pc Connection) {
	c := e.connection(key)
	dom := e.domain(e.domainKey(key))
	if c.dom != dom {
		// Another failure domain: handles that were given out point to the old one, so that
		// they are retired and looked up anew.
		fresh := &connection{key: key, credential: c.credential, dom: dom, cool: c.cool, targets: map[string]*Target{}}
		for model, t := range c.targets {
			n := &Target{key: t.key, engine: e, dom: dom, conn: fresh, cool: t.cool, lock: t.lock}
			t.word.Store(bitGated | bitEvidence | bitEvicted)
			fresh.targets[model], e.targets[t.key] = n, n
			e.refreshTarget(n)
		}
		e.conns[key] = fresh
		c = fresh
		e.refreshConn(c)
	}
	if c.credential != "" && pc.Credential != c.credential && c.cool.quarantined {
		e.setConn(c, c.cool.cleared(e.seq.Add(1)), "credential changed")
	}
	c.credential = pc.Credential
}

func (e *Engine) dropUnknown() {
	for key, c := range e.conns {
		if e.known(key) {
			continue
		}
		for _, t := range c.targets {
			e.dropTarget(t)
		}
		e.forgetRecord(RecordID{LayerConnection, key})
		delete(e.conns, key)
	}
	for key := range e.domains {
		if key != e.domainKey(key) || !e.known(key) {
			e.forgetRecord(RecordID{LayerBreaker, key})
			delete(e.domains, key)
		}
	}
	for key := range e.operator {
		if !e.known(Key{Provider: key.Provider, Connection: key.Connection}) {
			e.forgetRecord(RecordID{LayerOperator, key})
			delete(e.operator, key)
		}
	}
}

func (e *Engine) dropTarget(t *Target) {
	t.word.Store(bitGated | bitEvidence | bitEvicted)
	e.forgetRecord(RecordID{LayerConnection, t.key})
	e.forgetRecord(RecordID{LayerModel, t.key})
	delete(e.targets, t.key)
	delete(t.conn.targets, t.key.Model)
}

// known reports whether the configuration names the key's provider and connection.
func (e *Engine) known(key Key) bool {
	if e.config.Providers == nil {
		return true
	}
	p, ok := e.config.Providers[key.Provider]
	if !ok || key.Connection == "" {
		return ok
	}
	_, ok = p.connection(key.Connection)
	return ok
}

func (p Provider) connection(id string) (Connection, bool) {
	for _, c := range p.Connections {
		if c.ID == id {
			return c, true
		}
	}
	return Connection{}, false
}

// domainKey returns the failure domain of a connection.
func (e *Engine) domainKey(key Key) Key {
	p := e.config.Providers[key.Provider]
	if c, ok := p.connection(key.Connection); ok && c.Endpoint != "" && c.Endpoint != p.Endpoint {
		return Key{Provider: key.Provider, Connection: key.Connection}
	}
	return Key{Provider: key.Provider}
}

func (e *Engine) endpointOf(dom Key) string {
	p := e.config.Providers[dom.Provider]
	if c, ok := p.connection(dom.Connection); ok && c.Endpoint != "" {
		return c.Endpoint
	}
	return cmpOr(p.Endpoint, dom.Provider)
}

func (e *Engine) policyOf(provider string) *Policy {
	if own := e.config.Providers[provider].Policy; own != nil {
		p := own.Defaults()
		return &p
	}
	return e.policy
}

func (e *Engine) domain(key Key) *domain {
	d := e.domains[key]
	if d == nil {
		d = &domain{key: key, endpoint: e.endpointOf(key), policy: e.policyOf(key.Provider), breaker: newBreaker(), moved: map[string]bool{}}
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
	return e.target(key)
}

// Trim drops the cells of models about which nothing is known and that no configuration names,
// so that made-up model names from clients cannot fill the memory. Handles that were given out
// stay usable. The engine does so by itself when there are many. It returns how many are left.
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

// unlock ends a critical section and delivers the events that it queued.
func (e *Engine) unlock() {
	e.mu.Unlock()
	e.bus.deliver()
}

// The setters are the only places where a gate in a cell changes: they keep the cell's word,
// the store and the events in step with it.

func (e *Engine) setBreaker(d *domain, next gate, cause string) {
	before := d.breaker
	d.breaker = next
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
	d.word.Store(word(d.breaker) | e.operatorBits(d.key) | bits(len(d.moved) > 0, bitEvidence))
}

func (e *Engine) refreshConn(c *connection) {
	c.word.Store(word(c.cool) | e.operatorBits(c.key))
}

func (e *Engine) refreshTarget(t *Target) {
	if t.word.Load()&bitEvicted == 0 {
		t.word.Store(word(t.cool) | word(t.lock) | e.operatorBits(t.key))
	}
}

func word(g gate) uint32 {
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
	limit := p.Hints.MaxQuota
	if v.Kind.Transient() || v.Kind == KindRateLimit || v.Kind == KindUnknown {
		limit = p.Hints.Max
	}
	if v.Prose {
		limit = min(limit, p.Hints.MaxProse)
	}
	return min(h, limit), h > limit
}

func (e *Engine) random(p *Policy) float64 {
	if p.Cooldown.Jitter == 0 {
		return 0
	}
	return rand.Float64()
}

// Start loads the stored state and begins to write changes. It returns when the state is
// loaded; a store that fails is reported as degraded persistence, never as an error. Stop must
// be called after it.
func (e *Engine) Start(ctx context.Context) error { return e.startPersistence(ctx) }

// Stop writes what is still to be written and ends the engine's goroutine. It may be called
// more than once.
func (e *Engine) Stop(ctx context.Context) error { return e.stopPersistence(ctx) }

// Providers returns a copy of the configured providers.
func (e *Engine) Providers() map[string]Provider {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.config.Providers)
}
