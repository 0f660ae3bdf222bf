package incident

import (
	"fmt"
	"math/rand/v2"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// epoch is when every scenario begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one run of a scenario.
type world struct {
	queue
	Scenario
	rng       *rand.Rand
	engine    *resilience.Engine
	lobby     *failover.Lobby
	polling   time.Duration // when the lobby is polled next, -1: not
	upstreams map[string]*upstream
	plans     []plan
	live      int // requests on their way
	result    *Result
}

// plan is a route with the turn of each entry's connections.
type plan struct {
	*failover.Plan
	entries [][]int // indexes of the plan's targets, by entry
	turn    int
}

// Run plays a scenario. The same seed gives the same result. An error says what is wrong with the
// scenario.
func Run(s Scenario, seed uint64) (*Result, error) {
	s, err := s.complete()
	if err != nil {
		return nil, err
	}
	w := &world{Scenario: s, rng: rand.New(rand.NewPCG(seed, 0)), lobby: failover.NewLobby(), polling: -1,
		upstreams: map[string]*upstream{}, result: newResult()}
	providers := map[string]resilience.Provider{}
	for i, p := range s.Providers {
		rp := resilience.Provider{}
		for _, c := range p.Connections {
			rp.Connections = append(rp.Connections, resilience.Connection{ID: c})
		}
		providers[p.Name] = rp
		w.upstreams[p.Name] = &upstream{Provider: p, rng: rand.New(rand.NewPCG(seed, uint64(i)+1))}
	}
	w.engine, err = resilience.New(resilience.Options{
		Config: resilience.Config{Policy: s.Policy, Providers: providers},
		Now:    func() time.Time { return w.clock() },
	})
	if err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	if err := w.plan(); err != nil {
		return nil, fmt.Errorf("scenario %q: %w", s.Name, err)
	}
	w.engine.OnOpening(func(provider string) {
		w.lobby.Changed(provider, w.clock())
		w.pollAt(w.now)
	})
	w.engine.Subscribe(w.heard)
	w.at(w.gap(), w.arrive)
	for w.step() {
		if w.live == 0 && w.now > s.Length {
			break // what is left are timers
		}
	}
	w.result.complete()
	return w.result, nil
}

func (w *world) clock() time.Time { return epoch.Add(w.now) }

// plan resolves the routes.
func (w *world) plan() error {
	type model struct{ provider, name string }
	streamed, whole := map[model]*failover.Latency{}, map[model]*failover.Latency{}
	for _, r := range w.Routes {
		p := failover.Plan{Name: r.Name, Limits: w.Limits, Hedge: w.Hedge, Ordered: true}
		var entries [][]int
		for i, e := range r.Entries {
			m := model{e.Provider, e.Model}
			if streamed[m] == nil {
				streamed[m], whole[m] = new(failover.Latency), new(failover.Latency)
			}
			var siblings []int
			for _, c := range w.upstreams[e.Provider].Connections {
				siblings = append(siblings, len(p.Targets))
				p.Targets = append(p.Targets, failover.Target{
					Target: w.engine.Target(resilience.Key{Provider: e.Provider, Connection: c, Model: e.Model}),
					Entry:  i, FirstToken: w.FirstToken, Streamed: streamed[m], Whole: whole[m],
				})
			}
			entries = append(entries, siblings)
		}
		made, err := failover.NewPlan(p)
		if err != nil {
			return err
		}
		w.plans = append(w.plans, plan{Plan: made, entries: entries})
	}
	return nil
}

// order is the plan's for one more request: the connections of each entry take turns.
func (p *plan) order() failover.Order {
	o := make(failover.Order, 0, len(p.Targets))
	for _, siblings := range p.entries {
		for i := range siblings {
			o = append(o, siblings[(i+p.turn)%len(siblings)])
		}
	}
	p.turn++
	return o
}

// gap is the time from one request to the next.
func (w *world) gap() time.Duration {
	mean := float64(time.Second) / w.Rate
	if w.Even {
		return time.Duration(mean)
	}
	return time.Duration(mean * w.rng.ExpFloat64())
}

func (w *world) arrive() {
	if w.now >= w.Length {
		return
	}
	p := &w.plans[w.rng.IntN(len(w.plans))]
	f := &flight{w: w, route: p.Name, arrived: w.now, req: failover.NewRequest(p.Plan, p.order(), !w.Whole)}
	w.live++
	f.do(failover.Event{Type: failover.Begin})
	w.at(w.now+p.Limits.Deadline, func() { f.do(failover.Event{Type: failover.TimedOut}) })
	w.at(w.now+w.gap(), w.arrive)
}

// pollAt polls the lobby at t, or earlier.
func (w *world) pollAt(t time.Duration) {
	if w.polling >= 0 && w.polling <= t {
		return
	}
	w.polling = t
	w.at(t, func() {
		if w.polling != t {
			return // polled earlier
		}
		w.polling = -1
		let, again := w.lobby.Poll(w.clock())
		if !again.IsZero() {
			w.pollAt(again.Sub(epoch))
		}
		for _, r := range let {
			r.Wake()
		}
	})
}

// heard takes in what the engine says.
func (w *world) heard(ev resilience.Event) {
	for _, tell := range w.lobby.Heard(ev) {
		w.at(w.now, tell)
	}
	w.result.heard(ev, w.now)
}
