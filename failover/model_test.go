package failover

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/resilience"
)

// crowd is several requests at once on one engine and one lobby, driven at random, each watched
// by a ledger that knows the laws but not how the request keeps them.
type crowd struct {
	*rig
	t     *rapid.T
	lobby *Lobby
	plans []*Plan
	all   []*ledger
	// When requests of each plan came, and when a second attempt of one was started for slowness.
	came, hedged map[*Plan][]time.Time
}

var modelTargets = []string{"a/1/m", "a/2/m", "a/1/n@8", "b/1/m", "b/1/n@32", "c/1/o"}

func newCrowd(t *rapid.T) *crowd {
	c := &crowd{rig: newRig(t, resilience.Policy{}), t: t, lobby: NewLobby(), came: map[*Plan][]time.Time{}, hedged: map[*Plan][]time.Time{}}
	c.OnOpening(func(p string) { c.lobby.Changed(p, c.now) })
	for i := range rapid.IntRange(1, 2).Draw(t, "plans") {
		targets := rapid.SliceOfNDistinct(rapid.SampledFrom(modelTargets), 1, 5, rapid.ID).Draw(t, "targets")
		l := Limits{
			MaxAttempts:    rapid.IntRange(1, 7).Draw(t, "attempts"),
			Deadline:       time.Duration(rapid.IntRange(1, 60).Draw(t, "deadline")) * time.Second,
			MaxWait:        time.Duration(rapid.IntRange(-1, 12).Draw(t, "max wait")) * time.Second,
			Patience:       time.Duration(rapid.IntRange(-1, 3).Draw(t, "patience")) * time.Second,
			PatienceForAny: rapid.Bool().Draw(t, "for any"),
			WaitingRoom:    rapid.IntRange(1, 3).Draw(t, "room"),
		}
		p := c.plan(t, l, targets...)
		p.Name, p.Ordered = fmt.Sprint("plan", i), rapid.Bool().Draw(t, "ordered")
		if rapid.Bool().Draw(t, "hedge") {
			p.Hedge = Hedge{After: 3 * time.Second, Share: rapid.SampledFrom([]float64{1e-9, 0.05, 0.29, 0.5, 1}).Draw(t, "share")}
			if err := p.Hedge.complete(); err != nil {
				t.Fatal(err)
			}
		}
		c.plans = append(c.plans, p)
	}
	return c
}

func (c *crowd) begin() {
	p := rapid.SampledFrom(c.plans).Draw(c.t, "plan")
	l := &ledger{
		c: c, plan: p, tell: map[int]*Attempt{}, running: map[int]*Attempt{}, slow: map[int]bool{}, since: map[resilience.Key]bool{},
		deadline: c.now.Add(p.Limits.Deadline),
		req:      NewRequest(p, Order(rapid.Permutation(places(p)).Draw(c.t, "order")), rapid.Bool().Draw(c.t, "stream")),
	}
	c.all = append(c.all, l)
	c.came[p] = append(c.came[p], c.now)
	l.step(Event{Type: Begin})
}

// pass lets time go by, with all pauses and rooms on the way.
func (c *crowd) pass(d time.Duration) {
	end := c.now.Add(d)
	for n := 0; ; n++ {
		if n > 10_000 {
			c.t.Fatal("time stands still")
		}
		let, again := c.lobby.Poll(c.now)
		for _, r := range let {
			r.Wake()
		}
		if c.wake() {
			continue
		}
		next := end
		if !again.IsZero() && again.Before(next) {
			next = again
		}
		for _, l := range c.all {
			if !l.over && !l.wakeAt.IsZero() && l.wakeAt.Before(next) {
				next = l.wakeAt
			}
			if !l.over && l.answer == nil && l.deadline.Before(next) {
				next = l.deadline
			}
		}
		if !next.After(c.now) && c.now.Equal(end) {
			return
		}
		c.now = maxTime(next, c.now)
	}
}

// wake tells those whose pause is over, whom the room let go, and whose deadline has passed.
func (c *crowd) wake() (any bool) {
	for _, l := range slices.Clone(c.all) {
		switch {
		case l.over:
		case len(l.woken) > 0:
			if len(l.woken) > 1 {
				c.t.Fatal("a waiter was let go twice")
			}
			d := l.woken[0]
			l.woken, l.inRoom, any = nil, false, true
			l.roomed += d
			clear(l.since)
			l.step(Event{Type: Woken, Waited: d})
		case !l.wakeAt.IsZero() && !l.wakeAt.After(c.now):
			l.paused += c.now.Sub(l.pauseAt)
			clear(l.since)
			l.step(Event{Type: Woken})
			any = true
		case l.answer == nil && !c.now.Before(l.deadline):
			l.step(Event{Type: TimedOut})
			any = true
		}
	}
	return any
}

