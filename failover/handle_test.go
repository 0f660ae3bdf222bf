package failover

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
	"omniroute/store/memory"
)

// wired is a runner in real time, inside a bubble.
func wired(t *testing.T) (*resilience.Engine, *Runner) {
	t.Helper()
	e, err := resilience.New(resilience.Options{})
	if err != nil {
		t.Fatal(err)
	}
	rn := NewRunner(e)
	t.Cleanup(rn.Close)
	return e, rn
}

func planned(t *testing.T, e *resilience.Engine, l Limits, keys ...resilience.Key) *Plan {
	t.Helper()
	p, err := planOf(e, new(PlaceSet), keys, Options{Limits: l, FirstToken: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p.Name = "test"
	return p
}

// Events come in the order in which they were told, however many, and none is lost.
func TestHandleKeepsEvents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, rn := wired(t)
		h := rn.Handle(NewRequest(planned(t, e, Limits{}, key("a/1/m")), nil, true))
		go func() {
			for i := range 100 {
				if i == 50 {
					time.Sleep(time.Second)
				}
				h.Tell(Event{Type: Suspect, Attempt: i})
			}
		}()
		for i := range 100 {
			if ev := h.Next(t.Context()); ev.Attempt != i {
				t.Fatalf("event %d came as number %d", ev.Attempt, i)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if ev := h.Next(ctx); ev.Type != Abandoned {
			t.Errorf("a cancelled context brought %v", ev.Type)
		}
		ctx, cancel = context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ev := h.Next(ctx); ev.Type != TimedOut {
			t.Errorf("a deadline brought %v", ev.Type)
		}
		h.Close()
		if h.Tell(Event{Type: Woken}) {
			t.Error("a closed handle took in an event")
		}
	})
}

// A slow writer does not listen for a while: what its request needs is still there afterwards.
func TestHandleTimers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, rn := wired(t)
		h := rn.Handle(NewRequest(planned(t, e, Limits{PatienceForAny: true}, key("a/1/m"), key("b/1/m")), nil, true))
		defer h.Close()
		a := h.Do(Event{Type: Begin})
		time.Sleep(a.Attempt.SuspectAfter)
		if ev := h.Next(t.Context()); ev.Type != Suspect || ev.Attempt != 1 {
			t.Fatalf("got %+v, want the attempt to be suspicious", ev)
		}
		a = h.Do(Event{Type: Failed, Attempt: 1, Verdict: verdict(t, "429/1s")})
		if a.Type != Pause {
			t.Fatal(describe(a, h.Request, time.Now()))
		}
		time.Sleep(time.Minute)
		if ev := h.Next(t.Context()); ev.Type != Woken {
			t.Fatalf("got %+v, want the pause's end", ev)
		}
		if a = h.Do(Event{Type: Woken}); a.Type != Dispatch {
			t.Fatal(describe(a, h.Request, time.Now()))
		}
		h.Do(Event{Type: Content, Attempt: 2})
		time.Sleep(time.Minute)
		if ev, ok := h.take(); ok {
			t.Errorf("after the commit came %+v", ev)
		}
	})
}

// Whoever is suspicious already learns that the breaker has opened since.
func TestHandleHearsOfSuspicion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, rn := wired(t)
		p := planned(t, e, Limits{}, key("a/1/m"), key("b/1/m"))
		h := rn.Handle(NewRequest(p, nil, true))
		defer h.Close()
		h.Do(Event{Type: Begin})
		if a := h.Do(h.Next(t.Context())); a.Type != Continue {
			t.Fatal(describe(a, h.Request, time.Now()))
		}
		for range 4 {
			permit, err := e.Target(key("a/1/m")).Acquire()
			if err != nil {
				t.Fatal(err)
			}
			permit.Waited()
		}
		if a := h.Do(h.Next(t.Context())); a.Type != Dispatch || a.Attempt.Target.Key() != key("b/1/m") {
			t.Fatal(describe(a, h.Request, time.Now()))
		}
	})
}

