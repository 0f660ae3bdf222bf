package failover

import (
	"testing"
	"time"

	"omniroute/resilience"
)

// TestResumeLaws plays requests whose answer broke off (law S8).
func TestResumeLaws(t *testing.T) {
	t.Parallel()
	playLaws(t, []lawCase{
		{name: "the target whose answer broke off is asked first, then those not tried yet",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				fail 500  -> dispatch b/1/m
				content   -> commit b/1/m
				break cut -> dispatch b/1/m
				fail 500  -> dispatch c/1/m
				content   -> commit c/1/m
				end       -> finish`},
		{name: "another way is tried with the same target",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin            -> dispatch a/1/m
				content          -> commit a/1/m
				break cut        -> dispatch a/1/m
				fail local again -> dispatch a/1/m
				fail local       -> dispatch b/1/m
				fail local again -> dispatch b/1/m
				fail local       -> give up: exhausted`},
		{name: "never twice",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> finish`},
		{name: "a good end, or one that is nobody's failure, is not gone on with",
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin       -> dispatch a/1/m
				content     -> commit a/1/m
				break local -> finish`},
		{name: "attempts at finishing count against max_attempts", limits: Limits{MaxAttempts: 2},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> dispatch a/1/m
				fail 500  -> give up: exhausted`},
		{name: "and keep the deadline", limits: Limits{Deadline: 30 * time.Second},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				+30s
				break cut -> give up: deadline`},
		{name: "the deadline ends one that is under way", limits: Limits{Deadline: 30 * time.Second},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> dispatch a/1/m
				+30s
				late      -> give up: deadline, cancel a/1/m`},
		{name: "an excluded target is passed by",
			policy:  resilience.Policy{Cooldown: resilience.CooldownPolicy{TransientAfter: 1}},
			targets: []string{"a/1/m", "b/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> dispatch b/1/m
				content   -> commit b/1/m
				end       -> finish`},
		{name: "one that is back within the patience is waited for, once",
			policy:  resilience.Policy{Cooldown: resilience.CooldownPolicy{TransientAfter: 1}},
			targets: []string{"a/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> pause 1s
				woken     -> dispatch a/1/m as a probe
				fail 500  -> give up: exhausted`},
		{name: "a longer wait is none for a client before half an answer",
			targets: []string{"a/1/m"},
			play: `
				begin         -> dispatch a/1/m
				content       -> commit a/1/m
				break 429/30s -> give up: exhausted`},
		{name: "a request that is at fault elsewhere is not carried further",
			targets: []string{"a/1/m", "b/1/m", "c/1/m"},
			play: `
				begin     -> dispatch a/1/m
				content   -> commit a/1/m
				break cut -> dispatch a/1/m
				fail 400  -> give up: request`},
	})
}
