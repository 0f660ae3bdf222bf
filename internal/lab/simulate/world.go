package simulate

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"omniroute/failover"
	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
	"omniroute/store/memory"
)

// epoch is when every run begins.
var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// world is one run.
type world struct {
	queue
	file      *File
	providers map[string]upstream
	nodes     []*node
	hub       *memory.Hub // what the nodes share, nil where they do not
	live      int         // requests on their way
	tally     *tally
}

// node is one gateway.
type node struct {
	w       *world
	engine  *resilience.Engine
	router  *route.Router
	lobby   *failover.Lobby
	polling time.Duration // when the lobby is polled next, -1: not
}

// upstream is a provider as the world meets it.
type upstream interface {
	// receive takes in an attempt and says what becomes of it.
	receive(up *route.Upstream, key resilience.Key, stream bool, output float64, now time.Duration) fate
}

// Run plays the schedule. The same seed gives the same report.
func (f *File) Run() (*Report, error) {
	rules, err := route.Classifier(f.cfg)
	if err != nil {
		return nil, err
	}
	verdicts := &faults{rules: rules, known: map[faultKey]*effect{}}
	w, err := f.world(func(i int, p *config.Provider) (upstream, error) {
		u := f.Upstreams[p.ID]
		if u.First.Median == 0 { // not in the file
			if err := f.checkUpstream(p.ID, &u, "$.upstreams"); err != nil {
				return nil, err
			}
		}
		return &provider{Upstream: u, rng: rand.New(rand.NewPCG(f.Seed, uint64(i)+1)), faults: verdicts, windows: map[window]int{}}, nil
	})
	if err != nil {
		return nil, err
	}
	for i := range f.Traffic {
		w.begin(&f.Traffic[i], uint64(i))
	}
	return w.run(), nil
}

// world makes a world in which nothing happens yet.
func (f *File) world(provide func(i int, p *config.Provider) (upstream, error)) (*world, error) {
	w := &world{file: f, providers: map[string]upstream{}, tally: newTally(f)}
	if f.Shared {
		w.hub = memory.NewHub(w.clock)
	}
	for i, p := range f.cfg.Providers {
		var err error
		if w.providers[p.ID], err = provide(i, p); err != nil {
			return nil, err
		}
	}
	for i := range f.Nodes {
		n, err := w.node(uint64(i))
		if err != nil {
			return nil, err
		}
		w.nodes = append(w.nodes, n)
	}
	return w, nil
}

// run lets everything happen.
func (w *world) run() *Report {
	for w.step() {
		if w.live == 0 && w.now > time.Duration(w.file.Length) {
			break // what is left are timers
		}
	}
	return w.tally.report()
}

func (w *world) clock() time.Time { return epoch.Add(w.now) }

func (w *world) node(number uint64) (*node, error) {
	n := &node{w: w, lobby: failover.NewLobby(), polling: -1}
	var err error
	chance := rand.New(rand.NewPCG(w.file.Seed, 2<<32+number))
	o := resilience.Options{Config: route.EngineConfig(w.file.cfg), Now: w.clock, Random: chance.Float64, Logger: slog.New(slog.DiscardHandler)}
	if w.hub != nil {
		o.Store = w.hub.Node(fmt.Sprintf("node %d", number+1))
	}
	if n.engine, err = resilience.New(o); err != nil {
		return nil, fmt.Errorf("%s: the configuration is not good: %w", w.file.path, err)
	}
	if w.hub != nil {
		every := time.Duration(w.file.Propagation)
		w.at(every*time.Duration(number)/time.Duration(w.file.Nodes), func() { n.share(every) })
	}
	if n.router, err = route.NewSeeded(w.file.cfg, n.engine, nil, w.file.Seed+number); err != nil {
		return nil, fmt.Errorf("%s: the configuration is not good: %w", w.file.path, err)
	}
	n.engine.OnOpening(func(provider string) {
		n.lobby.Changed(provider, w.clock())
		n.pollAt(w.now)
	})
	n.engine.Subscribe(func(ev resilience.Event) {
		for _, tell := range n.lobby.Heard(ev) {
			w.at(w.now, tell)
		}
		w.tally.heard(number, ev, w.now)
	})
	return n, nil
}

