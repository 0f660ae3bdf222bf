package torture

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/internal/route"
	"omniroute/resilience"
	"omniroute/store/memory"
)

var quiet = slog.New(slog.NewTextHandler(io.Discard, nil))

// node is one gateway: engine, router and waiting rooms, over several lives.
type node struct {
	w       *world
	id      int
	number  int // of the variant
	variant *variant
	last    map[resilience.Key]*variant // which variant was the last one to have a target that is gone
	engine  *resilience.Engine
	router  *route.Router
	lobby   *failover.Lobby
	polling time.Duration
	life    int

	journal *journal // its own store; nil in a cluster
	way     *wire    // to the shared one; nil else

	gates    map[resilience.RecordID]*gate    // as the store was told
	gone     map[resilience.RecordID]int      // when a gate was last cleared
	operator map[resilience.Key]time.Duration // until when
	wiped    map[resilience.Key]int           // when an operator last reset a key
	permits  []*permit                        // in flight
	flights  []*flight                        // on their way
	now      *moment
	blind    bool // the store failed: what happened meanwhile is not known
	dials    map[string]*dials
	answered int // ord of the last answer of any kind
	open     map[resilience.Key]time.Duration
	hedges   map[string]*hedging
	released []letGo
	targets  []*resilience.Target // of the variant's keys
	learned  bool                 // a model has refused something for its length, so that it is asked for less
	moved    bool                 // places were handed over by a reload

	credentialed map[resilience.Key]int // when a connection's secret was last changed
	dropped      map[resilience.Key]int // when a reload last took a connection away
	joinedAt     time.Duration
	apart        bool                    // it has lost the others
	unheard      map[resilience.Key]bool // what was found to be well meanwhile
	unsure       bool                    // whether a dial failure was heard is not certain
	seen         map[resilience.Key]seen
	counts       counts
	outage       *outage            // of the store
	scouts       map[string]*flight // by plan: who was let go last to find out
}

func newNode(w *world, id int) *node {
	n := &node{w: w, id: id, operator: map[resilience.Key]time.Duration{}, counts: newCounts(), unheard: map[resilience.Key]bool{}}
	if w.plot.nodes > 1 {
		n.way = &wire{w: w, n: n, node: w.hub.Node(fmt.Sprint("node-", id))}
	} else {
		n.journal = &journal{clock: &w.clock}
	}
	n.start(0)
	n.step("", func() {})
	n.beat()
	return n
}

// start begins a life.
func (n *node) start(number int) {
	n.last = map[resilience.Key]*variant{}
	n.configure(number)
	n.life++
	n.polling = -1
	n.lobby = failover.NewLobby()
	n.permits, n.flights = nil, nil
	n.gates, n.gone, n.wiped = map[resilience.RecordID]*gate{}, map[resilience.RecordID]int{}, map[resilience.Key]int{}
	n.learned = false
	n.counts.waits, n.outage, n.scouts = map[resilience.Key]int{}, nil, map[string]*flight{}
	n.released, n.moved, n.unsure, n.credentialed, n.joinedAt, n.seen = nil, false, false, map[resilience.Key]int{}, n.w.mono, map[resilience.Key]seen{}
	n.dropped = map[resilience.Key]int{}
	n.dials, n.answered, n.open, n.hedges = map[string]*dials{}, 0, map[resilience.Key]time.Duration{}, map[string]*hedging{}
	chance := rand.New(rand.NewPCG(n.w.seed, 1000+uint64(n.life)*16+uint64(n.id)))
	o := resilience.Options{Config: n.variant.engine, Now: n.w.clock.now, Random: chance.Float64, Logger: quiet}
	if n.journal != nil {
		o.Store = n.journal
	} else {
		o.Store = n.way
	}
	var err error
	if n.engine, err = resilience.New(o); err != nil {
		panic(err)
	}
	n.resolve()
	life := n.life
	n.engine.OnOpening(func(provider string) {
		if n.life == life {
			n.lobby.Changed(provider, n.w.clock.now())
			n.pollAt(n.w.mono)
		}
	})
	n.engine.Subscribe(func(ev resilience.Event) {
		if n.life != life {
			return
		}
		if n.now != nil {
			n.now.events = append(n.now.events, ev)
		}
		for _, tell := range n.lobby.Heard(ev) {
			tell()
		}
	})
	if n.router, err = route.NewSeeded(n.variant.cfg, n.engine, nil, n.w.seed); err != nil {
		panic(err)
	}
}

// resolve keeps handles, as a plan does.
func (n *node) resolve() {
	n.targets = n.targets[:0]
	for _, k := range n.variant.keys {
		n.targets = append(n.targets, n.engine.Target(k))
	}
}

