package resilience

import (
	"slices"
	"sync"
	"time"
)

// EventType says what happened.
type EventType string

// The types of events. The first four are a breaker's; the next ones any gate's.
const (
	EventDegraded    EventType = "degraded"
	EventOpened      EventType = "opened"
	EventHalfOpen    EventType = "half_open"
	EventClosed      EventType = "closed"
	EventCooling     EventType = "cooling"
	EventLocked      EventType = "locked"
	EventQuarantined EventType = "quarantined"
	EventExtended    EventType = "extended"
	EventCleared     EventType = "cleared"
	EventProbe       EventType = "probe"

	EventOperatorExcluded    EventType = "operator_excluded"
	EventOperatorCleared     EventType = "operator_cleared"
	EventReset               EventType = "reset"
	EventRepaired            EventType = "repaired"
	EventLocalOutage         EventType = "local_outage"
	EventLocalOutageEnded    EventType = "local_outage_ended"
	EventPersistenceDegraded EventType = "persistence_degraded"
	EventPersistenceOK       EventType = "persistence_ok"
	EventClusterIsolated     EventType = "cluster_isolated"
	EventClusterJoined       EventType = "cluster_joined"
)

// Event is one transition.
type Event struct {
	// Seq numbers the events of this process from 1, without gaps.
	Seq   uint64    `json:"seq"`
	At    Timestamp `json:"at"`
	Type  EventType `json:"type"`
	Layer Layer     `json:"layer"`
	Key   Key       `json:"key"`
	Kind  Kind      `json:"kind"`
	// Until is the exclusion's deadline; zero where it has none.
	Until Timestamp `json:"until"`
	Level int       `json:"level"`
	Rule  string    `json:"rule,omitempty"`
	// Cause says why: failure, success, probe_success, contrast, suspicion, reset, ...
	Cause string `json:"cause,omitempty"`
	// Clamped says that the upstream stated a longer wait than its cap allows.
	Clamped bool `json:"clamped,omitempty"`

	until instant
}

// bus delivers events in order, outside the engine's lock, from one goroutine at a time, and
// keeps the last ones.
type bus struct {
	mu         sync.Mutex
	queue      []item
	delivering bool
	history    []Event
	next       int // in history, once it is full
	size       int
	seq        uint64
	handlers   []*handler

	clamped bool // of the report being heard; under the engine's lock
}

type item struct {
	event    Event
	provider string // where only an opening is to be told
}

type handler struct {
	event   func(Event)
	opening func(provider string)
}

func (b *bus) init(size int, on func(Event)) {
	b.size = size
	if on != nil {
		b.handlers = append(b.handlers, &handler{event: on})
	}
}

func (b *bus) push(i item) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i.event.Type == "" {
		b.queue = append(b.queue, i)
		return
	}
	b.seq++
	i.event.Seq = b.seq
	b.queue = append(b.queue, i)
	if len(b.history) < b.size {
		b.history = append(b.history, i.event)
		return
	}
	b.history[b.next] = i.event
	b.next = (b.next + 1) % b.size
}

// deliver hands out what is queued, unless another goroutine is at it: then that one does. A
// handler that panics does so in the request that delivers; the others' events stay queued.
func (b *bus) deliver() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.delivering {
		return
	}
	b.delivering = true
	defer func() { b.delivering = false }()
	for len(b.queue) > 0 {
		i := b.queue[0]
		b.queue = b.queue[1:]
		b.handOut(i, b.handlers)
	}
	b.queue = nil
}

// handOut calls the handlers outside the lock that its caller holds.
func (b *bus) handOut(i item, handlers []*handler) {
	b.mu.Unlock()
	defer b.mu.Lock()
	for _, h := range handlers {
		switch {
		case i.event.Type != "" && h.event != nil:
			h.event(i.event)
		case i.provider != "" && h.opening != nil:
			h.opening(i.provider)
		}
	}
}

func (b *bus) add(h *handler) (cancel func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handlers = append(slices.Clone(b.handlers), h)
	return func() { b.remove(h) }
}

