package resilience

import (
	"cmp"
	"slices"
	"time"
)

// Status is a view of everything that is known, for people and machines. Reading it changes
// nothing.
type Status struct {
	Now         Timestamp        `json:"now"`
	Persistence string           `json:"persistence"` // ok, degraded, or off without a store
	Local       bool             `json:"local_outage"`
	Providers   []ProviderStatus `json:"providers"`
	Combos      []ComboStatus    `json:"combos"`
	Lockouts    []LockoutStatus  `json:"lockouts"`
	Operator    []OperatorStatus `json:"operator"`
}

// ProviderStatus is one provider. Available tells whether any connection of it may be used;
// AvailableAt when one may again, where that is known.
type ProviderStatus struct {
	ID          string             `json:"id"`
	Available   bool               `json:"available"`
	AvailableAt Timestamp          `json:"available_at"`
	Breaker     BreakerStatus      `json:"breaker"`
	Connections []ConnectionStatus `json:"connections"`
}

// ComboStatus is one combo. Available tells whether any of its targets may be used; else AvailableAt is when one may
// again, where that is known, and Kind why the first of them is out.
type ComboStatus struct {
	ID          string    `json:"id"`
	Available   bool      `json:"available"`
	AvailableAt Timestamp `json:"available_at"`
	Kind        *Kind     `json:"kind"`
}

// BreakerStatus is a circuit breaker.
type BreakerStatus struct {
	State            BreakerState `json:"state"`
	Failures         int          `json:"failures"`
	FailureThreshold int          `json:"failure_threshold"`
	OpenCycles       int          `json:"open_cycles"`
	// RetryAfterMs is how long until the next request may pass, an early probe included.
	RetryAfterMs  int64     `json:"retry_after_ms"`
	LastKind      *Kind     `json:"last_failure_kind"`
	LastFailureAt Timestamp `json:"last_failure_at"`
	OpenedAt      Timestamp `json:"opened_at"`
	ResetAt       Timestamp `json:"reset_at"`
}

// ConnectionState is what an operator wants to know of a connection first.
type ConnectionState string

// The states of a connection.
const (
	Ready       ConnectionState = "ready"
	Cooling     ConnectionState = "cooling"
	Probing     ConnectionState = "probing"
	Quarantined ConnectionState = "quarantined"
	Excluded    ConnectionState = "excluded"
)

// ConnectionStatus is one connection. Models lists the models for which alone it is out.
type ConnectionStatus struct {
	ID               string          `json:"id"`
	State            ConnectionState `json:"state"`
	Kind             *Kind           `json:"kind"`
	RateLimitedUntil Timestamp       `json:"rate_limited_until"`
	RetryAfterMs     int64           `json:"retry_after_ms"`
	BackoffLevel     int             `json:"backoff_level"`
	CooldownMs       int64           `json:"cooldown_ms"`
	LastError        *LastError      `json:"last_error"`
	Models           []string        `json:"models,omitempty"`
	Breaker          *BreakerStatus  `json:"breaker,omitempty"` // of a connection with its own base URL
}

// LastError is why a connection is out.
type LastError struct {
	Kind Kind      `json:"kind"`
	Rule string    `json:"rule,omitempty"`
	At   Timestamp `json:"at"`
}

// LockoutStatus is one model that is out on one connection. Below MaxAttempts failures it is
// the ladder before the lock.
type LockoutStatus struct {
	Provider     string    `json:"provider"`
	Connection   string    `json:"connection"`
	Model        string    `json:"model"`
	Kind         Kind      `json:"kind"`
	Failures     int       `json:"failures"`
	Locked       bool      `json:"locked"`
	LockedUntil  Timestamp `json:"locked_until"`
	RetryAfterMs int64     `json:"retry_after_ms"`
}

// OperatorStatus is an operator's own exclusion.
type OperatorStatus struct {
	Key
	Until  Timestamp `json:"until"`
	Reason string    `json:"reason"`
}

// view carries what every part of a status needs.
type view struct {
	e     *Engine
	clock time.Time
	now   instant
}

