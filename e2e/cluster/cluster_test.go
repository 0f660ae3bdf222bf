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
// needs until the tripping node's own event arrives is measured beside it and does not count.
func TestK1TripsSpread(t *testing.T) {
	server, u := redistest.Start(t), newUpstream(t)
	nodes := start(t, u, "relay: {max_wait: 0s, patience: 0s}", server.Addr, server.Addr, server.Addr)
	u.set("key-q", "429")
	var heard []<-chan event
	for _, n := range nodes {
		heard = append(heard, n.events())
	}
	var own, others []time.Duration
	for i := range trips {
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
	if p99 := at(others, 99) - at(own, 99); p99 > 500*time.Millisecond {
		t.Errorf("the others learn it in %v more than the node itself at the 99th percentile", p99)
	}
	calls := u.callsOf("key-q")
	for i := range trips {
		if code, _ := nodes[(i+1)%len(nodes)].ask(fmt.Sprintf("q/model-%d", i)); code != 429 {
			t.Errorf("trip %d: %d", i, code)
		}
	}
	if more := len(u.callsOf("key-q")) - len(calls); more != 0 || len(calls) != trips {
		t.Errorf("%d upstream calls for %d trips, %d of other nodes after them", len(calls), trips, more)
	}
}

func arrival(t *testing.T, events <-chan event, model string) time.Time {
	t.Helper()
	for end := time.After(30 * time.Second); ; {
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
func TestK2OneProbe(t *testing.T) {
	server, u := redistest.Start(t), newUpstream(t)
	nodes := start(t, u, `
relay: {max_wait: 30s, patience: 0s}
resilience:
  breaker: {reset_timeout: 2s, early_probes: []}
  cooldown: {transient_after: 100}
`, server.Addr, server.Addr, server.Addr)
	u.set("key-main", "500")
	for range 5 {
		nodes[0].askBriefly("alone")
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
	case <-time.After(30 * time.Second):
		t.Fatal("nobody probes")
	}
	time.Sleep(2 * time.Second) // as long as the others might take to come, too
	if n := len(u.callsOf("key-main")) - before; n != 1 {
		t.Errorf("%d upstream calls while the probe is in flight", n)
	}
	u.set("key-main", "")
	u.letGo()
	released := time.Now()
	clients.Wait()
	t.Logf("150 waiting requests were answered within %v", time.Since(released).Round(time.Millisecond))
	if n := len(u.callsOf("key-main")) - before; n != 150 {
		t.Errorf("%d upstream calls for 150 requests", n)
	}
}

// K2: the owner of a probe is killed: the next probe comes after its lease, and there are never two.
func TestK2TheOwnerIsKilled(t *testing.T) {
	const lease = 3 * time.Second
	server, u := redistest.Start(t), newUpstream(t)
	nodes := start(t, u, `
relay: {max_wait: 0s, patience: 0s}
resilience: {breaker: {probe_lease: 3s}}
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

// returned checks that every node is back in time.
func returned(t *testing.T, since time.Time, nodes []*node) {
	t.Helper()
	for _, n := range nodes {
		took := n.until("back", func(s status) bool { return s.Cluster == "ok" && s.Persistence == "ok" }).Sub(since)
		t.Logf("back after %v", took.Round(time.Millisecond))
		if took > 2*time.Second {
			t.Errorf("it took %v", took)
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

	server.Kill()
	isolated(nodes...)
	still("without a server")
	server.Start()
	returned(t, time.Now(), nodes)
	still("with an empty server")
	late := &node{harness.Start(t, harness.Options{Config: fmt.Sprintf(config, server.Addr, u.url, 3, "")}), t}
	late.until("a node that has learned it all", func(s status) bool { return s.Cluster == "ok" && cooling(s) })

	server.Pause()
	isolated(nodes...)
	still("while the server hangs")
	server.Resume()
	returned(t, time.Now(), nodes)

	way.set(true)
	isolated(nodes[2])
	if s := nodes[0].status(); s.Cluster != "ok" {
		t.Errorf("the others are %s", s.Cluster)
	}
	u.set("key-third", "429") // what happens on the other side meanwhile
	if code, answer := nodes[1].ask("third"); code != 200 {
		t.Errorf("%d %s", code, answer)
	}
	way.set(false)
	returned(t, time.Now(), nodes)
	nodes[2].until("told of what it missed", func(s status) bool { return s.connection("third") == "cooling" })
	still("at the end")
	t.Logf("%d requests were answered meanwhile", clients.end())
}