// pollAt polls the lobby at t, or earlier.
func (n *node) pollAt(t time.Duration) {
	if n.polling >= 0 && n.polling <= t {
		return
	}
	n.polling = t
	n.w.at(t, func() {
		if n.polling != t {
			return // polled earlier
		}
		n.polling = -1
		let, again := n.lobby.Poll(n.w.clock())
		if !again.IsZero() {
			n.pollAt(again.Sub(epoch))
		}
		for _, r := range let {
			r.Wake()
		}
	})
}

// share lets the node tell the others what it knows and hear what they do, every so often.
func (n *node) share(every time.Duration) {
	if err := n.engine.Sync(context.Background()); err != nil {
		panic(err) // a hub in memory does not fail
	}
	n.w.at(n.w.now+every, func() { n.share(every) })
}

// source makes the requests of one entry of the traffic.
type source struct {
	*Traffic
	w      *world
	rng    *rand.Rand
	number uint64
}

func (w *world) begin(t *Traffic, number uint64) {
	s := &source{Traffic: t, w: w, rng: rand.New(rand.NewPCG(w.file.Seed, 1<<32+number)), number: number}
	w.at(time.Duration(t.From)+s.gap(), s.arrive)
}

// gap is the time from one request to the next.
func (s *source) gap() time.Duration {
	gap := float64(time.Second) / s.Rate
	if s.Arrivals != "even" {
		gap *= s.rng.ExpFloat64()
	}
	return time.Duration(min(gap, float64(2*maxLength))) // one that never comes must not overflow
}

// arrive makes one request. All that is drawn for it is drawn here, so that two configurations are
// asked the same.
func (s *source) arrive() {
	w := s.w
	if w.now >= time.Duration(s.To) {
		return
	}
	r := s.rng
	f := &flight{
		w: w, n: w.nodes[r.IntN(len(w.nodes))], arrived: w.now, stream: r.Float64() < *s.Stream,
		prompt: drawn(r, s.Prompt), output: drawn(r, s.Output),
	}
	session, leaves, patience := r.Uint64(), r.Float64() < s.Leave, seconds(drawn(r, s.Patience))
	asked := route.Asked{Stream: f.stream}
	if s.Sessions > 0 {
		asked.Session = fmt.Sprintf("traffic %d session %d", s.number, session%uint64(s.Sessions))
	}
	w.at(w.now+s.gap(), s.arrive)
	f.begin(catalog.OpenAI, s.Model, asked)
	if leaves {
		w.at(w.now+patience, f.leave)
	}
}

// begin sends a request on its way.
func (f *flight) begin(d catalog.Dialect, model string, asked route.Asked) {
	to, err := f.n.router.Resolve(d, model)
	if err != nil {
		panic(err) // the name was checked
	}
	f.route = to
	if f.w.file.Naive {
		f.w.live++
		(&naive{flight: f}).next()
		return
	}
	f.picker = to.Picker(asked)
	f.req = failover.NewRequest(to.Plan, f.picker, f.stream).For(failover.Ask{
		Bytes: int64(f.prompt * 4), Estimate: func() failover.Needs {
			return failover.Needs{Input: int64(f.prompt), Output: int64(f.output)}
		},
	})
	f.w.live++
	f.do(failover.Event{Type: failover.Begin})
	if !f.over {
		f.w.at(f.w.now+to.Plan.Limits.Deadline, func() { f.do(failover.Event{Type: failover.TimedOut}) })
	}
}

// dialectOf returns the dialect of that name, and the usual one where a recording has none.
func dialectOf(name string) catalog.Dialect {
	for _, d := range catalog.Dialects() {
		if string(d) == name {
			return d
		}
	}
	return catalog.OpenAI
}