func (v view) at(t instant) Timestamp { return Timestamp{wall(t, v.now, v.clock)} }

func (v view) ms(t instant) int64 {
	if t == never {
		return 0
	}
	return max(int64((t-v.now+time.Millisecond-1)/time.Millisecond), 0)
}

// Status returns the view.
func (e *Engine) Status() Status { return e.status(true) }

// Overview returns the view without its Lockouts: a store may bring a hundred thousand of those.
func (e *Engine) Overview() Status { return e.status(false) }

func (e *Engine) status(lockouts bool) Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	clock := e.opts.Now()
	v := view{e, clock, clock.Sub(e.start)}
	s := Status{Now: Timestamp{clock}, Persistence: e.persist.health(e.opts.Store != nil, clock), Local: e.local.active.Load(),
		Providers: []ProviderStatus{}, Combos: []ComboStatus{}, Lockouts: []LockoutStatus{}, Operator: []OperatorStatus{}}
	for _, name := range e.providerNames() {
		s.Providers = append(s.Providers, v.provider(name))
	}
	for name, keys := range e.config.Combos {
		s.Combos = append(s.Combos, v.combo(name, keys))
	}
	slices.SortFunc(s.Combos, func(a, b ComboStatus) int { return cmp.Compare(a.ID, b.ID) })
	if lockouts {
		s.Lockouts = v.lockouts()
	}
	for k, o := range e.operator {
		if v.now < o.until {
			s.Operator = append(s.Operator, OperatorStatus{Key: k, Until: v.at(o.until), Reason: o.reason})
		}
	}
	slices.SortFunc(s.Operator, func(a, b OperatorStatus) int { return cmp.Compare(a.String(), b.String()) })
	return s
}

func (v view) lockouts() []LockoutStatus {
	all := []LockoutStatus{}
	for _, t := range v.e.targets {
		if t.lock.live(v.now) && t.key.Model != "" {
			all = append(all, LockoutStatus{
				Provider: t.key.Provider, Connection: t.key.Connection, Model: t.key.Model, Kind: t.lock.kind,
				Failures: t.lock.failures, Locked: t.lock.locked, LockedUntil: v.at(t.lock.until), RetryAfterMs: v.ms(t.lock.until),
			})
		}
	}
	slices.SortFunc(all, func(a, b LockoutStatus) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Connection, b.Connection), cmp.Compare(a.Model, b.Model))
	})
	return all
}