func maxTime(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// TestRequestModel drives crowds at random. Whatever happens every request ends, keeps its limits
// and settles its permits.
func TestRequestModel(t *testing.T) {
	t.Parallel()
	names := make([]string, 0, len(verdicts))
	for name := range verdicts {
		if name != "ok" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	bad := rapid.Custom(func(t *rapid.T) resilience.Verdict {
		v := verdicts[rapid.SampledFrom(names).Draw(t, "verdict")]
		v.RetryAfter = time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 1500, 2000, 5000, 40000}).Draw(t, "hint")) * time.Millisecond
		return v
	})
	rapid.Check(t, func(t *rapid.T) {
		c := newCrowd(t)
		live := func() *ledger {
			var some []*ledger
			for _, l := range c.all {
				if !l.over {
					some = append(some, l)
				}
			}
			if len(some) == 0 {
				t.Skip("nobody is there")
			}
			return rapid.SampledFrom(some).Draw(t, "request")
		}
		attempt := func(l *ledger) int { return rapid.IntRange(0, l.sent+1).Draw(t, "attempt") }
		t.Repeat(map[string]func(*rapid.T){
			"begin": func(t *rapid.T) {
				if len(c.all) > 12 {
					t.Skip("enough")
				}
				c.begin()
			},
			"fail": func(t *rapid.T) {
				l := live()
				v := bad.Draw(t, "verdict")
				if v.Scope == resilience.ScopeRequest {
					l.unfit = true
				}
				l.step(Event{Type: Failed, Attempt: attempt(l), Verdict: v, Again: rapid.Bool().Draw(t, "again")})
			},
			"content": func(t *rapid.T) { l := live(); l.step(Event{Type: Content, Attempt: attempt(l)}) },
			"slow": func(t *rapid.T) {
				l := live()
				id := attempt(l)
				l.slow[id] = true
				l.step(Event{Type: Slow, Attempt: id})
			},
			"suspect": func(t *rapid.T) { l := live(); l.step(Event{Type: Suspect, Attempt: attempt(l)}) },
			"end": func(t *rapid.T) {
				l := live()
				ev := Event{Type: Ended, Attempt: attempt(l), Resume: rapid.Bool().Draw(t, "resume")}
				if rapid.Bool().Draw(t, "badly") {
					ev.Verdict = bad.Draw(t, "verdict")
				}
				l.step(ev)
			},
			"abandon": func(t *rapid.T) {
				if rapid.IntRange(0, 3).Draw(t, "rarely") > 0 {
					t.Skip("not now")
				}
				live().step(Event{Type: Abandoned})
			},
			"pass": func(t *rapid.T) {
				c.pass(time.Duration(rapid.SampledFrom([]int{1, 100, 250, 1000, 2000, 5000, 30000}).Draw(t, "time")) * time.Millisecond)
			},
			"": func(*rapid.T) {},
		})
		for _, l := range c.all {
			if l.answer != nil && !l.over {
				l.step(Event{Type: Ended, Attempt: l.answer.ID})
			}
		}
		c.pass(2 * time.Minute) // beyond every deadline
		for i, l := range c.all {
			if !l.over {
				t.Fatalf("request %d never ends", i)
			}
		}
		if c.lobby.Waiting() != 0 || len(c.lobby.rooms) != 0 || len(c.lobby.due) != 0 {
			t.Fatalf("%d wait in %d rooms when all is over", c.lobby.Waiting(), len(c.lobby.rooms))
		}
		c.now = c.now.Add(40 * 24 * time.Hour)
		for _, p := range c.plans {
			for i := range p.Targets {
				permit, err := p.Targets[i].Acquire()
				if err != nil {
					t.Fatalf("a permit was never settled: %v", err)
				}
				permit.Neutral()
			}
		}
	})
}

// places are the targets of a plan in its own order.
func places(p *Plan) []int {
	all := make([]int, len(p.Targets))
	for i := range all {
		all[i] = i
	}
	return all
}
