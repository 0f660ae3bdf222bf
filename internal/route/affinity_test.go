package route

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/resilience"
)

const accounts = `
providers:
  acme:
    base_url: https://llm.acme.example/v1
    connections_strategy: STRATEGY
    connections:
      - {id: k1, api_key: "acme-secret-1"}
      - {id: k2, api_key: "acme-secret-2"}
      - {id: k3, api_key: "acme-secret-3"}
      - {id: k4, api_key: "acme-secret-4"}
  beta: {base_url: "https://beta.example/v1", connections: [{id: b1, api_key: "beta-secret-1"}, {id: b2, api_key: "beta-secret-2"}]}
affinity: {sessions: 500}
combos:
  pair: {targets: [acme/m, beta/m], patience: 0s}
`

// world is a router, its engine and a clock, and upstreams that fail as they are told.
type upstreams struct {
	*Router
	engine *resilience.Engine
	clock  *clock
	fails  map[string]resilience.Verdict // by provider/connection
	needs  failover.Needs                // of the requests
}

func newUpstreams(t *testing.T, text string) *upstreams {
	r, e, c := newClockRouter(t, t, text)
	return &upstreams{r, e, c, map[string]resilience.Verdict{}, failover.Needs{}}
}

// ask plays one request and returns the connections that were tried, the last of which answered, and
// what that was to the session.
func (u *upstreams) ask(t interface{ Fatal(...any) }, name string, a Asked) (tried []string, relation Affinity) {
	route, err := u.Resolve(catalog.OpenAI, name)
	if err != nil {
		t.Fatal(err)
	}
	p := route.Picker(a)
	defer route.Done(p)
	q := failover.NewRequest(route.Plan, p, a.Stream).For(failover.Ask{Estimate: func() failover.Needs { return u.needs }})
	act := q.Step(failover.Event{Type: failover.Begin}, u.clock.now)
	for act.Type == failover.Dispatch {
		k := act.Attempt.Target.Key()
		tried = append(tried, k.Connection)
		if v, bad := u.fails[k.Provider+"/"+k.Connection]; bad {
			act = q.Step(failover.Event{Type: failover.Failed, Attempt: act.Attempt.ID, Verdict: v}, u.clock.now)
			continue
		}
		relation = route.Served(p, act.Attempt.Place(), u.clock.now)
		q.Step(failover.Event{Type: failover.Content, Attempt: act.Attempt.ID}, u.clock.now)
		q.Step(failover.Event{Type: failover.Ended, Attempt: act.Attempt.ID}, u.clock.now)
		return tried, relation
	}
	q.Step(failover.Event{Type: failover.Abandoned}, u.clock.now)
	return append(tried, "nobody"), relation
}

func limited(after time.Duration) resilience.Verdict {
	return resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: after}
}

func ways() []string {
	return slices.DeleteFunc(config.Strategies(), func(s string) bool { return s == string(config.Priority) })
}

// TestSessionsAreShared: a hundred sessions on four accounts, each within 25% of even; each stays at
// home for its twenty turns, whatever the strategy and whoever else asks meanwhile.
func TestSessionsAreShared(t *testing.T) {
	t.Parallel()
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			u := newUpstreams(t, strings.Replace(accounts, "STRATEGY", way, 1))
			homes, count := map[string]string{}, map[string]int{}
			for turn := range 20 {
				for i := range 100 {
					s := fmt.Sprintf("session-%d", i)
					u.ask(t, "pair", Asked{}) // one without a session
					tried, relation := u.ask(t, "pair", Asked{Session: s})
					if turn == 0 {
						homes[s] = tried[0]
						count[tried[0]]++
					}
					want := AtHome
					if turn == 0 {
						want = Settled
					}
					if !slices.Equal(tried, []string{homes[s]}) || relation != want {
						t.Fatalf("turn %d of %s: tried %v (%s), at home at %s", turn, s, tried, relation, homes[s])
					}
				}
				u.clock.now = u.clock.now.Add(time.Minute)
			}
			for _, k := range []string{"k1", "k2", "k3", "k4"} {
				// By chance and by measure a session's first request may go anywhere.
				if n := count[k]; (n < 19 || n > 31) && way != string(config.Fastest) {
					t.Errorf("%s has %d of 100 sessions: %v", k, n, count)
				}
			}
		})
	}
}

