package cluster

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"omniroute/e2e/harness"
	"omniroute/internal/redistest"
)

const trips = 200

// K1: a trip on one node turns traffic away on the others within 500 ms. What the machine itself
// needs until the tripping node's own event arrives is measured beside it and does not count, and
// of three rounds one is enough: a machine that is busy with something else makes it later, never sooner.
func TestK1TripsSpread(t *testing.T) {
	server, u := redistest.Start(t), newUpstream(t)
	nodes := start(t, u, "relay: {max_wait: 0s, patience: 0s}", server.Addr, server.Addr, server.Addr)
	u.set("key-q", "429")
	var heard []<-chan event
	for _, n := range nodes {
		heard = append(heard, n.events())
	}
	done := 0
	for round := 1; ; round++ {
		late := spread(t, nodes, heard, done)
		if done += trips; late <= 500*time.Millisecond {
			break
		}
		if round == 3 {
			t.Errorf("the others learn it in %v more than the node itself at the 99th percentile", late)
			break
		}
	}
	calls := u.callsOf("key-q")
	for i := range done {
		if code, _ := nodes[(i+1)%len(nodes)].ask(fmt.Sprintf("q/model-%d", i)); code != 429 {
			t.Errorf("trip %d: %d", i, code)
		}
	}
	if more := len(u.callsOf("key-q")) - len(calls); more != 0 || len(calls) != done {
		t.Errorf("%d upstream calls for %d trips, %d of other nodes after them", len(calls), done, more)
	}
}

// spread makes trips from a number on, and returns how much later than the node itself the others learn of them.
func spread(t *testing.T, nodes []*node, heard []<-chan event, from int) (late time.Duration) {
	t.Helper()
	var own, others []time.Duration
	for i := from; i < from+trips; i++ {
		at, model := i%len(nodes), fmt.Sprintf("model-%d", i)
		begun := time.Now()
		if code, answer := nodes[at].ask("q/" + model); code != 429 {
			t.Fatalf("%d %s", code, answer)
		}
		for j, events := range heard {
			took := arrival(t, events, model).Sub(begun)
			if j == at {
				own = append(own, took)
			} else {
				others = append(others, took)
			}
		}
	}
	slices.Sort(own)
	slices.Sort(others)
	at := func(d []time.Duration, part int) time.Duration {
		return d[len(d)*part/100].Round(time.Millisecond / 10)
	}
	t.Logf("%d trips: on the node itself p50 %v, p99 %v; on the others p50 %v, p99 %v", trips, at(own, 50), at(own, 99), at(others, 50), at(others, 99))
	return at(others, 99) - at(own, 99)
}

func arrival(t *testing.T, events <-chan event, model string) time.Time {
	t.Helper()
	for end := time.After(patience); ; {
		select {
		case e := <-events:
			if e.Key.Model == model && (e.Type == "locked" || e.Type == "cooling") {
				return e.at
			}
		case <-end:
			t.Fatalf("nothing was heard of %s", model)
		}
	}
}

// K2: 50 requests at each of three nodes meet a breaker that is due: one upstream call in all,
// until it has decided. Then everybody is served.
//
// A node that has lost the others because the machine stood still probes by itself, as it should; such a round shows nothing.
func TestK2OneProbe(t *testing.T) {
	server, u := redistest.Start(t), newUpstream(t)
	nodes := start(t, u, `
relay: {max_wait: 2m, patience: 0s}
resilience:
  breaker: {reset_timeout: 2s, early_probes: []}
  cooldown: {transient_after: 100}
`, server.Addr, server.Addr, server.Addr)
	for round := 1; ; round++ {
		before := partings(nodes)
		probes := oneProbe(t, u, nodes)
		parted := partings(nodes) - before
		if probes == 1 {
			break
		}
		if parted == 0 || round == 3 {
			t.Errorf("%d upstream calls while the probe is in flight, and %d nodes had lost the others", probes, parted)
			break
		}
	}
}

// oneProbe trips the breaker, lets everybody ask, and returns how many of their requests are sent while none is answered.
func oneProbe(t *testing.T, u *upstream, nodes []*node) (probes int) {
	t.Helper()
	for _, n := range nodes {
		n.until("connected", func(s status) bool { return s.Cluster == "ok" })
	}
	for len(u.came) > 0 { // what is left of a round before
		<-u.came
	}
	u.set("key-main", "500")
	for end := time.Now().Add(patience); ; {
		nodes[0].ask("brief")
		if state := nodes[0].status().Providers[0].Breaker.State; state == "OPEN" || state == "HALF_OPEN" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the breaker stays closed")
		}
	}
	u.set("key-main", "hold")
	before := len(u.callsOf("key-main"))
	for _, n := range nodes {
		n.until("half open", func(s status) bool { return s.Providers[0].Breaker.State == "HALF_OPEN" })
	}
	var clients sync.WaitGroup
	for _, n := range nodes {
		for range 50 {
			clients.Go(func() {
				if code, answer := n.ask("alone"); code != 200 {
					t.Errorf("%s: %d %s", n.URL, code, answer)
				}
			})
		}
	}
	select {
	case <-u.came:
	case <-time.After(patience):
		t.Fatal("nobody probes")
	}
	time.Sleep(2 * time.Second) // as long as the others might take to come, too
	probes = len(u.callsOf("key-main")) - before
	u.set("key-main", "")
	u.letGo()
	released := time.Now()
	clients.Wait()
	t.Logf("150 waiting requests were answered within %v", time.Since(released).Round(time.Millisecond))
	if n := len(u.callsOf("key-main")) - before; n != 150 {
		t.Errorf("%d upstream calls for 150 requests", n)
	}
	return probes
}

