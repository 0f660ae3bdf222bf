package torture

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// reload replaces the configuration under the requests that are on their way.
func (n *node) reload(number int) {
	if number >= len(n.w.setup.variants) {
		return
	}
	n.step(fmt.Sprintf("is reloaded with configuration %d", number), func() {
		n.now.configured = true
		n.configured(number)
		if err := n.engine.Configure(n.variant.engine); err != nil {
			panic(err)
		}
		router, err := route.New(n.variant.cfg, n.engine, n.router)
		if err != nil {
			panic(err)
		}
		n.router = router
		n.resolve()
	})
}

func (n *node) configured(number int) {
	for _, k := range n.w.setup.variants[number].keys {
		k.Model = ""
		if old := n.variant.credentialOf(k); old != "" && old != n.w.setup.variants[number].credentialOf(k) {
			n.credentialed[k] = n.w.ord
		}
	}
	next := n.w.setup.variants[number]
	for _, k := range n.variant.keys {
		if !next.has(k) {
			n.dropped[account1(k)] = n.w.ord
		}
	}
	for _, p := range n.permits {
		if !next.has(p.key) || next.domainOf(p.key) != n.variant.domainOf(p.key) {
			p.hazy = true // it reports to gates that began anew
		}
		p.called.follow(next)
	}
	n.configure(number)
	n.moved, n.unsure = true, true
	for _, o := range n.w.nodes { // what nodes share they may all lose
		for k := range o.operator {
			if !n.variant.has(resilience.Key{Provider: k.Provider, Connection: k.Connection}) {
				delete(o.operator, k)
			}
		}
	}
}

// configure takes over a variant, and remembers where targets were that it may not have.
func (n *node) configure(number int) {
	n.number, n.variant = number, n.w.setup.variants[number]
	for _, k := range n.variant.keys {
		n.last[k] = n.variant
	}
}

// crash ends a life without a word and begins the next from what was stored.
func (n *node) crash(loss time.Duration, number int, r *rand.Rand) {
	w := n.w
	w.say("node %d crashes, loses the last %v and comes back with configuration %d", n.id, loss, number)
	if n.journal != nil {
		n.journal.lose(w.mono - loss)
		n.journal.down = false
	}
	n.blind = false
	n.start(number)
	n.operator = map[resilience.Key]time.Duration{}
	n.restored()
	w.ord += 2
	n.now = &moment{restarted: true}
	m := n.now
	err := n.sync()
	if n.way == nil {
		n.learn(m, err)
	}
	n.now = nil
	w.note(n, m)
	n.check(m)
	n.remember(m)
	n.beat()
}

func (n *node) storeDown(down bool) {
	if n.journal == nil || n.journal.down == down {
		return
	}
	n.w.say("the store of node %d fails: %v", n.id, down)
	n.journal.down = down
}

func (n *node) cut(off bool) {
	if n.way == nil || n.way.cut == off {
		return
	}
	n.w.say("node %d is cut off: %v", n.id, off)
	n.way.cut = off
	n.later(0, func() { n.step("", func() {}) })
}

// readAll asks for everything that can be asked for.
func (n *node) readAll(key resilience.Key, r *rand.Rand) {
	n.step("is read from", func() {
		m := n.now
		m.reading = true
		before := n.view()
		n.engine.Status()
		n.engine.Overview()
		n.engine.Events(5)
		n.engine.Cluster()
		n.engine.AllCircuitBreakerStatuses()
		n.engine.AllModelLockouts()
		n.engine.IsReady(resilience.Key{Provider: key.Provider, Connection: "nobody", Model: "unheard"})
		n.engine.ResolveComboTargets(n.variant.combos[0])
		n.router.Occupations()
		n.router.Headroom(n.w.clock.now())
		for _, k := range n.variant.keys {
			t := n.engine.Target(k)
			t.Check()
			t.Standing(true)
			t.Suspected()
			t.Sound()
		}
		if after := n.view(); after != before {
			n.w.broke("A3 reads change nothing", "before: %s\nafter: %s", before, after)
		}
	})
}

// view is all that can be seen at once.
func (n *node) view() string {
	s := n.engine.Status()
	s.Now = resilience.Timestamp{}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	for _, k := range n.variant.keys {
		t := n.engine.Target(k)
		x, out, probe := t.Standing(false)
		b = fmt.Appendf(b, " %v %v %v %v %v;", x.Layer, x.Until.IsZero(), x.RetryAfter, out, probe)
	}
	for _, name := range n.variant.combos {
		to, err := n.router.Resolve("openai", name)
		if err != nil {
			panic(err)
		}
		all, _ := route.Explain(to, route.Question{Asked: route.Asked{Stream: true, Session: "session 1"}, Ask: failover.Ask{Bytes: 100}}, n.w.clock.now())
		for _, c := range all {
			b = fmt.Appendf(b, " %s/%s/%s %v;", c.Provider, c.Connection, c.Model, c.Eligible)
		}
	}
	return string(b)
}

// heal ends all trouble and wants everything back in service: attempts that hung have lost their hold,
// every upstream answers, and the operator has taken back his word.
func (n *node) heal() {
	w := n.w
	w.say("all is well again with node %d", n.id)
	for _, k := range slices.SortedFunc(maps.Keys(w.excluded), byKey) {
		n.engine.Include(k)
	}
	clear(n.operator)
	for _, p := range n.variant.cfg.Providers {
		if n.variant.policyOf(resilience.Key{Provider: p.ID}).Recheck.After < 0 {
			n.reset(resilience.Key{Provider: p.ID}, false) // else nobody would ever look after a quarantine
		}
	}
	for range 400 {
		n.step("", func() {})
		soonest, well := never, true
		for _, k := range n.variant.keys {
			t := n.engine.Target(k)
			for range 4 {
				real, err := t.AcquireAlone()
				if err != nil && n.way != nil {
					n.step("", func() {}) // it asks the others for the right to probe
					w.pass(200 * time.Millisecond)
					real, err = t.AcquireAlone()
				}
				if err != nil {
					break
				}
				n.step("", func() {
					p := &permit{n: n, key: k, begun: w.ord + 1, asProbe: true, bare: true, settled: false}
					n.heard(p, hasContent, resilience.Verdict{})
					n.heard(p, success, resilience.Verdict{})
					real.FirstContent()
					real.Success()
				})
			}
			if x, out := t.Check(); out {
				well = false
				if x.RetryAfter > 0 {
					soonest = min(soonest, x.RetryAfter)
				}
			}
		}
		if well && !n.engine.LocalOutage() {
			n.sound()
			return
		}
		pause := n.variant.engine.Policy.Defaults().Recheck.Alone
		if soonest < pause {
			pause = soonest
		}
		w.pass(max(wholeMs(pause), time.Millisecond))
		if n.way != nil {
			for _, o := range w.nodes {
				o.step("", func() {})
			}
		}
	}
	n.stuck()
}