// TestDetour: a session whose home answers 429 is served elsewhere in the same request, goes to one
// other place as long as its home is out, asks its home no more meanwhile, and comes back once.
func TestDetour(t *testing.T) {
	t.Parallel()
	for _, way := range ways() {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			u := newUpstreams(t, strings.Replace(accounts, "STRATEGY", way, 1))
			s := Asked{Session: "s"}
			first, _ := u.ask(t, "pair", s)
			home := first[0]
			u.fails["acme/"+home] = limited(20 * time.Second)
			tried, relation := u.ask(t, "pair", s)
			if len(tried) != 2 || tried[0] != home || tried[1] == home || relation != Detour {
				t.Fatalf("%v %s", tried, relation)
			}
			away := tried[1]
			delete(u.fails, "acme/"+home)
			var seen []string
			for range 30 {
				u.clock.now = u.clock.now.Add(time.Second)
				tried, relation = u.ask(t, "pair", s)
				if len(tried) != 1 || (tried[0] == home) != (relation == AtHome) {
					t.Fatalf("%v %s", tried, relation)
				}
				if len(seen) == 0 || seen[len(seen)-1] != tried[0] {
					seen = append(seen, tried[0])
				}
			}
			if !slices.Equal(seen, []string{away, home}) {
				t.Errorf("it went to %v, with its home at %s", seen, home)
			}
		})
	}
}

// TestMoves: a session whose home is out for long, or needs a person, has a new home at once and does
// not come back.
func TestMoves(t *testing.T) {
	t.Parallel()
	for name, v := range map[string]resilience.Verdict{
		"for hours":           limited(5 * time.Hour),
		"until a person acts": {Scope: resilience.ScopeConnection, Kind: resilience.KindBilling, Quarantine: true},
	} {
		u := newUpstreams(t, strings.Replace(accounts, "STRATEGY", "round-robin", 1))
		s := Asked{Session: "s"}
		first, _ := u.ask(t, "pair", s)
		u.fails["acme/"+first[0]] = v
		tried, relation := u.ask(t, "pair", s)
		if len(tried) != 2 || relation != Settled {
			t.Errorf("%s: %v %s", name, tried, relation)
		}
		clear(u.fails)
		u.engine.Reset(resilience.Key{}, true)
		if again, relation := u.ask(t, "pair", s); again[0] != tried[1] || relation != AtHome {
			t.Errorf("%s: back to %v (%s), and its home was at %s", name, again, relation, tried[1])
		}
	}
}

// TestNoCage: with every account of the first provider out the second serves, always from one place.
func TestNoCage(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, strings.Replace(accounts, "STRATEGY", "round-robin", 1))
	s := Asked{Session: "s"}
	first, _ := u.ask(t, "pair", s)
	for _, k := range []string{"k1", "k2", "k3", "k4"} {
		u.fails["acme/"+k] = limited(time.Minute)
	}
	tried, relation := u.ask(t, "pair", s)
	if len(tried) != 5 || tried[0] != first[0] || !strings.HasPrefix(tried[4], "b") {
		t.Fatalf("%v %s", tried, relation)
	}
	for range 5 {
		if again, _ := u.ask(t, "pair", s); !slices.Equal(again, tried[4:]) {
			t.Errorf("%v after %v", again, tried)
		}
	}
	clear(u.fails)
	u.clock.now = u.clock.now.Add(2 * time.Minute)
	if back, relation := u.ask(t, "pair", s); back[0] != first[0] || relation != AtHome {
		t.Errorf("%v (%s), its home is at %v", back, relation, first)
	}
}

// TestNearest: who is at home where by rule is the same on every machine and after a restart, and a
// connection more moves only those sessions that go there.
func TestNearest(t *testing.T) {
	t.Parallel()
	text := strings.Replace(accounts, "STRATEGY", "weighted", 1)
	one, two := newUpstreams(t, text), newUpstreams(t, text)
	more := newUpstreams(t, strings.Replace(text, "  beta:", "      - {id: k5, api_key: \"acme-secret-5\"}\n  beta:", 1))
	moved := 0
	for i := range 100 {
		// Each session is alone there, so that none is crowded out.
		for _, u := range []*upstreams{one, two, more} {
			u.sessions.set(0, 0)
			u.sessions.set(500, time.Hour)
		}
		s := Asked{Session: fmt.Sprint(i)}
		a, _ := one.ask(t, "pair", s)
		b, _ := two.ask(t, "pair", s)
		c, _ := more.ask(t, "pair", s)
		if a[0] != b[0] {
			t.Errorf("session %d is at home at %s and at %s", i, a[0], b[0])
		}
		if c[0] != a[0] {
			moved++
			if c[0] != "k5" {
				t.Errorf("session %d moved from %s to %s", i, a[0], c[0])
			}
		}
	}
	if moved < 10 || moved > 30 {
		t.Errorf("%d of 100 sessions moved to one of five", moved)
	}
}