// That another node of the cluster has found its provider hanging is news for a request here, too.
func TestHandleHearsOfOtherNodes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hub := memory.NewHub(time.Now)
		var nodes [2]*resilience.Engine
		for i := range nodes {
			e, err := resilience.New(resilience.Options{Store: hub.Node(fmt.Sprint("node-", i))})
			if err == nil {
				err = e.Start(t.Context())
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = e.Stop(context.Background()) }()
			nodes[i] = e
		}
		rn := NewRunner(nodes[0])
		defer rn.Close()
		h := rn.Handle(NewRequest(planned(t, nodes[0], Limits{}, key("a/1/m"), key("b/1/m")), nil, true))
		defer h.Close()
		h.Do(Event{Type: Begin})
		h.Do(h.Next(t.Context())) // suspicious
		for range 5 {
			permit, err := nodes[1].Target(key("a/1/m")).Acquire()
			if err != nil {
				t.Fatal(err)
			}
			permit.Waited()
		}
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if a := h.Do(h.Next(ctx)); a.Type != Dispatch || a.Attempt.Target.Key() != key("b/1/m") {
			t.Fatalf("after %v: %s", time.Since(start), describe(a, h.Request, time.Now()))
		}
	})
}

// Whose attempt hangs starts its next target also where there was none when the breaker opened, and one comes back.
func TestHandleLooksAgainWhileItHangs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, rn := wired(t)
		p := planned(t, e, Limits{}, key("a/1/m"), key("b/1/m"))
		if err := e.Exclude(key("b/1/m"), 20*time.Second, "maintenance"); err != nil {
			t.Fatal(err)
		}
		h := rn.Handle(NewRequest(p, nil, true))
		defer h.Close()
		suspect := h.Do(Event{Type: Begin}).Attempt.SuspectAfter
		for range 4 {
			permit, err := e.Target(key("a/1/m")).Acquire()
			if err != nil {
				t.Fatal(err)
			}
			permit.Waited()
		}
		start, looks := time.Now(), 0
		for a := h.Do(h.Next(t.Context())); a.Type != Dispatch; a = h.Do(h.Next(t.Context())) {
			if looks++; a.Type != Continue {
				t.Fatal(describe(a, h.Request, time.Now()))
			}
		}
		if d := time.Since(start); d < 20*time.Second || d > 20*time.Second+suspect || looks > int(d/suspect) {
			t.Errorf("it has gone to the next target after %v and %d looks, want 20s and at most %v", d, looks, suspect)
		}
	})
}

// A closed handle leaves nothing behind: no waiter, no watch, no timer, no permit.
func TestHandleClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, rn := wired(t)
		p := planned(t, e, Limits{}, key("a/1/m"))
		h := rn.Handle(NewRequest(p, nil, true))
		h.Do(Event{Type: Begin})
		h.Do(h.Next(t.Context())) // suspicious
		h.Close()
		e.RecordFailure(key("a/1/m"), verdict(t, "429/5s"))
		waits := rn.Handle(NewRequest(p, nil, true))
		if a := waits.Do(Event{Type: Begin}); a.Type != Enter || rn.Waiting() != 1 {
			t.Fatal(describe(a, waits.Request, time.Now()))
		}
		waits.Close()
		time.Sleep(5 * time.Second)
		probe := rn.Handle(NewRequest(p, nil, true))
		if a := probe.Do(Event{Type: Begin}); a.Type != Dispatch || !a.Attempt.Probe {
			t.Fatal(describe(a, probe.Request, time.Now()))
		}
		probe.Close()
		if x, out := p.Targets[0].Check(); out {
			t.Errorf("the probe of a closed handle holds its slot: %+v", x)
		}
		if rn.Waiting() != 0 || len(rn.lobby.slow)+len(rn.lobby.hang) != 0 || len(rn.lobby.rooms) != 0 {
			t.Errorf("%d wait, %d are watched, %d look again", rn.Waiting(), len(rn.lobby.slow), len(rn.lobby.hang))
		}
	})
}

