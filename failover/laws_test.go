package failover

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// lawCase is a script that ends with its request over.
type lawCase struct {
	name    string
	policy  resilience.Policy
	limits  Limits
	targets []string
	order   Order
	play    string
}

func playLaws(t *testing.T, cases []lawCase) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.policy)
			p := r.plan(t, c.limits, c.targets...)
			var picker Picker
			if c.order != nil {
				picker = c.order
			}
			s := &script{t: t, rig: r, req: NewRequest(p, picker, true)}
			s.play(c.play)
			if !s.req.over {
				t.Error("the script ends with its request under way")
			}
			r.settled(t, p)
		})
	}
}

// TestLaws plays requests against what the laws say. Every script ends with its request over.
func TestLaws(t *testing.T) {
	t.Parallel()
	playLaws(t, []lawCase{
		{name: "R1: tried targets are tried again only after a pause, twice as long each time",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin    -> dispatch a/1/m
				fail 500 -> dispatch b/1/m
				fail 500 -> pause 250ms
				woken    -> dispatch a/1/m
				other b/1/m ok
				fail 500 -> dispatch b/1/m
				content  -> commit b/1/m
				end      -> finish`},
		{name: "R1: the pauses count against max_wait", limits: Limits{MaxWait: 700 * time.Millisecond},
			policy:  resilience.Policy{Cooldown: resilience.CooldownPolicy{TransientAfter: 9}},
			targets: []string{"a/1/m"},
			play: `
				begin    -> dispatch a/1/m
				fail 500 -> pause 250ms
				woken    -> dispatch a/1/m
				fail 500 -> give up: exhausted`},
		{name: "R1: eligibility is checked again before each attempt",
			targets: []string{"a/1/m", "a/2/m", "b/1/m"},
			play: `
				begin    -> dispatch a/1/m
				other a/2/m 429
				fail 500 -> dispatch b/1/m
				content  -> commit b/1/m
				end      -> finish`},
		{name: "R1: siblings in the order of the request",
			targets: []string{"a/1/m", "a/2/m", "a/3/m"}, order: Order{1, 2, 0},
			play: `
				begin    -> dispatch a/2/m
				fail 429 -> dispatch a/3/m
				fail 429 -> dispatch a/1/m
				content  -> commit a/1/m
				end      -> finish`},
		{name: "R2: waiting is preferred where the failed target said when, equal allowed",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				fail 429/2s -> pause 2s
				woken       -> dispatch a/1/m as a probe
				content     -> commit a/1/m
				end         -> finish`},
		{name: "R2: siblings come before patience",
			targets: []string{"a/1/m", "a/2/m", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				fail 429/1s -> dispatch a/2/m
				fail 429/2s -> pause 1s
				woken       -> dispatch a/1/m as a probe
				content     -> commit a/1/m
				end         -> finish`},
		{name: "R2: patience is a total",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin         -> dispatch a/1/m
				fail 429/1.5s -> pause 1.5s
				woken         -> dispatch a/1/m as a probe
				fail 429/1s   -> dispatch b/1/m
				content       -> commit b/1/m
				end           -> finish`},
		{name: "R2: a hint that is longer than patience moves down at once",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin         -> dispatch a/1/m
				fail 429/2.1s -> dispatch b/1/m
				content       -> commit b/1/m
				end           -> finish`},
		{name: "R2: a hint that the exclusion outlasts is no reason to wait",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				other a/1/m 429
				+1s
				other a/1/m 429
				+2s
				begin         -> dispatch a/1/m as a probe
				fail 429/1s   -> dispatch b/1/m
				content       -> commit b/1/m
				end           -> finish`},
		{name: "R2: without a hint the request moves down at once",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin    -> dispatch a/1/m
				fail 429 -> dispatch b/1/m
				content  -> commit b/1/m
				end      -> finish`},
		{name: "R2: patience_for any waits without a hint too", limits: Limits{PatienceForAny: true},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin    -> dispatch a/1/m
				fail 429 -> pause 1s
				woken    -> dispatch a/1/m as a probe
				fail 500 -> pause 250ms
				woken    -> dispatch a/1/m as a probe
				content  -> commit a/1/m
				end      -> finish`},
		{name: "R2: patience_for any has none for a target that was silent", limits: Limits{PatienceForAny: true},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin        -> dispatch a/1/m
				fail timeout -> dispatch b/1/m
				content      -> commit b/1/m
				end          -> finish`},
		{name: "R2: patience has its price where somebody else probes first",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				fail 429/1s -> pause 1s
				+1s
				hold a/1/m
				woken       -> dispatch b/1/m
				free a/1/m
				content     -> commit b/1/m
				end         -> finish`},
		{name: "R2: what is out on arrival is passed by",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				other a/1/m 429/1s
				begin   -> dispatch b/1/m
				content -> commit b/1/m
				end     -> finish`},
		{name: "R2: patience without an order is worth nothing", limits: Limits{Patience: -1},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				fail 429/1s -> dispatch b/1/m
				content     -> commit b/1/m
				end         -> finish`},
		{name: "R3: wait in the room for the soonest recovery, and go on with what is left",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				other a/1/m 429/3s
				other b/1/m 429/8s
				begin       -> room for 10s
				woken 3s    -> dispatch a/1/m as a probe
				fail 429/9s -> room for 7s
				woken 5s    -> dispatch b/1/m as a probe
				content     -> commit b/1/m
				end         -> finish`},
		{name: "R3: a recovery that comes too late is answered at once",
			targets: []string{"a/1/m"},
			play: `
				other a/1/m 429/10001ms
				begin -> give up: exhausted`},
		{name: "R3: nor is a recovery behind the deadline waited for", limits: Limits{Deadline: 2 * time.Second},
			targets: []string{"a/1/m"},
			play: `
				other a/1/m 429/3s
				begin -> give up: exhausted`},
		{name: "R3: no wait when there is none to be had", limits: Limits{MaxWait: -1},
			targets: []string{"a/1/m"},
			play: `
				begin    -> dispatch a/1/m
				fail 429 -> give up: exhausted`},
		{name: "R3: one that somebody probes is waited for",
			targets: []string{"a/1/m", "a/2/m"},
			play: `
				other a/1/m 429/1s
				other a/2/m 429/60s
				+1s
				hold a/1/m
				begin     -> room for 10s
				free a/1/m
				woken 1ms -> dispatch a/1/m as a probe
				content   -> commit a/1/m
				end       -> finish`},
		{name: "R3: the next early probe is a recovery",
			targets: []string{"a/1/m"},
			policy:  resilience.Policy{Breaker: resilience.BreakerPolicy{FailureThreshold: 1}},
			play: `
				begin    -> dispatch a/1/m
				fail 500 -> room for 10s
				woken 2s -> dispatch a/1/m as a probe
				content  -> commit a/1/m
				end      -> finish`},
		{name: "R3: a full room",
			targets: []string{"a/1/m"},
			play: `
				other a/1/m 429
				begin -> room for 10s
				full  -> give up: queue full`},
		{name: "R5: only dispatched attempts count", limits: Limits{MaxAttempts: 2},
			targets: []string{"a/1/m", "b/1/m", "c/1/m", "d/1/m"},
			play: `
				other a/1/m 429
				begin    -> dispatch b/1/m
				fail 500 -> dispatch c/1/m
				fail 500 -> give up: exhausted`},
		{name: "R5: the deadline ends it, and blames nobody",
			targets: []string{"a/1/m"},
			play: `
				begin -> dispatch a/1/m
				late  -> give up: deadline, cancel a/1/m`},
		{name: "R5: no attempt begins after the deadline", limits: Limits{Deadline: time.Minute},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin    -> dispatch a/1/m
				+1m
				fail 500 -> give up: deadline`},
		{name: "R5: an answer that has begun has no deadline here",
			targets: []string{"a/1/m"},
			play: `
				begin   -> dispatch a/1/m
				content -> commit a/1/m
				late    -> continue
				end     -> finish`},
		{name: "R6: too long a context goes only to larger windows and to unknown ones of other models",
			targets: []string{"a/1/s@8", "a/2/s@8", "b/1/s@8", "b/1/t@8", "b/1/u", "c/1/v@32"},
			play: `
				begin       -> dispatch a/1/s
				fail length -> dispatch b/1/u
				fail length -> dispatch c/1/v
				content     -> commit c/1/v
				end         -> finish`},
		{name: "R6: the same model has the same window everywhere, unless it is known to be larger",
			targets: []string{"a/1/s", "b/1/s", "c/1/s@8", "d/1/t@8", "e/1/t@9"},
			play: `
				begin       -> dispatch a/1/s
				fail length -> dispatch d/1/t
				fail length -> dispatch e/1/t
				fail length -> give up: request`},
		{name: "R6: what one provider's policy refuses, another one may not",
			targets: []string{"a/1/m", "a/2/m", "a/1/n", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				fail policy -> dispatch a/1/n
				fail policy -> dispatch b/1/m
				fail 500    -> pause 250ms
				woken       -> dispatch b/1/m
				content     -> commit b/1/m
				end         -> finish`},
		{name: "R6: what one account does not have, another may, of the same provider too",
			targets: []string{"a/1/m", "a/1/n", "a/2/m", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				fail absent -> dispatch a/2/m
				fail absent -> dispatch b/1/m
				fail absent -> give up: request`},
		{name: "R6: the client's own fault stops at once",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin    -> dispatch a/1/m
				fail 400 -> give up: request`},
		{name: "A9: a client that leaves is nobody's fault",
			targets: []string{"a/1/m"},
			play: `
				other a/1/m 429/1s
				+1s
				begin   -> dispatch a/1/m as a probe
				abandon -> finish, cancel a/1/m
				hold a/1/m
				free a/1/m
				content -> finish`},
		{name: "A9: nor is one that leaves in the middle of the answer",
			targets: []string{"a/1/m"},
			play: `
				begin   -> dispatch a/1/m
				content -> commit a/1/m
				abandon -> finish, cancel a/1/m`},
		{name: "A9: nor one that leaves while it waits",
			targets: []string{"a/1/m"},
			play: `
				other a/1/m 429/1s
				begin   -> room for 10s
				abandon -> finish
				woken   -> finish`},
		{name: "A10: in a local outage every target is tried once",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				fail dial -> dispatch b/1/m
				fail dial -> dispatch c/1/m
				fail dial -> give up: local`},
		{name: "A10: the first success ends it",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				fail dial -> dispatch b/1/m
				fail dial -> dispatch c/1/m
				content   -> commit c/1/m
				end       -> finish`},
		{name: "V10: a request with no other target rechecks a long exclusion",
			targets: []string{"a/1/m"},
			play: `
				other a/1/m quota/1h
				+61s
				begin      -> dispatch a/1/m as a probe
				fail quota -> give up: exhausted`},
		{name: "A10: a local outage keeps nobody from a recheck, which may end it",
			targets: []string{"a/1/m"},
			play: `
				other a/1/m quota/1h
				other b/1/m dial
				other c/1/m dial
				+61s
				begin   -> dispatch a/1/m as a probe
				content -> commit a/1/m
				end     -> finish`},
		{name: "V10: one with another target does not",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				other a/1/m quota/1h
				+61s
				begin   -> dispatch b/1/m
				content -> commit b/1/m
				end     -> finish`},
		{name: "a plan without targets",
			play: `
				begin -> give up: no connection`},
		{name: "news of what is over changes nothing",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin      -> dispatch a/1/m
				fail 500   -> dispatch b/1/m
				content#1  -> continue
				fail#1 500 -> continue
				suspect#1  -> continue
				woken      -> continue
				end#2      -> continue
				content    -> commit b/1/m
				content#2  -> continue
				fail#2 500 -> continue
				suspect#2  -> continue
				end#1      -> continue
				end cut    -> finish
				end        -> finish`},
	})
}