// TestSessionsSurviveReload also shows that a session whose home is gone finds another.
func TestSessionsSurviveReload(t *testing.T) {
	t.Parallel()
	text := strings.Replace(accounts, "STRATEGY", "least-busy", 1)
	u := newUpstreams(t, text)
	homes := map[string]string{}
	for i := range 40 {
		s := fmt.Sprint(i)
		tried, _ := u.ask(t, "pair", Asked{Session: s})
		homes[s] = tried[0]
	}
	next := parse(t, strings.Replace(text, "      - {id: k2, api_key: \"acme-secret-2\"}\n", "", 1))
	if err := u.engine.Configure(EngineConfig(next)); err != nil {
		t.Fatal(err)
	}
	r, err := New(next, u.engine, u.Router)
	if err != nil {
		t.Fatal(err)
	}
	u.Router = r
	for s, home := range homes {
		tried, relation := u.ask(t, "pair", Asked{Session: s})
		if home != "k2" && (tried[0] != home || relation != AtHome) || home == "k2" && relation != Settled {
			t.Errorf("session %s: %v %s, was at home at %s", s, tried, relation, home)
		}
	}
}

// TestSessionsAreForgotten bounds the memory: the oldest goes first, and all after a while.
func TestSessionsAreForgotten(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, strings.Replace(accounts, "STRATEGY", "round-robin", 1))
	for i := range 2000 {
		u.ask(t, "pair", Asked{Session: fmt.Sprint(i)})
		u.clock.now = u.clock.now.Add(time.Millisecond)
	}
	s := u.sessions
	if len(s.at) != 500 || len(s.slots) > 502 || len(s.count) != 4 {
		t.Errorf("%d sessions in %d slots, %d counts", len(s.at), len(s.slots), len(s.count))
	}
	if _, relation := u.ask(t, "pair", Asked{Session: "1999"}); relation != AtHome {
		t.Errorf("the last one is %s", relation)
	}
	u.clock.now = u.clock.now.Add(2 * time.Hour)
	if _, relation := u.ask(t, "pair", Asked{Session: "1998"}); relation != Settled || len(s.at) != 1 {
		t.Errorf("after two hours: %s, and %d are remembered", relation, len(s.at))
	}
}

// TestSessionTable compares the table with a plain one.
func TestSessionTable(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := newSessions()
		limit := rapid.IntRange(1, 5).Draw(t, "limit")
		s.set(limit, time.Minute)
		type entry struct {
			session, home uint64
			seen          time.Time
		}
		var plain []entry // oldest first
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			now = now.Add(time.Duration(rapid.IntRange(0, 20).Draw(t, "pause")) * time.Second)
			session, home := uint64(rapid.IntRange(1, 8).Draw(t, "session")), uint64(rapid.IntRange(1, 3).Draw(t, "home"))
			s.put(9, session, home, now)
			plain = slices.DeleteFunc(plain, func(e entry) bool { return e.session == session || now.Sub(e.seen) > time.Minute })
			plain = append(plain, entry{session, home, now})
			plain = plain[max(0, len(plain)-limit):]
			counts := make([]int32, 3)
			for _, e := range plain {
				counts[e.home-1]++
				if got, ok := s.home(9, e.session, now); !ok || got != e.home {
					t.Fatalf("session %d is at %d (%v), want %d", e.session, got, ok, e.home)
				}
			}
			if got := s.homes(9, []kid{{id: 1}, {id: 2}, {id: 3}}, nil); !slices.Equal(got, counts) || len(s.at) != len(plain) {
				t.Fatalf("counts %v, want %v; %d are remembered, want %d", got, counts, len(s.at), len(plain))
			}
		}
	})
}

// TestExplainSession: an explanation knows the session's way, and does not make it a home.
func TestExplainSession(t *testing.T) {
	t.Parallel()
	u := newUpstreams(t, strings.Replace(accounts, "STRATEGY", "random", 1))
	route, err := u.Resolve(catalog.OpenAI, "pair")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		a := Asked{Session: fmt.Sprint(i % 10)}
		explained, relation := Explain(route, Question{Asked: a}, u.clock.now)
		again, _ := Explain(route, Question{Asked: a}, u.clock.now)
		if diff := cmp.Diff(explained, again); diff != "" {
			t.Errorf("explaining has changed something: %s", diff)
		}
		if i < 10 && len(u.sessions.at) != i {
			t.Errorf("explaining made a home")
		}
		if tried, r := u.ask(t, "pair", a); tried[0] != explained[0].Connection || r != relation {
			t.Errorf("%d: %s (%s) was explained, %v (%s) tried", i, explained[0].Connection, relation, tried, r)
		}
	}
}
