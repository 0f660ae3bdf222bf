package resilience

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestBackoffTable(t *testing.T) {
	t.Parallel()
	want := seconds(1, 2, 4, 8, 16, 32, 64, 120, 120, 120)
	for level, w := range want {
		if got := CalculateBackoffCooldown(float64(level)); got != w {
			t.Errorf("level %d: %v, want %v", level, got, w)
		}
	}
	for _, c := range []struct {
		level float64
		want  time.Duration
	}{
		{-1, sec}, {-0.5, sec}, {0.99, sec}, {1.99, 2 * sec}, {3.5, 8 * sec}, {15, 120 * sec}, {1e300, 120 * sec},
		{math.Inf(1), 120 * sec}, {math.Inf(-1), sec}, {math.NaN(), sec},
	} {
		if got := CalculateBackoffCooldown(c.level); got != c.want {
			t.Errorf("level %v: %v, want %v", c.level, got, c.want)
		}
	}
	if got := (Backoff{Base: time.Second, Max: math.MaxInt64, MaxLevel: 200}).Duration(200); got != math.MaxInt64 {
		t.Errorf("a ladder that overflows gives %v", got)
	}
	if got := (Backoff{Base: sec, Max: time.Hour, MaxLevel: 3}).Duration(9); got != 8*sec {
		t.Errorf("above its max level the ladder gives %v, want 8s", got)
	}
}

func TestBackoffIsMonotone(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		b := Backoff{
			Base:     time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "base")),
			Max:      time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "max")),
			MaxLevel: rapid.IntRange(0, 100).Draw(t, "levels"),
		}
		x, y := rapid.Float64().Draw(t, "x"), rapid.Float64().Draw(t, "y")
		lo, hi := b.Duration(min(x, y)), b.Duration(max(x, y))
		if lo > hi || lo <= 0 || hi > b.Max {
			t.Fatalf("%v: %v then %v", b, lo, hi)
		}
	})
}

// An upstream that always answers 429 without a hint is tried at these seconds.
func TestLadder(t *testing.T) { // C014, C127
	t.Parallel()
	r := newRig(t, Options{})
	at := time.Duration(0)
	for i, want := range seconds(0, 1, 3, 7, 15, 31, 63, 127, 247, 367) {
		if at != want {
			t.Fatalf("try %d comes at %v, want %v", i, at, want)
		}
		r.at(at)
		r.fail("p/a/m", err429)
		x := r.refused("p/a/m")
		at += x.Until.Sub(r.clock.Now())
		r.at(at - 1)
		r.refused("p/a/m")
		r.at(at)
		if c := r.conn("p", "a"); c.BackoffLevel != i+1 {
			t.Fatalf("after %d failures the next level is %d", i+1, c.BackoffLevel)
		}
	}
	for range 20 {
		r.fail("p/a/m", err429)
		at += 120 * sec
		r.at(at)
	}
	if c := r.conn("p", "a"); c.BackoffLevel != 15 {
		t.Fatalf("the level grew to %d", c.BackoffLevel)
	}
}

func TestLadderByKind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		opts Options
		v    Verdict
		want []time.Duration
	}{
		{"transient is capped", Options{}, account(KindServerError), seconds(1, 2, 4, 8, 16, 30, 30)},
		{"unknown is server_error", Options{}, account(KindUnknown), seconds(1, 2, 4, 8, 16, 30, 30)},
		{"quota", Options{}, account(KindQuotaExhausted), seconds(300, 300, 300)},
		{"auth", Options{}, account(KindAuth), seconds(120, 120)},
		{"billing", Options{}, account(KindBilling), seconds(1, 2, 4, 8, 16, 32, 64, 120, 120)},
		{"a kind's own base below the cap", policy(func(p *Policy) {
			p.Cooldown.CooldownByKind = map[Kind]time.Duration{KindRateLimit: 50 * sec}
		}), err429, seconds(50, 100, 120)},
		{"a kind's own base lifts the transient cap", policy(func(p *Policy) {
			p.Cooldown.CooldownByKind = map[Kind]time.Duration{KindTimeout: 45 * sec}
		}), account(KindTimeout), seconds(45, 45)},
		{"a zero entry means none", policy(func(p *Policy) {
			p.Cooldown.CooldownByKind = map[Kind]time.Duration{KindQuotaExhausted: 0}
		}), account(KindQuotaExhausted), seconds(1, 2)},
		{"an operator rule's base", Options{}, Verdict{Scope: ScopeConnection, Kind: KindQuotaExhausted, Cooldown: 40 * sec},
			seconds(40, 80, 120)},
		{"a constant rule", Options{}, Verdict{Scope: ScopeConnection, Kind: KindQuotaExhausted, Cooldown: time.Hour, Constant: true},
			seconds(3600, 3600)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, c.opts)
			at := time.Duration(0)
			for i, want := range c.want {
				r.fail("p/a/m", c.v)
				if left := r.refused("p/a/m").Until.Sub(r.clock.Now()); left != want {
					t.Fatalf("exclusion %d lasts %v, want %v", i, left, want)
				}
				at += want
				r.at(at)
			}
		})
	}
}

