package failover

import (
	"math"
	"strings"
	"testing"
	"time"

	"omniroute/resilience"
)

// hedged makes a plan one that hedges.
func hedged(t testing.TB, p *Plan, h Hedge) *Plan {
	t.Helper()
	p.Hedge = h
	if err := p.Hedge.complete(); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestHedgeNeedsAPlace: a second target is asked only where its connection has a place free; nobody
// waits in line for one, and nothing is taken from the budget.
func TestHedgeNeedsAPlace(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := hedged(t, r.plan(t, Limits{}, "a/1/m", "b/1/m"), Hedge{After: time.Second, Share: 0.01})
	places := new(Places)
	p.Targets[1].Places = places
	places.Limit(1)
	if !places.take() {
		t.Fatal("no place")
	}
	for _, want := range []ActionType{Continue, Dispatch} {
		req := NewRequest(p, nil, true)
		req.Step(Event{Type: Begin}, r.now)
		if a := req.Step(Event{Type: Slow, Attempt: 1}, r.now); a.Type != want || places.Waiting() != 0 {
			t.Errorf("%s, %d wait in line", describe(a, req, r.now), places.Waiting())
		}
		req.Step(Event{Type: Abandoned}, r.now)
		if want == Continue {
			places.free()
		}
	}
	if n := places.Used(); n != 0 {
		t.Errorf("%d places are taken when all is over", n)
	}
}

// TestHedgeBudget: in no minute are there more hedges than the share of its requests, or one.
func TestHedgeBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name             string
		share            float64
		requests         int
		every            time.Duration
		hedges, inMinute int
	}{
		{"all", 1, 1000, 10 * time.Millisecond, 1000, 1000},
		{"a twentieth", 0.05, 1000, 10 * time.Millisecond, 50, 50},
		{"29% of 100, which no binary fraction is", 0.29, 100, 10 * time.Millisecond, 29, 29},
		{"a third", 1.0 / 3, 300, 10 * time.Millisecond, 100, 100},
		{"next to nothing: one a minute", 1e-6, 600, time.Second, 10, 1},
		{"few requests: one a minute", 0.05, 120, 10 * time.Second, 20, 1},
		{"a request a minute: each", 0.05, 10, 70 * time.Second, 10, 1},
		{"a twentieth, for ten minutes", 0.05, 6000, 100 * time.Millisecond, 300, 31},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, resilience.Policy{})
			p := hedged(t, r.plan(t, Limits{}, "a/1/m", "b/1/m"), Hedge{After: time.Second, Share: c.share})
			var at []time.Time
			for range c.requests {
				req := NewRequest(p, nil, true)
				req.Step(Event{Type: Begin}, r.now)
				if a := req.Step(Event{Type: Slow, Attempt: 1}, r.now); a.Type == Dispatch {
					at = append(at, r.now)
				}
				req.Step(Event{Type: Abandoned}, r.now)
				r.now = r.now.Add(c.every)
			}
			most := 0
			for i := range at {
				n := 0
				for _, u := range at[i:] {
					if u.Sub(at[i]) < time.Minute {
						n++
					}
				}
				most = max(most, n)
			}
			if slack := c.hedges / 20; len(at) > c.hedges || len(at) < c.hedges-slack || most > c.inMinute {
				t.Errorf("%d hedges, %d in a minute; want %d and at most %d", len(at), most, c.hedges, c.inMinute)
			}
		})
	}
}

// One hedge a minute is always allowed, to the instant; a clock that goes back allows no more.
func TestHedgeLedger(t *testing.T) {
	t.Parallel()
	var l HedgeLedger
	h := Hedge{Share: 0.01, Ledger: &l}
	now := epoch
	h.count(now)
	if !h.take(now) || h.take(now) {
		t.Error("the first hedge of a minute is allowed, the second not")
	}
	if now = now.Add(time.Minute - 1); h.take(now) {
		t.Error("a second one before the minute is over")
	}
	if now = now.Add(1); !h.take(now) {
		t.Error("none after a minute")
	}
	if now = now.Add(-time.Hour); h.take(now) {
		t.Error("a clock that goes back brings another one")
	}
}