func (e *Engine) providerNames() []string {
	seen := map[string]bool{}
	for k := range e.domains {
		seen[k.Provider] = true
	}
	names := make([]string, 0, len(seen))
	for n := range seen {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// connectionIDs returns the provider's connections: the configured ones in their order, then
// any others that are known of.
func (e *Engine) connectionIDs(provider string) []string {
	var ids []string
	for _, c := range e.config.Providers[provider].Connections {
		ids = append(ids, c.ID)
	}
	n := len(ids)
	for k := range e.conns {
		if k.Provider == provider && k.Connection != "" && !slices.Contains(ids[:n], k.Connection) {
			ids = append(ids, k.Connection)
		}
	}
	slices.Sort(ids[n:])
	return ids
}

func (v view) provider(name string) ProviderStatus {
	e := v.e
	s := ProviderStatus{ID: name, Connections: []ConnectionStatus{}}
	shared := e.glimpse(Key{Provider: name}).dom
	s.Breaker = v.breaker(shared)
	soonest := never
	ids := e.connectionIDs(name)
	for _, id := range ids {
		c := e.glimpse(Key{Provider: name, Connection: id}).conn
		s.Connections = append(s.Connections, v.connection(c))
		x, out := v.standing(c)
		s.Available = s.Available || !out
		if out {
			soonest = min(soonest, x)
		}
	}
	if len(ids) == 0 {
		a := shared.breaker.breakerAsk("", shared.policy, false, v.now)
		s.Available, soonest = a.verdict != refused, a.next
	}
	if !s.Available {
		s.AvailableAt = v.at(soonest)
	}
	return s
}

func (v view) combo(name string, keys []Key) ComboStatus {
	s := ComboStatus{ID: name}
	for i, key := range keys {
		x, a, _ := v.e.glimpse(key).decide(false, v.clock)
		if a != refused {
			return ComboStatus{ID: name, Available: true}
		}
		if i == 0 && x.Layer != LayerOperator {
			s.Kind = &x.Kind
		}
		if at := v.clock.Add(x.RetryAfter); x.RetryAfter > 0 && (s.AvailableAt.IsZero() || at.Before(s.AvailableAt.Time)) {
			s.AvailableAt = Timestamp{at}
		}
	}
	return s
}

// standing says whether a connection is out whatever the model, and until when at the soonest.
func (v view) standing(c *connection) (next instant, out bool) {
	if x, held := v.e.operatorExclusion(c.key, v.clock); held {
		if x.RetryAfter == 0 {
			return never, true
		}
		return v.now + x.RetryAfter, true
	}
	p := c.dom.policy
	sole, _ := c.dom.breaker.soleModel() // another model may pass at once; the one that fails waits
	a := c.dom.breaker.breakerAsk(sole, p, false, v.now)
	b := c.cool.ask(p, false, v.now)
	if c.dom.breaker.excluded && c.cool.transient() {
		b = answer{}
	}
	return max(a.next, b.next), a.verdict == refused || b.verdict == refused
}

func (v view) breaker(d *domain) BreakerStatus {
	g := d.breaker
	s := BreakerStatus{State: g.breakerView(d.policy, v.now), Failures: g.failures,
		FailureThreshold: d.policy.Breaker.FailureThreshold, OpenCycles: g.cycles}
	if g.failures > 0 || g.excluded {
		kind := g.kind
		s.LastKind, s.LastFailureAt = &kind, v.at(g.lastFailure)
	}
	if g.excluded {
		s.OpenedAt, s.ResetAt = v.at(g.since), v.at(g.until)
		sole, _ := g.soleModel() // another model may pass at once; the one that fails waits
		if a := g.breakerAsk(sole, d.policy, false, v.now); a.verdict == refused {
			s.RetryAfterMs = v.ms(a.next)
		}
	}
	return s
}

func (v view) connection(c *connection) ConnectionStatus {
	s := ConnectionStatus{ID: c.key.Connection, State: Ready}
	p := c.dom.policy
	if c.dom.key.Connection != "" {
		b := v.breaker(c.dom)
		s.Breaker = &b
	}
	g := c.cool
	if g.excluded && g.forgotten(p, v.now) {
		g = gate{}
	}
	if !g.live(v.now) {
		for _, model := range c.coolModels(p, v.now) {
			t := c.targets[model]
			if t.cool.live(v.now) {
				s.Models = append(s.Models, model)
			}
			if !g.excluded || t.cool.until > g.until {
				g = t.cool
			}
		}
	}
	s.LastError = c.lastError
	if g.excluded {
		s.BackoffLevel = g.level
		if n, _ := g.running(v.now); n > 0 && !g.live(v.now) {
			s.State = Probing
		}
	}
	if g.live(v.now) {
		kind := g.kind
		s.State = Cooling
		s.Kind, s.RateLimitedUntil, s.RetryAfterMs = &kind, v.at(g.until), v.ms(g.until)
		if g.until != never {
			s.CooldownMs = int64((g.until - g.since) / time.Millisecond)
		}
		if g.quarantined {
			s.State = Quarantined
		}
	}
	if _, out := v.e.operatorExclusion(c.key, v.clock); out {
		s.State = Excluded
	}
	return s
}

// coolModels are the models with a cooldown of their own that counts, in the order of their names.
func (c *connection) coolModels(p *Policy, now instant) []string {
	var models []string
	for model, t := range c.targets {
		if t.cool.excluded && !t.cool.forgotten(p, now) {
			models = append(models, model)
		}
	}
	slices.Sort(models)
	return models
}