func TestLadderJitter(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Cooldown.Jitter = 0.5 }))
	different := map[time.Duration]bool{}
	for range 200 {
		r.fail("p/a/m", err429)
		left := r.refused("p/a/m").Until.Sub(r.clock.Now())
		if left < sec || left > 1500*ms {
			t.Fatalf("a cooldown of 1s with jitter 0.5 lasts %v", left)
		}
		different[left] = true
		r.Reset(Key{}, false)
		r.fail("p/a/m", err429.after(1400*ms))
		if left := r.refused("p/a/m").Until.Sub(r.clock.Now()); left < 1400*ms {
			t.Fatalf("it ends %v after a hint of 1.4s", left)
		}
		r.Reset(Key{}, false)
	}
	if len(different) < 100 {
		t.Fatalf("200 cooldowns had %d lengths", len(different))
	}
}

// The second transient failure in a row of one model cools it; its success empties the count.
func TestTransientAfter(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err500)
	r.takeAs("p/a/m", normal).Success()
	r.fail("p/a/m", err500)
	r.fail("p/a/n", err500) // another model's is another count
	r.takeAs("p/a/m", normal).Failure(down(KindTimeout))
	r.refusedFor("p/a/m", LayerConnection, KindTimeout, sec)
	r.wantReady("p/b/m", true)

	r = newRig(t, policy(func(p *Policy) { p.Cooldown.TransientAfter = 1 }))
	r.fail("p/a/m", err500)
	r.refusedFor("p/a/m", LayerConnection, KindServerError, sec)

	// Upstream's own word cools at once. C004.
	r = newRig(t, Options{})
	r.fail("p/a/m", err500.after(2*sec))
	x := r.refusedFor("p/a/m", LayerConnection, KindServerError, 2*sec)
	if x.RetryAfter != 2*sec {
		t.Fatalf("retry after %v", x.RetryAfter)
	}
	r.wantState("p", Closed, 1)
}

func TestV6Hints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		v       Verdict
		want    time.Duration
		clamped bool
	}{
		{"short", err429.after(7 * sec), 7 * sec, false},
		{"shorter than the ladder", err429.after(10 * ms), sec, false},
		{"rate limit at its cap", err429.after(10 * time.Minute), 10 * time.Minute, false},
		{"rate limit over its cap", err429.after(2 * time.Hour), 10 * time.Minute, true},
		{"transient over its cap", account(KindServerError).after(time.Hour), 10 * time.Minute, true},
		{"quota", account(KindQuotaExhausted).after(2 * time.Hour), 2 * time.Hour, false}, // C019
		{"quota over its cap", account(KindQuotaExhausted).after(1000 * time.Hour), 744 * time.Hour, true},
		{"prose", Verdict{Scope: ScopeConnection, Kind: KindQuotaExhausted, RetryAfter: 5 * time.Hour, Prose: true}, time.Hour, true},
		{"prose for a rate limit", Verdict{Scope: ScopeConnection, Kind: KindRateLimit, RetryAfter: 5 * time.Hour, Prose: true}, 10 * time.Minute, true},
		{"a date", Verdict{Scope: ScopeConnection, Kind: KindRateLimit, Until: epoch.Add(42 * sec)}, 42 * sec, false},
		{"a date in the past", Verdict{Scope: ScopeConnection, Kind: KindRateLimit, Until: epoch.Add(-42 * sec)}, sec, false},
		{"a date and a wait", Verdict{Scope: ScopeConnection, Kind: KindRateLimit, Until: epoch.Add(42 * sec), RetryAfter: 50 * sec}, 50 * sec, false},
		{"a negative wait", err429.after(-time.Hour), sec, false},
		{"the longest there is", err429.after(math.MaxInt64), 10 * time.Minute, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, Options{})
			r.fail("p/a/m", c.v)
			r.refusedFor("p/a/m", LayerConnection, c.v.Kind, c.want)
			if e := r.Events(1)[0]; e.Clamped != c.clamped || e.Type != EventCooling {
				t.Fatalf("event %v, clamped %v, want %v", e.Type, e.Clamped, c.clamped)
			}
		})
	}
}
