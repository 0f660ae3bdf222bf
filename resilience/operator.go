package resilience

import (
	"fmt"
	"time"
)

// operatorExclusion is an operator's own word: it is never rechecked nor cleared by a success.
type operatorExclusion struct {
	set    bool
	since  instant
	until  instant
	reason string
}

func (o operatorExclusion) zero() bool { return !o.set }

// Exclude takes what the key names out of service: a provider, a connection, a model on a
// connection or, with an empty connection, a model on every connection of the provider. It ends
// after d, or with Include; d <= 0 means that only Include ends it.
func (e *Engine) Exclude(key Key, d time.Duration, reason string) error {
	if key.Provider == "" {
		return fmt.Errorf("an exclusion needs a provider")
	}
	now := e.now()
	o := operatorExclusion{set: true, since: now, until: never, reason: reason}
	if d > 0 {
		o.until = after(now, d)
	}
	e.mu.Lock()
	defer e.unlock()
	if !e.known(key) {
		return fmt.Errorf("there is no %s in the configuration", key)
	}
	e.operator[key] = o
	e.operatorChanged(key)
	e.emit(Event{Type: EventOperatorExcluded, Layer: LayerOperator, Key: key, Cause: reason, until: o.until})
	return nil
}

// Include ends an operator's exclusion and reports whether there was one.
func (e *Engine) Include(key Key) bool {
	e.mu.Lock()
	defer e.unlock()
	return e.include(key, "operator")
}

func (e *Engine) include(key Key, cause string) bool {
	o := e.operator[key]
	if o.zero() {
		return false
	}
	delete(e.operator, key)
	e.operatorChanged(key)
	e.emit(Event{Type: EventOperatorCleared, Layer: LayerOperator, Key: key, Cause: cause})
	e.opened(key.Provider)
	return e.now() < o.until
}

func (e *Engine) operatorChanged(key Key) {
	for k, d := range e.domains {
		if k.Provider == key.Provider {
			e.refreshDomain(d)
		}
	}
	e.dirty(RecordID{LayerOperator, key})
}

// operatorBits makes every request to a provider look closer while any exclusion of it stands.
func (e *Engine) operatorBits(dom Key) uint32 {
	for k := range e.operator {
		if k.Provider == dom.Provider {
			return bitGated
		}
	}
	return 0
}

// operatorExclusion returns the longest operator exclusion that holds for a target.
func (e *Engine) operatorExclusion(key Key, clock time.Time) (Exclusion, bool) {
	if len(e.operator) == 0 {
		return Exclusion{}, false
	}
	now := clock.Sub(e.start)
	var longest operatorExclusion
	for _, k := range []Key{
		{Provider: key.Provider},
		{Provider: key.Provider, Connection: key.Connection},
		{Provider: key.Provider, Model: key.Model},
		key,
	} {
		if o := e.operator[k]; o.set && now < o.until && o.until >= longest.until {
			longest = o
		}
	}
	if longest.zero() {
		return Exclusion{}, false
	}
	x := Exclusion{Layer: LayerOperator, Until: wall(longest.until, now, clock), Reason: longest.reason}
	if longest.until != never {
		x.RetryAfter = longest.until - now
	}
	return x, true
}

// ResetCount says how many live exclusions a reset has ended: breakers that were OPEN or
// HALF_OPEN, connections that were cooling (or quarantined) and models that were locked.
type ResetCount struct {
	Breakers    int `json:"breakers"`
	Connections int `json:"connections"`
	Lockouts    int `json:"lockouts"`
}

// Reset cleans every gate that the key names or that is nested below it, counts and levels
// included; the zero Key means all. What attempts report that began before it raises nothing.
// Operator exclusions stay unless includeOperator is true.
func (e *Engine) Reset(key Key, includeOperator bool) ResetCount {
	e.mu.Lock()
	defer e.unlock()
	seq, now := e.tick(), e.now()
	if e.share != nil {
		e.dirty(RecordID{LayerNone, key})
		proven, refuted := e.share.proving(now, nil), e.share.refutes()
		defer proven()
		defer refuted()
	}
	var n ResetCount
	for k, d := range e.domains {
		if key.Contains(k) {
			n.Breakers += one(d.breaker.excluded)
			e.setBreaker(d, d.breaker.cleared(seq).withoutMoved(func(movedModel) bool { return true }), "reset")
		}
	}
	for k, c := range e.conns {
		cooling := false
		if key.Contains(k) {
			cooling = c.cool.live(now)
			e.setConn(c, c.cool.cleared(seq), "reset")
		}
		for _, t := range c.targets {
			if !key.Contains(t.key) {
				continue
			}
			cooling = cooling || t.cool.live(now)
			n.Lockouts += one(t.lock.live(now))
			e.setCool(t, t.cool.cleared(seq), "reset")
			e.setLock(t, t.lock.cleared(seq), "reset")
		}
		n.Connections += one(cooling)
	}
	if includeOperator {
		for k := range e.operator {
			if key.Contains(k) {
				e.include(k, "reset")
			}
		}
	}
	e.emit(Event{Type: EventReset, Key: key, Cause: "operator"})
	return n
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}
