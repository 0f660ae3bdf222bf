package simulate

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

var realTime = flag.Bool("real", false, "compare the simulator with a gateway on sockets and in real time, at a twentieth of the length")

// agreement is an incident whose course the simulator and the gateway must agree on. %s stand for
// durations of the whole length.
type agreement struct {
	name, settings, primary string
	// from and to bound the trouble; the course is that of these connections.
	from, to time.Duration
	keys     []string
}

var agreements = []agreement{
	{"outage", "", `{from: 30s, to: 90s, answer: "503-no-hint"}`, 30 * time.Second, 90 * time.Second, []string{"k1", "k2"}},
	{"key revoked", "", `{from: 30s, to: 90s, connection: k1, answer: key-revoked}`, 30 * time.Second, 90 * time.Second, []string{"k1"}},
	{"hang", ", first_token_timeout: 20s", `{from: 30s, to: 90s, answer: hang}`, 30 * time.Second, 90 * time.Second, []string{"k1", "k2"}},
}

// course is what an incident comes to.
type course struct {
	attempts map[string]int // in the trouble, by connection of the primary
	away     time.Duration  // from its beginning to the first request that the fallback got
	back     time.Duration  // from its end to the first one that the primary answers again
	answered int
}

// scaled divides every duration of a schedule, and those of the gateway's defaults.
func scaled(scale int, a agreement) string {
	d := func(s string) string {
		v, err := time.ParseDuration(s)
		if err != nil {
			panic(err)
		}
		return (v / time.Duration(scale)).String()
	}
	trouble := a.primary
	for _, s := range []string{"30s", "90s"} {
		trouble = strings.ReplaceAll(trouble, s, d(s))
	}
	settings := strings.ReplaceAll(a.settings, "20s", d("20s"))
	p := plot{d("150s"), 10 * scale, true, fallback, settings, 2, "first: " + d("400ms") + ", refusal: 1ms, events: [" + trouble + "]"}
	text := strings.Replace(p.String(), "\n  combos:", fmt.Sprintf(`
  resilience:
    breaker: {reset_timeout: %s, early_probes: [%s, %s, %s, %s]}
    cooldown: {base: %s, max: %s, max_transient: %s}
    recheck: {after: %s, alone: %s}
  relay: {patience: %s, max_wait: %s, suspect_after: %s}
  combos:`, d("30s"), d("2s"), d("4s"), d("8s"), d("10s"), d("1s"), d("120s"), d("30s"), d("15m"), d("60s"), d("2s"), d("10s"), d("2s")), 1)
	text = strings.Replace(text, "spare: {speed: 100}", fmt.Sprintf("spare: {first: %s, speed: %d}", d("400ms"), 1000*scale), 1)
	// No round number: neither the trouble nor a wait (of 1, 2, 4, 8 or 10 seconds) may begin or end at the very moment of a
	// request, which would be in it here and not there. A quarter of the time between two is the least that lies between.
	text = strings.Replace(text, fmt.Sprintf("rate: %d,", 10*scale), fmt.Sprintf("rate: %v,", 10.675*float64(scale)), 1)
	return strings.Replace(text, "{median: 340, spread: 0.5}", "1", 1)
}

// simulated plays it here.
func simulated(t *testing.T, f *File, a agreement, scale time.Duration) course {
	t.Helper()
	p, err := watched(f)
	if err != nil {
		t.Fatal(err)
	}
	c := course{attempts: map[string]int{}, answered: p.Answered}
	var calls []call
	for _, x := range p.calls {
		calls = append(calls, call{x.at, x.key.Provider, x.key.Connection, x.good})
	}
	c.read(calls, a, scale)
	return c
}

type call struct {
	at                   time.Duration
	provider, connection string
	good                 bool
}

func (c *course) read(calls []call, a agreement, scale time.Duration) {
	slices.SortStableFunc(calls, func(x, y call) int { return int(x.at - y.at) })
	from, to := a.from/scale, a.to/scale
	c.away, c.back = -1, -1
	for _, x := range calls {
		affected := x.provider == "main" && slices.Contains(a.keys, x.connection)
		switch {
		case affected && x.at >= from && x.at < to:
			c.attempts[x.connection]++
		case affected && x.at >= to && x.good && c.back < 0:
			c.back = x.at - to
		case x.provider == "spare" && x.at >= from && c.away < 0:
			c.away = x.at - from
		}
	}
}