func (b *bus) remove(h *handler) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.handlers = slices.DeleteFunc(slices.Clone(b.handlers), func(x *handler) bool { return x == h })
}

// Subscribe calls f with every event from now on, like Options.OnEvent, until cancel is called.
func (e *Engine) Subscribe(f func(Event)) (cancel func()) { return e.bus.add(&handler{event: f}) }

// OnOpening calls f whenever a gate of a provider may have begun to let more traffic through:
// an exclusion ended early, or a probe's slot was freed. The passing of a deadline is not told;
// Exclusion.RetryAfter says when that will be.
func (e *Engine) OnOpening(f func(provider string)) (cancel func()) {
	return e.bus.add(&handler{opening: f})
}

// Events returns the last events, newest first, at most limit of them (0: all that are kept).
func (e *Engine) Events(limit int) []Event {
	e.bus.mu.Lock()
	defer e.bus.mu.Unlock()
	all := append(slices.Clone(e.bus.history[e.bus.next:]), e.bus.history[:e.bus.next]...)
	slices.Reverse(all)
	if limit > 0 && len(all) > limit {
		all = all[:limit]
	}
	return all
}

func (e *Engine) emit(ev Event) {
	clock := e.opts.Now()
	ev.At = Timestamp{clock}
	if ev.until != 0 {
		ev.Until = Timestamp{wall(ev.until, clock.Sub(e.start), clock)}
	}
	ev.Clamped = e.bus.clamped
	e.bus.push(item{event: ev})
}

func (e *Engine) opened(provider string) { e.bus.push(item{provider: provider}) }

// changed tells the store and the listeners what a transition did.
func (e *Engine) changed(layer Layer, key Key, before, after gate, p *Policy, cause string) {
	if !before.same(&after) {
		e.dirty(RecordID{layer, key})
	}
	ev := Event{Layer: layer, Key: key, Kind: after.kind, Rule: after.rule, Level: after.level, Cause: cause, until: after.until}
	switch {
	case after.excluded && (!before.excluded || before.setAt != after.setAt):
		ev.Type = EventCooling
		switch {
		case after.quarantined:
			ev.Type = EventQuarantined
		case layer == LayerBreaker:
			ev.Type = EventOpened
		case layer == LayerModel && after.locked:
			ev.Type = EventLocked
		}
	case after.excluded && after.quarantined && !before.quarantined:
		ev.Type = EventQuarantined
	case after.excluded && after.until > before.until:
		ev.Type = EventExtended
	case before.excluded && !after.excluded:
		ev.Type, ev.Kind, ev.until = EventCleared, before.kind, 0
		if layer == LayerBreaker {
			ev.Type = EventClosed
		}
	case len(after.leases) > len(before.leases):
		ev.Type = EventProbe
		if layer == LayerBreaker && !after.leases[len(after.leases)-1].early {
			ev.Type = EventHalfOpen
		}
	case layer == LayerBreaker && before.failures < p.Breaker.DegradedThreshold && after.failures >= p.Breaker.DegradedThreshold:
		ev.Type = EventDegraded
	case layer == LayerBreaker && !after.excluded && before.failures >= p.Breaker.DegradedThreshold && after.failures < p.Breaker.DegradedThreshold:
		ev.Type, ev.Kind = EventClosed, before.kind
	}
	if ev.Type != "" {
		e.emit(ev)
	}
	if before.excluded && !after.excluded || len(after.leases) < len(before.leases) {
		e.opened(key.Provider)
	}
}

// Timestamp is a time in JSON: RFC 3339 with milliseconds, UTC; null where it is zero.
type Timestamp struct{ time.Time }

const timestampFormat = "2006-01-02T15:04:05.000Z"

// MarshalJSON writes the time, or null.
func (t Timestamp) MarshalJSON() ([]byte, error) {
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().AppendFormat(nil, `"`+timestampFormat+`"`), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Timestamp) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		t.Time = time.Time{}
		return nil
	}
	parsed, err := time.Parse(`"`+time.RFC3339Nano+`"`, string(b))
	t.Time = parsed
	return err
}
