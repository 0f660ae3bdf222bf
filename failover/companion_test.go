package failover

import (
	"strings"
	"testing"
	"time"

	"omniroute/resilience"
)

// TestHedgeLaws plays requests that may be with two targets at once.
func TestHedgeLaws(t *testing.T) {
	t.Parallel()
	always := Hedge{After: time.Second, Share: 1}
	for _, c := range []struct {
		name    string
		hedge   Hedge
		limits  Limits
		single  bool
		targets []string
		play    string
		// How the attempts ended.
		outcomes string
	}{
		{name: "a second target is asked beside a slow one, and its content wins",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				slow      -> dispatch b/1/m as a hedge
				content#2 -> commit b/1/m, cancel a/1/m
				fail#1 500 -> continue
				end#2     -> finish`, outcomes: "hedge_lost answered"},
		{name: "the slow one may win",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				slow      -> dispatch b/1/m as a hedge
				content#1 -> commit a/1/m, cancel b/1/m
				end#1     -> finish`, outcomes: "answered hedge_lost"},
		{name: "an error of the slow one leaves the second running",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#1 500 -> continue
				content#2  -> commit b/1/m
				end#2      -> finish`, outcomes: "failed answered"},
		{name: "an error of the second brings the next one",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#2 500 -> dispatch c/1/m as a hedge
				content#1  -> commit a/1/m, cancel c/1/m
				end#1      -> finish`, outcomes: "answered failed hedge_lost"},
		{name: "both fail: the request moves on as usual",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"}, hedge: Hedge{After: time.Second, Share: 0.01},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#2 500 -> continue
				fail#1 500 -> dispatch c/1/m
				content    -> commit c/1/m
				end        -> finish`, outcomes: "failed failed answered"},
		{name: "two at once and no more, even where both are slow",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				slow      -> dispatch b/1/m as a hedge
				slow#2    -> continue
				slow#1    -> continue
				content#2 -> commit b/1/m, cancel a/1/m
				end#2     -> finish`, outcomes: "hedge_lost answered"},
		{name: "the second is hedged when it is alone and slow",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#1 500 -> continue
				slow#2     -> dispatch c/1/m as a hedge
				content#3  -> commit c/1/m, cancel b/1/m
				end#3      -> finish`, outcomes: "failed hedge_lost answered"},
		{name: "a refusal of the client's request does not win either, and is told when nobody answers",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#2 400 -> continue
				fail#1 500 -> give up: request`, outcomes: "failed failed"},
		{name: "after such a refusal the other may answer",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#1 400 -> continue
				slow#2     -> continue
				content#2  -> commit b/1/m
				end#2      -> finish`, outcomes: "failed answered"},
		{name: "R9: an attempt that hangs is not waited for when the request is refused",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin -> dispatch a/1/m
				slow  -> dispatch b/1/m as a hedge
				fail#2 400 -> continue
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect#1 -> give up: request, cancel a/1/m`, outcomes: "superseded failed"},
		{name: "R9: the slow one still counts as having waited, and the third comes when both hang",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				slow      -> dispatch b/1/m as a hedge
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect#1 -> continue
				slow b/1/m
				slow b/1/m
				slow b/1/m
				slow b/1/m
				suspect#2 -> dispatch c/1/m
				content   -> commit c/1/m, cancel a/1/m, cancel b/1/m
				end       -> finish`, outcomes: "superseded hedge_lost answered"},
		{name: "R9: what hangs gets its companion whatever the budget says, and only one",
			hedge: Hedge{After: time.Second, Share: 0.01}, targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#2 500 -> continue
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect#1  -> dispatch c/1/m
				slow#1     -> continue
				content    -> commit c/1/m, cancel a/1/m
				end        -> finish`, outcomes: "superseded failed answered"},
		{name: "R9: a companion is not hedged beside one that hangs",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect#1 -> dispatch b/1/m
				slow#1    -> continue
				slow#2    -> continue
				content#2 -> commit b/1/m, cancel a/1/m
				end#2     -> finish`, outcomes: "superseded answered"},
		{name: "no second target whose breaker is DEGRADED",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				other b/2/m 500
				other b/3/m 500
				other b/4/m 500
				begin   -> dispatch a/1/m
				slow    -> dispatch c/1/m as a hedge
				content -> commit c/1/m, cancel a/1/m
				end     -> finish`, outcomes: "hedge_lost answered"},
		{name: "two failures are not yet DEGRADED",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				other b/2/m 500
				other b/3/m 500
				begin   -> dispatch a/1/m
				slow    -> dispatch b/1/m as a hedge
				content -> commit b/1/m, cancel a/1/m
				end     -> finish`, outcomes: "hedge_lost answered"},
		{name: "no second target that is out, nor one that would be a probe",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				other b/1/m 429/1s
				other c/1/m 429/60s
				+2s
				begin   -> dispatch a/1/m
				slow    -> continue
				content -> commit a/1/m
				end     -> finish`, outcomes: "answered"},
		{name: "a probe is not hedged: it has its companion when it is suspicious",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				other a/1/m 429/1s
				+2s
				begin   -> dispatch a/1/m as a probe
				slow    -> continue
				suspect -> dispatch b/1/m
				content -> commit b/1/m, cancel a/1/m
				end     -> finish`, outcomes: "superseded answered"},
		{name: "another connection of the same model will do, the same connection and model never",
			targets: []string{"a/1/m", "a/2/m", "a/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch a/2/m as a hedge
				fail#2 429 -> continue
				content#1  -> commit a/1/m
				end#1      -> finish`, outcomes: "answered failed"},
		{name: "R5: it counts among the attempts", limits: Limits{MaxAttempts: 2},
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				fail#2 500 -> continue
				fail#1 500 -> give up: exhausted`, outcomes: "failed failed"},
		{name: "R5: none after the deadline", limits: Limits{Deadline: time.Minute},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin -> dispatch a/1/m
				+1m
				slow  -> continue
				late  -> give up: deadline, cancel a/1/m`, outcomes: "deadline"},
		{name: "R10: never for what would be made twice, nor beside what hangs", single: true,
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin   -> dispatch a/1/m
				slow    -> continue
				slow a/1/m
				slow a/1/m
				slow a/1/m
				slow a/1/m
				suspect -> continue
				content -> commit a/1/m
				end     -> finish`, outcomes: "answered"},
		{name: "S8: who lost the race may finish the winner's answer",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin      -> dispatch a/1/m
				slow       -> dispatch b/1/m as a hedge
				content#2  -> commit b/1/m, cancel a/1/m
				break#2 cut -> dispatch b/1/m
				fail#3 500 -> dispatch a/1/m
				slow#4     -> continue
				content    -> commit a/1/m
				end        -> finish`, outcomes: "hedge_lost failed failed answered"},
		{name: "A9: a client that leaves ends both",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin   -> dispatch a/1/m
				slow    -> dispatch b/1/m as a hedge
				abandon -> finish, cancel a/1/m, cancel b/1/m`, outcomes: "canceled canceled"},
		{name: "the deadline ends both",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin -> dispatch a/1/m
				slow  -> dispatch b/1/m as a hedge
				late  -> give up: deadline, cancel a/1/m, cancel b/1/m`, outcomes: "deadline deadline"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, resilience.Policy{})
			if c.hedge == (Hedge{}) {
				c.hedge = always
			}
			p := hedged(t, r.plan(t, c.limits, c.targets...), c.hedge)
			for range 99 {
				p.Hedge.count(r.now) // others that were quick
			}
			s := &script{t: t, rig: r, req: NewRequest(p, nil, true)}
			if c.single {
				s.req.Single()
			}
			s.play(c.play)
			if !s.req.over {
				t.Error("the script ends with its request under way")
			}
			var got []string
			for _, rec := range s.req.Records() {
				got = append(got, string(rec.Outcome))
			}
			if got := strings.Join(got, " "); got != c.outcomes {
				t.Errorf("outcomes %s, want %s", got, c.outcomes)
			}
			r.settled(t, p)
		})
	}
}
