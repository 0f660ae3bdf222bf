package resilience

import (
	"fmt"
	"maps"
)

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
	// Connections in the order in which they are shown and selected. Nil means that the provider is used as a whole;
	// empty means that it has none now, and that its breaker is clean since nobody could close it.
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
	e.installKnown()
	return nil
}

// adopt makes the connection's cell fit its configuration.
func (e *Engine) adopt(key Key, pc Connection) {
	c := e.connection(key)
	dom := e.domain(e.domainKey(key))
	if c.dom != dom {
		// Another failure domain: handles that were given out point to the old one, so that
		// they are retired and looked up anew.
		fresh := &connection{key: key, credential: c.credential, dom: dom, cool: c.cool,
			credentialAt: c.credentialAt, lastError: c.lastError, targets: map[string]*Target{}}
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
	if c.credential != "" && pc.Credential != c.credential {
		c.credentialAt = e.tick()
		if c.cool.ofCredential() {
			end := e.share.refutes()
			e.setConn(c, c.cool.cleared(c.credentialAt), "credential changed")
			end()
		}
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
		e.dirty(RecordID{LayerConnection, key})
		delete(e.conns, key)
	}
	for key, d := range e.domains {
		if d.own == nil && (key != e.domainKey(key) || !e.known(key)) {
			e.dirty(RecordID{LayerBreaker, key})
			delete(e.domains, key)
			continue
		}
		if d.own == nil && e.barren(key.Provider) && !d.breaker.clean() {
			e.setBreaker(d, d.breaker.cleared(e.tick()).withoutMoved(func(movedModel) bool { return true }), "no connection is left")
		}
	}
	for key := range e.operator {
		if !e.known(Key{Provider: key.Provider, Connection: key.Connection}) {
			e.dirty(RecordID{LayerOperator, key})
			delete(e.operator, key)
		}
	}
}

func (e *Engine) dropTarget(t *Target) {
	t.word.Store(bitGated | bitEvidence | bitEvicted)
	e.dirty(RecordID{LayerConnection, t.key})
	e.dirty(RecordID{LayerModel, t.key})
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

// barren reports whether no call can go to a provider any more, since it has lost its connections.
func (e *Engine) barren(provider string) bool {
	own := e.config.Providers[provider].Connections
	return own != nil && len(own) == 0
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

// Providers returns a copy of the configured providers.
func (e *Engine) Providers() map[string]Provider {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.config.Providers)
}