// TestHedgeAfter: a duration, or what the target's own recent answers took.
func TestHedgeAfter(t *testing.T) {
	t.Parallel()
	const s = time.Second
	for _, c := range []struct {
		name   string
		hedge  Hedge
		p95    time.Duration
		stream bool
		want   time.Duration
	}{
		{"never", Hedge{}, 2 * s, true, 0},
		{"a duration", Hedge{After: 8 * s}, 2 * s, true, 8 * s},
		{"a duration of a tenth of a second", Hedge{After: s / 10}, 2 * s, true, s / 10},
		{"p95", Hedge{P95: true}, 2 * s, true, 2 * s},
		{"p95 of a quick model", Hedge{P95: true}, s / 20, true, s / 20},
		{"p95 of nobody knows what", Hedge{P95: true}, 0, true, 6 * s},
		{"whole: p95", Hedge{P95: true}, 20 * s, false, 20 * s},
		{"whole: p95 of nobody knows what", Hedge{P95: true}, 0, false, 30 * s},
		{"whole: a duration that most answers take", Hedge{After: 8 * s}, 20 * s, false, 20 * s},
		{"whole: a duration that few answers take", Hedge{After: 30 * s}, 20 * s, false, 30 * s},
		{"whole: a duration, and nothing known", Hedge{After: 8 * s}, 0, false, 30 * s},
		{"beyond the timeout", Hedge{After: 60 * s}, 2 * s, true, 0},
	} {
		x := Target{FirstToken: 60 * s, Answer: 300 * s, Streamed: new(Latency), Whole: new(Latency)}
		for range latencyEnough {
			if c.p95 > 0 {
				x.recent(c.stream).Add(c.p95)
			}
		}
		if got := x.hedgeAfter(c.hedge, c.stream); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// Races that the slow lose leave p95 where it is: else it would fall, and more and more would be
// raced. And a provider that hangs does not push it up without end.
func TestHedgeKeepsPercentile(t *testing.T) {
	t.Parallel()
	r := newRig(t, resilience.Policy{})
	p := hedged(t, r.plan(t, Limits{}, "a/1/m", "b/1/m"), Hedge{P95: true, Share: 1})
	p.Targets[0].Streamed = new(Latency)
	ask := func(took time.Duration) {
		req := NewRequest(p, nil, true)
		a := req.Step(Event{Type: Begin}, r.now)
		winner := 1
		if after := a.Attempt.HedgeAfter; took > after {
			if b := req.Step(Event{Type: Slow, Attempt: 1}, r.now.Add(after)); b.Type == Dispatch {
				took, winner = after+50*time.Millisecond, 2
			}
		}
		req.Step(Event{Type: Content, Attempt: winner}, r.now.Add(took))
		req.Step(Event{Type: Ended, Attempt: winner}, r.now.Add(took))
		r.now = r.now.Add(time.Minute)
	}
	took := func(i int) time.Duration { // a twelfth take two seconds and more
		if i%12 == 11 {
			return 2*time.Second + time.Duration(i%100)*time.Millisecond
		}
		return time.Duration(500+i%12*10) * time.Millisecond
	}
	for i := range 200 {
		p.Targets[0].Streamed.Add(took(i))
	}
	p95, _ := p.Targets[0].Streamed.P95()
	for i := range 2000 {
		ask(took(i))
	}
	if now, _ := p.Targets[0].Streamed.P95(); now < 2*time.Second {
		t.Errorf("p95 fell from %v to %v", p95, now)
	}
	for range 2000 {
		ask(time.Hour)
	}
	if now, _ := p.Targets[0].Streamed.P95(); now > p95 {
		t.Errorf("p95 rose from %v to %v", p95, now)
	}
}

func TestHedgeOptions(t *testing.T) {
	t.Parallel()
	for _, h := range []Hedge{{After: -1}, {After: time.Second, P95: true}, {P95: true, Share: -0.1}, {P95: true, Share: 1.1}, {P95: true, Share: math.NaN()}} {
		if _, err := NewPlan(Plan{Name: "p", Hedge: h}); err == nil || !strings.Contains(err.Error(), "hedge") {
			t.Errorf("%+v: %v", h, err)
		}
	}
	p, err := NewPlan(Plan{Hedge: Hedge{P95: true}})
	if err != nil || p.Hedge.Share != 0.05 || p.Hedge.Ledger == nil {
		t.Errorf("%+v, %v", p, err)
	}
}