func TestLatency(t *testing.T) {
	t.Parallel()
	var none *Latency
	none.Add(time.Second)
	if _, known := none.P95(); known {
		t.Error("nobody keeps it, and it is known")
	}
	var l Latency
	for i := range 19 {
		l.Add(time.Duration(i+1) * time.Millisecond)
	}
	if d, known := l.P95(); known {
		t.Errorf("%v after 19 answers", d)
	}
	l.Add(20 * time.Millisecond)
	if d, _ := l.P95(); d != 19*time.Millisecond {
		t.Errorf("p95 of 1 to 20 ms is %v", d)
	}
	for range 100 {
		l.Add(time.Second)
	}
	if d, _ := l.P95(); d != time.Second {
		t.Errorf("after a hundred slower answers it is %v", d)
	}
}

// TestTiming: suspect_after is twice the recent p95, and probes are bounded (law R9).
func TestTiming(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name             string
		p95, firstToken  time.Duration
		limits           Limits
		stream, probe    bool
		timeout, suspect time.Duration
	}{
		{name: "unknown", stream: true, timeout: 60 * s, suspect: 6 * s},
		{name: "unknown and short", stream: true, firstToken: 5 * s, timeout: 5 * s, suspect: s},
		{name: "known", stream: true, p95: 2 * s, timeout: 60 * s, suspect: 4 * s},
		{name: "known and quick", stream: true, p95: 100 * time.Millisecond, timeout: 60 * s, suspect: s},
		{name: "configured", stream: true, p95: 2 * s, limits: Limits{SuspectAfter: 3 * s}, timeout: 60 * s, suspect: 3 * s},
		{name: "whole", timeout: 300 * s, suspect: 30 * s},
		{name: "whole and known", p95: 20 * s, timeout: 300 * s, suspect: 40 * s},
		{name: "probe", stream: true, probe: true, timeout: 10 * s, suspect: 6 * s},
		{name: "probe of a slow model", stream: true, probe: true, p95: 7 * s, timeout: 21 * s, suspect: 14 * s},
		{name: "probe of a whole answer", probe: true, timeout: 300 * s, suspect: 30 * s},
		{name: "probe of a whole answer, known", probe: true, p95: 20 * s, timeout: 60 * s, suspect: 40 * s},
	} {
		x := Target{FirstToken: 60 * s, Answer: 300 * s, Streamed: new(Latency), Whole: new(Latency)}
		set(&c.firstToken, x.FirstToken)
		x.FirstToken = c.firstToken
		for range latencyEnough {
			if c.p95 > 0 && c.stream {
				x.Streamed.Add(c.p95)
			} else if c.p95 > 0 {
				x.Whole.Add(c.p95)
			}
		}
		if timeout, suspect := x.timing(c.limits, c.stream, c.probe); timeout != c.timeout || suspect != c.suspect {
			t.Errorf("%s: timeout %v, suspicious after %v; want %v, %v", c.name, timeout, suspect, c.timeout, c.suspect)
		}
	}
}

// What Run remembers of targets is bounded, and kept apart by its options.
func TestPlanCache(t *testing.T) {
	t.Parallel()
	e := newRig(t, resilience.Policy{}).Engine
	var c planCache
	one := []resilience.Key{key("a/1/m"), key("a/2/m"), key("b/1/m")}
	get := func(keys []resilience.Key, o Options) *Plan {
		p, err := c.get(e, new(PlaceSet), keys, o)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	p := get(one, Options{})
	if get(one, Options{}) != p || get(one, Options{Limits: Limits{MaxAttempts: 2}}) == p || get(one[:2], Options{}) == p || get(one, Options{Hedge: Hedge{P95: true}}) == p {
		t.Error("plans are mixed up")
	}
	if p.Targets[0].Entry != p.Targets[1].Entry || p.Targets[1].Entry == p.Targets[2].Entry || p.Targets[0].Whole != p.Targets[1].Whole || p.Targets[0].Whole == p.Targets[2].Whole {
		t.Error("siblings are not told from others")
	}
	for i := range 2 * plansKept {
		get([]resilience.Key{{Provider: "a", Connection: "1", Model: fmt.Sprint(i)}}, Options{})
	}
	if len(c.kept) > plansKept {
		t.Errorf("%d plans are kept", len(c.kept))
	}
}

func TestNewPlanRefusesUnresolvedTargets(t *testing.T) {
	t.Parallel()
	if _, err := NewPlan(Plan{Name: "p", Targets: []Target{{}}}); err == nil {
		t.Error("a plan with a target that is not resolved")
	}
}
