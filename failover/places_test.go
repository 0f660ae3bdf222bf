package failover

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/resilience"
)

// refPlaces is the line as one would tell it: callers in the order of their turns, each with its
// requests.
type refPlaces struct {
	used, limit, depth int
	turns              []uint64
	waiting            map[uint64][]*ticket
	given              []*ticket
	crowded            []*ticket
}

func (m *refPlaces) count() (n int) {
	for _, q := range m.waiting {
		n += len(q)
	}
	return n
}

func (m *refPlaces) serve() {
	for len(m.turns) > 0 && (m.limit == 0 || m.used < m.limit) {
		c := m.turns[0]
		m.turns = m.turns[1:]
		m.given = append(m.given, m.waiting[c][0])
		m.used++
		if m.waiting[c] = m.waiting[c][1:]; len(m.waiting[c]) > 0 {
			m.turns = append(m.turns, c)
		}
	}
}

func (m *refPlaces) remove(t *ticket) {
	q := m.waiting[t.caller]
	i := slices.Index(q, t)
	if i < 0 {
		return
	}
	m.waiting[t.caller] = slices.Delete(q, i, i+1)
	if len(m.waiting[t.caller]) == 0 {
		m.turns = slices.DeleteFunc(m.turns, func(c uint64) bool { return c == t.caller })
	}
}

func (m *refPlaces) join(t *ticket) bool {
	if m.count() >= m.depth {
		most := -1
		for i, c := range m.turns {
			if most < 0 || len(m.waiting[c]) >= len(m.waiting[m.turns[most]]) {
				most = i
			}
		}
		if m.depth == 0 || most < 0 || len(m.waiting[m.turns[most]]) < len(m.waiting[t.caller])+2 {
			return false
		}
		q := m.waiting[m.turns[most]]
		m.crowded = append(m.crowded, q[len(q)-1])
		m.remove(q[len(q)-1])
	}
	if len(m.waiting[t.caller]) == 0 {
		m.turns = append(m.turns, t.caller)
	}
	m.waiting[t.caller] = append(m.waiting[t.caller], t)
	m.serve()
	return true
}

// TestPlacesAreGivenInTurn compares the line with one that is told in plain words: never more
// places than there are, none left free while somebody waits, callers in turn.
func TestPlacesAreGivenInTurn(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		p := new(Places)
		m := &refPlaces{limit: rapid.IntRange(1, 4).Draw(t, "limit"), depth: rapid.IntRange(0, 6).Draw(t, "depth"), waiting: map[uint64][]*ticket{}}
		p.Limit(m.limit)
		var waiting, given, crowded []*ticket
		t.Repeat(map[string]func(*rapid.T){
			"take": func(t *rapid.T) {
				free := m.limit == 0 || m.used < m.limit
				if p.busy() == free {
					t.Fatalf("busy: %v with %d of %d used", !free, m.used, m.limit)
				}
				if got := p.take(); got != free {
					t.Fatalf("took a place: %v with %d of %d used", got, m.used, m.limit)
				}
				if free {
					m.used++
				}
			},
			"join": func(t *rapid.T) {
				x := &ticket{caller: rapid.Uint64Range(1, 3).Draw(t, "caller")}
				x.wake = func() {
					switch x.got.Load() {
					case p:
						given = append(given, x)
					case crowdedOut:
						crowded = append(crowded, x)
					}
				}
				want := m.join(x)
				if got := p.join(x, m.depth); got != want {
					t.Fatalf("in line: %v, want %v", got, want)
				}
				if want {
					waiting = append(waiting, x)
				}
			},
			"free": func(t *rapid.T) {
				if m.used == 0 {
					t.Skip("none is used")
				}
				m.used--
				m.serve()
				p.free()
			},
			"leave": func(t *rapid.T) {
				if len(waiting) == 0 {
					t.Skip("nobody waits")
				}
				x := rapid.SampledFrom(waiting).Draw(t, "who")
				if x.got.CompareAndSwap(nil, gone) {
					m.remove(x)
				}
				p.leave(x)
			},
			"limit": func(t *rapid.T) {
				m.limit = rapid.IntRange(0, 4).Draw(t, "limit")
				m.serve()
				p.Limit(m.limit)
			},
			"": func(t *rapid.T) {
				if p.Used() != m.used || p.Waiting() != m.count() {
					t.Fatalf("%d used and %d waiting, want %d and %d", p.Used(), p.Waiting(), m.used, m.count())
				}
				if !slices.Equal(given, m.given) {
					t.Fatal("places went to others than those whose turn it was")
				}
				if !slices.Equal(crowded, m.crowded) {
					t.Fatal("others lost their place in line than should have")
				}
			},
		})
	})
}

// TestOfEqualCallersTheLastInTurnIsCrowdedOut: of two callers with two requests in a full line each,
// the one whose turn comes last loses its newest, wherever the turn stands.
func TestOfEqualCallersTheLastInTurnIsCrowdedOut(t *testing.T) {
	t.Parallel()
	for want, steps := range map[string][]string{
		"b2": {"a0", "a1", "a2", "b1", "b2", "c1"},               // it is the turn of a
		"a3": {"a0", "a1", "a2", "a3", "b1", "free", "b2", "c1"}, // a1 runs, and it is the turn of b
	} {
		p := new(Places)
		p.Limit(1)
		var out []string
		for _, name := range steps {
			if name == "free" {
				p.free()
				continue
			}
			x := &ticket{caller: uint64(name[0])}
			x.wake = func() {
				if x.got.Load() == crowdedOut {
					out = append(out, name)
				}
			}
			p.join(x, 4)
		}
		if !slices.Equal(out, []string{want}) {
			t.Errorf("%q lost their place in line, want %s: it would have been served last", out, want)
		}
	}
}

// TestFullLineIsNoWait: a request that a full line does not take in has not waited. What it has just
// tried is asked again only after a pause, and never at once.
func TestFullLineIsNoWait(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{Breaker: resilience.BreakerPolicy{FailureThreshold: 100}, Cooldown: resilience.CooldownPolicy{TransientAfter: 100}})
	p := r.plan(t, Limits{QueueDepth: -1, MaxWait: time.Second, MaxAttempts: 20}, "a/1/m", "b/1/m")
	p.Targets[1].Places = new(Places)
	p.Targets[1].Places.Limit(1)
	p.Targets[1].Places.take()
	f := NewRequest(p, nil, true)
	asked := []time.Duration{}
	a := f.Step(Event{Type: Begin}, r.now)
	for a.Type != GiveUp {
		switch a.Type {
		case Dispatch:
			asked = append(asked, r.now.Sub(epoch))
			a = f.Step(Event{Type: Failed, Attempt: a.Attempt.ID, Verdict: verdicts["500"]}, r.now)
		case Queue:
			if f.Line(func() {}) {
				t.Fatal("the line takes it in")
			}
			a = f.Step(Event{Type: RoomFull}, r.now)
		case Pause:
			r.now = a.Until
			a = f.Step(Event{Type: Woken}, r.now)
		default:
			t.Fatalf("the action is %v", a.Type)
		}
	}
	if want := []time.Duration{0, firstRetry, 3 * firstRetry}; !slices.Equal(asked, want) {
		t.Errorf("the one with a place was asked after %v, want %v", asked, want)
	}
	if c := f.Report(r.now).Cause; c != CauseBusy {
		t.Errorf("the cause is %v, want that the other was busy", c)
	}
}