// K2: the owner of a probe is killed: the next probe comes after its lease, and there are never two.
func TestK2TheOwnerIsKilled(t *testing.T) {
	const lease = 10 * time.Second // the owner is killed long before it ends, however slow the machine
	server, u := redistest.Start(t), newUpstream(t)
	nodes := start(t, u, `
relay: {max_wait: 0s, patience: 0s}
resilience: {breaker: {probe_lease: 10s}}
`, server.Addr, server.Addr, server.Addr)
	u.set("key-main", "429-soon")
	nodes[1].ask("safe")
	u.set("key-main", "hold")
	first := len(u.callsOf("key-main"))
	clients := []*load{}
	for _, n := range nodes {
		clients = append(clients, startLoad(t, "third", []*node{n})) // other traffic goes on
	}
	stop := make(chan struct{})
	var askers sync.WaitGroup
	for _, n := range nodes {
		askers.Go(func() {
			for {
				select {
				case <-stop:
					return
				case <-time.After(20 * time.Millisecond):
					go n.ask("safe") // one of them probes and hangs
				}
			}
		})
	}
	owner := <-u.came
	var killed int
	if _, err := fmt.Sscanf(owner, "node-%d", &killed); err != nil {
		t.Fatal(err)
	}
	clients[killed].end()
	nodes[killed].Kill()
	next := <-u.came
	calls := u.callsOf("key-main")[first:]
	gap := calls[1].at.Sub(calls[0].at)
	t.Logf("%s probed and was killed; %s probed %v later", owner, next, gap.Round(time.Millisecond))
	if next == owner || gap < lease*2/3 || len(calls) != 2 {
		t.Errorf("calls: %+v, lease %v", calls, lease)
	}
	if n := u.mostOf("key-main"); n > 1 {
		t.Errorf("%d probes at once", n)
	}
	u.set("key-main", "")
	u.letGo()
	close(stop)
	askers.Wait()
	for i, n := range nodes {
		if i != killed {
			n.until("ready again", func(s status) bool { return s.connection("main") == "ready" })
			clients[i].end()
		}
	}
	nodes[killed].Start()
}

// comesBack breaks something, mends it, and checks that every node is as before within two seconds.
//
// A machine that stands still for a moment lets dials and calls run into their own limits, and they are made again
// only later; so a slow return counts when it is slow three times.
func comesBack(t *testing.T, nodes []*node, breaks, mends func()) {
	t.Helper()
	for round := 1; ; round++ {
		breaks()
		mends()
		lag, since := harness.Lag(t), time.Now()
		var slowest time.Duration
		for _, n := range nodes {
			slowest = max(slowest, n.until("back", func(s status) bool { return s.Cluster == "ok" && s.Persistence == "ok" }).Sub(since))
		}
		late := lag()
		t.Logf("back after %v, of which the machine took %v", slowest.Round(time.Millisecond), late.Round(time.Millisecond))
		if slowest <= 2*time.Second+late {
			return
		}
		if round == 3 {
			t.Errorf("the return took more than two seconds three times, at last %v", slowest)
			return
		}
	}
}

func isolated(nodes ...*node) {
	for _, n := range nodes {
		n.until("isolated", func(s status) bool { return s.Cluster == "isolated" && s.Persistence == "degraded" })
	}
}

// K3: the server is killed and starts empty, hangs, and is cut off from one node, each under load.
// No client's request fails, nothing that is out comes back, and soon all is as it was.
func TestK3TheServerFails(t *testing.T) {
	server, u := redistest.Start(t), newUpstream(t)
	way := newProxy(t, server.Addr)
	nodes := start(t, u, "", server.Addr, server.Addr, way.addr)
	u.set("key-main", "429")
	if code, answer := nodes[0].ask("safe"); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	cooling := func(s status) bool { return s.connection("main") == "cooling" }
	for _, n := range nodes {
		n.until("told", cooling)
	}
	clients := startLoad(t, "safe", nodes)
	still := func(when string) {
		t.Helper()
		if n := len(u.callsOf("key-main")); n != 1 {
			t.Errorf("%s: the connection that is out was called %d times", when, n)
		}
	}

	comesBack(t, nodes, func() {
		server.Kill()
		isolated(nodes...)
		still("without a server")
	}, server.Start)
	still("with an empty server")
	late := &node{harness.Start(t, harness.Options{Config: fmt.Sprintf(config, server.Addr, u.url, 3, "")}), t}
	late.until("a node that has learned it all", func(s status) bool { return s.Cluster == "ok" && cooling(s) })

	comesBack(t, nodes, func() {
		server.Pause()
		isolated(nodes...)
		still("while the server hangs")
	}, server.Resume)

	comesBack(t, nodes, func() {
		way.set(true)
		isolated(nodes[2])
		nodes[0].until("connected", func(s status) bool { return s.Cluster == "ok" })
		u.set("key-third", "429") // what happens on the other side meanwhile
		if code, answer := nodes[1].ask("third"); code != 200 {
			t.Errorf("%d %s", code, answer)
		}
	}, func() { way.set(false) })
	nodes[2].until("told of what it missed", func(s status) bool { return s.connection("third") == "cooling" })
	still("at the end")
	t.Logf("%d requests were answered meanwhile", clients.end())
}
