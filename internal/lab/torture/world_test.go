package torture

import (
	"container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"omniroute/resilience"
	"omniroute/store/memory"
)

// world is one run of a plot.
type world struct {
	clock
	*plot
	queue    queue
	count    uint64
	hub      *memory.Hub
	nodes    []*node
	ord      int // numbers the moments: what happened before what
	attempts uint64
	told     []string // the story, where it is wanted
	tell     bool
	moments  int
	end      time.Duration // of the story

	excluded map[resilience.Key]bool // by an operator, at any time

	// For the laws of clusters: when something was last evidence, of a connection or a provider.
	refuted map[resilience.Key]int
	// The same as a time.
	refutedLast map[resilience.Key]time.Duration
	failed      map[string]int
	blamed      map[resilience.Key]int   // when a connection was last said to have failed
	lastNews    map[string]time.Duration // by provider
	lastReturn  time.Duration            // of a node that had lost the others
	lent        map[resilience.RecordID]lent
}

// broken is a law that did not hold.
type broken struct{ law, what string }

func (w *world) broke(law, format string, args ...any) {
	panic(broken{law, fmt.Sprintf(format, args...)})
}

func (w *world) say(format string, args ...any) {
	if w.tell {
		w.told = append(w.told, fmt.Sprintf("%12v  %s", w.mono, fmt.Sprintf(format, args...)))
	}
}

// run plays a plot to its end and returns the law that broke, nil when all held.
func (p *plot) run(tell bool) (w *world, bad *broken) {
	w = &world{plot: p, tell: tell, refuted: map[resilience.Key]int{}, refutedLast: map[resilience.Key]time.Duration{}, failed: map[string]int{}, blamed: map[resilience.Key]int{}, excluded: map[resilience.Key]bool{}, lastNews: map[string]time.Duration{}, lent: map[resilience.RecordID]lent{}}
	defer func() {
		switch x := recover().(type) {
		case nil:
		case broken:
			bad = &x
		default:
			if !tell {
				bad = &broken{"no panic", fmt.Sprint(x)}
				return
			}
			panic(x)
		}
	}()
	w.hub = memory.NewHub(w.steady) // the nodes' clocks jump, the shared store's does not
	for i := range p.nodes {
		w.nodes = append(w.nodes, newNode(w, i))
	}
	for _, s := range p.steps {
		w.end = max(w.end, s.at+20*time.Second)
		w.at(s.at, func() { w.do(s) })
	}
	for w.next() {
	}
	w.mend()
	for _, n := range w.nodes {
		n.heal()
	}
	return w, nil
}

// mend lets stores and nodes find each other again.
func (w *world) mend() {
	for _, n := range w.nodes {
		if n.journal != nil {
			n.journal.down = false
		} else {
			n.way.cut = false
		}
		for k := range w.excluded {
			n.engine.Include(k)
		}
	}
	for range 3 {
		for _, n := range w.nodes {
			clear(n.operator)
			n.step("", func() {})
		}
	}
	for w.next() {
	}
}

// do carries out one step.
func (w *world) do(s step) {
	r := rand.New(rand.NewPCG(s.seed, 1))
	n := w.nodes[r.IntN(len(w.nodes))]
	if busy := w.probing(); busy != nil && (s.what == part || s.what == crash) && r.IntN(3) > 0 {
		n = busy // what a node was about to find out is where the others may go wrong
	}
	keys := n.variant.keys
	key := keys[r.IntN(len(keys))]
	switch s.what {
	case request:
		n.begin(r)
	case bare:
		n.take(key, r)
	case told:
		n.report(key, r)
	case read:
		n.readAll(key, r)
	case exclude:
		n.exclude(wider(key, r), r)
	case include:
		n.include(r)
	case reset:
		n.reset(wider(key, r), r.IntN(4) == 0)
	case mark:
		kinds := []resilience.Kind{resilience.KindRateLimit, resilience.KindAuth, resilience.KindQuotaExhausted}
		n.mark(key, kinds[r.IntN(3)])
	case reload:
		n.reload(r.IntN(usual))
	case crash:
		other := n.number
		if r.IntN(3) == 0 {
			other = r.IntN(usual)
		}
		n.crash(ms(r, 250), other, r)
	case leap:
		d := time.Duration(r.NormFloat64() * float64([]time.Duration{time.Second, time.Hour}[r.IntN(2)])).Truncate(time.Millisecond)
		w.say("the wall clock jumps by %v", d)
		w.jump += d
	case storeFails, storeMends:
		n.storeDown(s.what == storeFails)
	case part, join:
		n.cut(s.what == part)
	case stubborn:
		n.stubborn(key, r)
	case belated:
		n.belated(key, r)
	case flicker:
		n.flicker(key, r)
	case split:
		n.split(key, r)
	case discord:
		n.discord(key, r)
	case estranged:
		n.estranged(key, r)
	}
}

// probing returns the first node of several with a probe in flight.
func (w *world) probing() *node {
	for _, n := range w.nodes {
		if n.way != nil && !n.way.cut && slices.ContainsFunc(n.permits, func(p *permit) bool { return p.asProbe && !p.settled && !p.content }) {
			return n
		}
	}
	return nil
}

// wider is a key that may leave out its tail.
func wider(k resilience.Key, r *rand.Rand) resilience.Key {
	switch r.IntN(3) {
	case 0:
		k.Model = ""
	case 1:
		k.Connection, k.Model = "", ""
	}
	return k
}

// queue holds what is to happen, in the order of its time and then of its entry.
type queue []item

type item struct {
	at time.Duration
	n  uint64
	do func()
}

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].n < q[j].n
}
func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *queue) Push(x any)   { *q = append(*q, x.(item)) }
func (q *queue) Pop() any {
	old := *q
	x := old[len(old)-1]
	*q = old[:len(old)-1]
	return x
}

// at lets f happen at t, or now if that has passed.
func (w *world) at(t time.Duration, f func()) {
	w.count++
	heap.Push(&w.queue, item{max(t, w.mono), w.count, f})
}

// in is at, counted from now.
func (w *world) in(d time.Duration, f func()) { w.at(w.mono+d, f) }

// wholeMs is a duration in whole milliseconds, rounded up: everything happens at such.
func wholeMs(d time.Duration) time.Duration {
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}

// most bounds a world, so that a loop in it is a failure and not a hang.
const most = 20_000

// pass lets time go by, with all that happens in it.
func (w *world) pass(d time.Duration) {
	end := w.mono + d
	for len(w.queue) > 0 && w.queue[0].at <= end {
		w.next()
	}
	w.mono = end
}

func (w *world) next() bool {
	if len(w.queue) == 0 {
		return false
	}
	if w.moments++; w.moments > most {
		w.broke("X3 bounded", "the world does not come to an end")
	}
	x := heap.Pop(&w.queue).(item)
	w.mono = max(w.mono, x.at)
	x.do()
	return true
}
