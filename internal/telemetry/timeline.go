package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"omniroute/resilience"
)

// maxStates is how many changes one timeline remembers.
const maxStates = 200

// State is what a gate changed to.
type State struct {
	At time.Time
	// State is a breaker's or a connection's state as the status has it.
	State string
	// Kind is the failure's that led to it, empty for none.
	Kind string
	// Until is when the state ends by itself; zero when it does not, or nobody knows.
	Until time.Time
}

// Timeline is the history of one gate: a breaker's (Layer breaker), a connection's, or that of the
// operators' own exclusions of the key.
type Timeline struct {
	Layer resilience.Layer
	Key   resilience.Key
	// States are in the order of time. Before the first the gate was well.
	States []State
}

// Timelines remember the states of the last hour of every breaker and connection. They are safe for
// concurrent use.
type Timelines struct {
	mu    sync.Mutex
	lines map[lineKey][]State
}

type lineKey struct {
	layer resilience.Layer
	key   resilience.Key
}

// NewTimelines returns empty Timelines.
func NewTimelines() *Timelines { return &Timelines{lines: map[lineKey][]State{}} }

// Begin takes what is out by now as the beginning: after a restart no event tells of it. It needs no
// Lockouts.
func (t *Timelines) Begin(s resilience.Status) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, p := range s.Providers {
		t.seedBreaker(resilience.Key{Provider: p.ID}, &p.Breaker, s.Now.Time)
		for _, c := range p.Connections {
			key := resilience.Key{Provider: p.ID, Connection: c.ID}
			if c.Breaker != nil {
				t.seedBreaker(key, c.Breaker, s.Now.Time)
			}
			if c.Kind != nil && len(c.Models) == 0 {
				state := resilience.Cooling
				if c.State == resilience.Quarantined {
					state = c.State
				}
				at := s.Now.Time
				if !c.RateLimitedUntil.IsZero() && c.CooldownMs > 0 {
					at = c.RateLimitedUntil.Add(-time.Duration(c.CooldownMs) * time.Millisecond)
				}
				t.push(resilience.LayerConnection, key, State{At: at, State: string(state), Kind: c.Kind.String(), Until: c.RateLimitedUntil.Time})
			}
		}
	}
	for _, o := range s.Operator {
		t.push(resilience.LayerOperator, o.Key, State{At: s.Now.Time, State: string(resilience.Excluded), Until: o.Until.Time})
	}
}

func (t *Timelines) seedBreaker(key resilience.Key, b *resilience.BreakerStatus, now time.Time) {
	if b.State == resilience.Closed {
		return
	}
	x := State{At: now, State: string(b.State), Until: b.ResetAt.Time}
	if !b.OpenedAt.IsZero() {
		x.At = b.OpenedAt.Time
	}
	if b.LastKind != nil {
		x.Kind = b.LastKind.String()
	}
	t.push(resilience.LayerBreaker, key, x)
}

// Heard takes in an event of the engine.
func (t *Timelines) Heard(ev resilience.Event) {
	if ev.Key.Provider == "" || ev.Layer == resilience.LayerModel || ev.Layer != resilience.LayerOperator && ev.Key.Model != "" {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	x := State{At: ev.At.Time, Kind: ev.Kind.String(), Until: ev.Until.Time}
	if ev.Type == resilience.EventExtended {
		if line := t.lines[lineKey{ev.Layer, ev.Key}]; len(line) > 0 {
			line[len(line)-1].Until = x.Until
		}
		return
	}
	if x.State = stateAfter(ev); x.State == "" {
		return
	}
	if x.State == string(resilience.Closed) || x.State == string(resilience.Ready) || ev.Layer == resilience.LayerOperator {
		x.Kind = ""
	}
	t.push(ev.Layer, ev.Key, x)
}

// stateAfter is the state that an event leads to, empty when it leads to none.
func stateAfter(ev resilience.Event) string {
	if ev.Layer == resilience.LayerBreaker {
		switch ev.Type {
		case resilience.EventDegraded, resilience.EventOpened, resilience.EventHalfOpen, resilience.EventClosed:
			return breakerState(ev.Type)
		}
		return ""
	}
	switch ev.Type {
	case resilience.EventCooling:
		return string(resilience.Cooling)
	case resilience.EventProbe:
		return string(resilience.Probing)
	case resilience.EventQuarantined:
		return string(resilience.Quarantined)
	case resilience.EventOperatorExcluded:
		return string(resilience.Excluded)
	case resilience.EventCleared, resilience.EventOperatorCleared:
		return string(resilience.Ready)
	}
	return ""
}

// push adds a state and forgets those that no longer reach into the last hour.
func (t *Timelines) push(layer resilience.Layer, key resilience.Key, x State) {
	k := lineKey{layer, key}
	line := t.lines[k]
	line = append(line, x)
	old := 0
	for old < len(line)-1 && (line[old+1].At.Before(x.At.Add(-SeriesSpan)) || len(line)-old > maxStates) {
		old++
	}
	t.lines[k] = slices.Delete(line, 0, old)
}

// List returns the timelines that have anything to tell of the hour before now, ordered by layer
// and name.
func (t *Timelines) List(now time.Time) []Timeline {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []Timeline
	from := now.Add(-SeriesSpan)
	for k, line := range t.lines {
		last := line[len(line)-1]
		well := last.State == string(resilience.Closed) || last.State == string(resilience.Ready)
		if last.At.Before(from) && (well || !last.Until.IsZero() && last.Until.Before(from)) {
			delete(t.lines, k)
			continue
		}
		out = append(out, Timeline{Layer: k.layer, Key: k.key, States: slices.Clone(line)})
	}
	slices.SortFunc(out, func(a, b Timeline) int {
		return cmp.Or(cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return out
}