// later lets f happen after d, unless the node has begun another life by then.
func (n *node) later(d time.Duration, f func()) {
	life := n.life
	n.w.in(wholeMs(d), func() {
		if n.life == life {
			f()
		}
	})
}

// pollAt polls the lobby at t, or earlier.
func (n *node) pollAt(t time.Duration) {
	if n.polling >= 0 && n.polling <= t {
		return
	}
	n.polling = t
	n.later(t-n.w.mono, func() {
		if n.polling != t {
			return // polled earlier
		}
		n.polling = -1
		n.poll()
	})
}

// sync is what a started engine does in the background.
func (n *node) sync() error {
	return n.engine.Sync(context.Background())
}

// journal is a durable store: it remembers when it was told what, so that a crash can lose the last
// of it.
type journal struct {
	entries []entry
	base    map[resilience.RecordID]resilience.Record
	clock   *clock
	down    bool
	news    []resilience.Change // since they were last taken
}

type entry struct {
	at      time.Duration
	changes []resilience.Change
}

var errDown = errors.New("the store is down")

func (j *journal) Load(context.Context) ([]resilience.Record, error) {
	if j.down {
		return nil, errDown
	}
	return slices.Collect(maps.Values(j.stored())), nil
}

func (j *journal) Apply(_ context.Context, changes []resilience.Change) error {
	if j.down {
		return errDown
	}
	j.entries = append(j.entries, entry{j.clock.mono, changes})
	j.news = append(j.news, changes...)
	return nil
}

// stored is what stands.
func (j *journal) stored() map[resilience.RecordID]resilience.Record {
	all := maps.Clone(j.base)
	if all == nil {
		all = map[resilience.RecordID]resilience.Record{}
	}
	for _, e := range j.entries {
		for _, c := range e.changes {
			if c.Delete {
				delete(all, c.Record.ID())
			} else {
				all[c.Record.ID()] = c.Record
			}
		}
	}
	return all
}

// lose forgets what was written after a time.
func (j *journal) lose(after time.Duration) {
	j.entries = slices.DeleteFunc(j.entries, func(e entry) bool { return e.at > after })
	j.base, j.entries, j.news = j.stored(), nil, nil
}

// wire is a node's way to the shared store, and the others' news' way to it.
type wire struct {
	w    *world
	n    *node
	node *memory.Node
	cut  bool
}

func (x *wire) Node() string { return x.node.Node() }

func (x *wire) Load(ctx context.Context) ([]resilience.Record, error) {
	if x.cut {
		return nil, errDown
	}
	return x.node.Load(ctx)
}

func (x *wire) Apply(ctx context.Context, c []resilience.Change) error { return errors.New("not used") }

func (x *wire) Changes(ctx context.Context, since int64) (resilience.Changes, error) {
	if x.cut {
		return resilience.Changes{}, errDown
	}
	return x.node.Changes(ctx, since)
}

// Merge also tells the others, some time later.
func (x *wire) Merge(ctx context.Context, c resilience.Contribution) (resilience.Merged, error) {
	if x.cut {
		return resilience.Merged{}, errDown
	}
	before, _ := x.node.Beat(ctx, resilience.Beat{})
	m, err := x.fenced(ctx, c, func() (resilience.Merged, error) { return x.node.Merge(ctx, c) })
	if err != nil {
		return m, err
	}
	x.freed(c.Free)
	x.voided(m.Fenced)
	changes, _ := x.node.Changes(ctx, before.Revision)
	news := resilience.News{Life: m.Life, From: before.Revision, To: changes.Revision, Gates: changes.Gates}
	for _, h := range c.Free {
		news.Freed = append(news.Freed, h.Gate)
	}
	x.spread(news)
	return m, nil
}

func (x *wire) Listen(ctx context.Context, hear func(resilience.News)) error { return errDown }

// spread brings news to every node within 100 ms.
func (x *wire) spread(news resilience.News) {
	if len(news.Gates)+len(news.Freed)+len(news.Wanted) == 0 {
		return
	}
	for i, n := range x.w.nodes {
		n.later(time.Duration(20+30*i)*time.Millisecond, func() {
			if !n.way.cut {
				n.step("hears the news", func() { n.engine.Hear(news) })
			}
		})
	}
}

// beat keeps a node in touch with the others until the story is over.
func (n *node) beat() {
	if n.way == nil || n.w.mono > n.w.end {
		return
	}
	pause := 900 * time.Millisecond
	if q := n.w.queue; len(q) > 0 {
		pause = max(pause, (q[0].at-n.w.mono)/20) // nothing happens for long
	}
	n.later(pause, func() {
		n.step("", func() {})
		n.beat()
	})
}