// gateways plays it against the gateway.
func gateways(t *testing.T, f *File, a agreement, scale time.Duration, sockets bool) course {
	t.Helper()
	conf := f.Config
	keys := map[string]string{"secret-k1": "k1", "secret-k2": "k2"}
	conf = strings.NewReplacer("https://main.example/v1", "$main", "https://spare.example/v1", "$spare",
		"{id: k1, api_key: x}, {id: k2, api_key: x}", "{id: k1, api_key: secret-k1}, {id: k2, api_key: secret-k2}").Replace(conf)
	pace := lab.Latency{FirstContent: lab.Delay{Median: 400 * time.Millisecond / scale}}
	var script []lab.Phase
	for _, e := range f.Upstreams["main"].Events {
		fault, err := lab.ParseFault(e.Answer)
		if err != nil {
			t.Fatal(err)
		}
		p := lab.Phase{From: time.Duration(e.From), To: time.Duration(e.To), Fault: fault}
		if e.Answer == "hang" { // in the simulator it also holds back what is due
			p.From -= pace.FirstContent.Median
		}
		if e.Connection != "" {
			p.Match = lab.OnConnection(e.Connection)
		}
		script = append(script, p)
	}
	w := gatewaytest.Start(t, gatewaytest.Setup{Config: conf, Sockets: sockets, Providers: []lab.Options{
		{Name: "main", Keys: keys, Script: script, Latency: pace}, {Name: "spare", Latency: pace},
	}})
	for _, p := range w.Providers {
		p.Restart()
	}
	start := time.Now()
	c := course{attempts: map[string]int{}}
	var mu sync.Mutex
	var clients sync.WaitGroup
	gap := time.Duration(float64(time.Second) / f.Traffic[0].Rate)
	for next := start.Add(gap); next.Sub(start) < time.Duration(f.Length); next = next.Add(gap) {
		time.Sleep(time.Until(next))
		clients.Go(func() {
			if ans := w.Chat(context.Background(), "chat", true); ans.Status == 200 && ans.Error == "" {
				mu.Lock()
				defer mu.Unlock()
				c.answered++
			}
		})
	}
	clients.Wait()
	var calls []call
	for name, p := range w.Providers {
		for _, x := range p.Calls() {
			calls = append(calls, call{x.At.Sub(start), name, x.Connection, x.Outcome == "ok"})
		}
	}
	c.read(calls, a, scale)
	return c
}

// close reports whether two figures agree within a tenth or one.
func close(a, b float64) bool { return max(a-b, b-a) <= max(0.1*max(a, b), 1) }

// TestAgreesWithTheGateway plays incidents here and against the gateway, with its HTTP, its timers and
// its streams: on virtual time, and with -real on sockets in real time at a twentieth of the length.
// They agree within a tenth or one: one attempt, or the time from one request to the next.
func TestAgreesWithTheGateway(t *testing.T) {
	t.Parallel()
	for _, a := range agreements {
		t.Run(a.name, func(t *testing.T) {
			scale := 1
			if *realTime {
				scale = 20
			}
			f, err := Parse(a.name, []byte(scaled(scale, a)))
			if err != nil {
				t.Fatal(err)
			}
			sim := simulated(t, f, a, time.Duration(scale))
			var real course
			if *realTime {
				real = gateways(t, f, a, time.Duration(scale), true)
			} else {
				synctest.Test(t, func(t *testing.T) { real = gateways(t, f, a, 1, false) })
			}
			t.Logf("simulated %+v", sim)
			t.Logf("gateway   %+v", real)
			gap := float64(time.Second) / f.Traffic[0].Rate
			for _, k := range a.keys {
				if !close(float64(sim.attempts[k]), float64(real.attempts[k])) {
					t.Errorf("attempts on %s in the trouble: simulated %d, real %d", k, sim.attempts[k], real.attempts[k])
				}
			}
			for what, d := range map[string][2]time.Duration{"away": {sim.away, real.away}, "back": {sim.back, real.back}} {
				// A machine that is busy may well send one to the fallback that had no reason to go there.
				if d[0] < 0 && *realTime {
					continue
				}
				if !close(float64(d[0])/gap, float64(d[1])/gap) {
					t.Errorf("%s: simulated %v, real %v", what, d[0], d[1])
				}
			}
			if !close(float64(sim.answered), float64(real.answered)) {
				t.Errorf("answered: simulated %d, real %d", sim.answered, real.answered)
			}
		})
	}
}
