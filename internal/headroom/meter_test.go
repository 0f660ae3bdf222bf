package headroom

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"omniroute/failover"
	"omniroute/resilience"
)

var (
	limited  = resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindRateLimit}
	account  = resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
	good     = resilience.Verdict{}
	broken   = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError}
	oneToken = known(&failover.Ask{})
)

// bench is a meter and a clock.
type bench struct {
	t   testing.TB
	now time.Time
	a   *Account
	m   *Meter
}

func newBench(t testing.TB, model string) *bench {
	b := &bench{t: t, now: now, a: new(Account)}
	b.m = NewMeter(b.a, model, resilience.ScopeConnection)
	return b
}

func (b *bench) send(a *failover.Ask) *Reservation {
	a.Needs()
	return b.m.Reserve(a, b.now).(*Reservation)
}

// heard sends a request that is answered at once, with these headers.
func (b *bench) heard(lines string) {
	r := b.send(oneToken)
	r.Heard(headers(lines), b.now)
	r.Done(good, b.now)
}

// held returns for how long a request would be held, 0 for not at all.
func (b *bench) held(m *Meter, a *failover.Ask) time.Duration {
	h, held := m.Hold(a, b.now)
	if !held {
		return 0
	}
	if !h.Until.After(b.now) {
		b.t.Fatalf("held until %v, which is not after %v", h.Until, b.now)
	}
	if m.Reason(a, b.now) == "" {
		b.t.Fatal("held for no reason")
	}
	return h.Until.Sub(b.now)
}

func of(input, output int64) *failover.Ask {
	return &failover.Ask{Bytes: 4 * input, Estimate: func() failover.Needs { return failover.Needs{Input: input, Output: output} }}
}

// TestHolds: what is used up is left alone until it is full again, and never for longer than a
// figure is believed.
func TestHolds(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, headers string
		after         time.Duration
		ask           *failover.Ask
		want          time.Duration
	}{
		{"plenty", "x-ratelimit-remaining-requests: 5\nx-ratelimit-reset-requests: 1m0s", 0, oneToken, 0},
		{"used up", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1m0s", 10 * time.Second, oneToken, 50 * time.Second},
		{"full again", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 1m0s", time.Minute, oneToken, 0},
		{"a reset that has passed", "x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 0s", 0, oneToken, 0},
		{"used up without a date", "x-ratelimit-remaining-requests: 0", 10 * time.Second, oneToken, 50 * time.Second},
		{"an old figure without a date", "x-ratelimit-remaining-requests: 0", time.Minute, oneToken, 0},
		{"a day's limit is asked anew", "x-ratelimit-remaining-requests-day: 0\nx-ratelimit-reset-requests-day: 43200", time.Minute, oneToken, 9 * time.Minute},
		{"another time zone", "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-01-05T18:00:00Z", figureLife, oneToken, 0},
		{"a clock that is wrong", "anthropic-ratelimit-requests-remaining: 0\nanthropic-ratelimit-requests-reset: 2026-01-05T10:00:30Z\ndate: Mon, 05 Jan 2026 10:00:20 GMT", 0, oneToken, 10 * time.Second},
		{"too few tokens for this request", "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 5000\nx-ratelimit-reset-tokens: 20", 0, of(6000, 100), 20 * time.Second},
		{"enough for another", "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 5000\nx-ratelimit-reset-tokens: 20", 0, of(600, 100), 0},
		{"a steady bucket has enough soon", "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 6000\nx-ratelimit-reset-tokens: 24s", 0, of(8900, 100), 3 * time.Second},
		{"a steady bucket has filled meanwhile", "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 6000\nx-ratelimit-reset-tokens: 24s", 3 * time.Second, of(8900, 100), 0},
		{"more than the bucket ever holds", "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 30000\nx-ratelimit-reset-tokens: 0s", 0, of(90000, 100), 0},
		{"an answer is bounded", "x-ratelimit-limit-tokens: 30000\nx-ratelimit-remaining-tokens: 6000\nx-ratelimit-reset-tokens: 24", 0, of(100, 64000), 0},
		{"prompts apart from answers", "anthropic-ratelimit-output-tokens-limit: 8000\nanthropic-ratelimit-output-tokens-remaining: 1000\nanthropic-ratelimit-output-tokens-reset: 2026-01-05T10:00:07Z", 0, of(50000, 900), 0},
		{"the plan", "anthropic-ratelimit-unified-status: rejected\nanthropic-ratelimit-unified-5h-status: rejected\nanthropic-ratelimit-unified-5h-reset: 1767607260", 0, oneToken, time.Minute},
	}
	for _, c := range cases {
		b := newBench(t, "m")
		b.heard(c.headers)
		b.now = b.now.Add(c.after)
		if got := b.held(b.m, c.ask); got != c.want {
			t.Errorf("%s: held for %v, want %v", c.name, got, c.want)
		}
	}
}

// TestReach: a bucket counts for whom it is for.
func TestReach(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, headers string
		generic       resilience.Scope
		opus, sonnet  bool // held
	}{
		{"the model's", "x-ratelimit-remaining-requests: 0", resilience.ScopeConnection, true, false},
		{"unsaid, of accounts", "x-ratelimit-remaining: 0", resilience.ScopeConnection, true, true},
		{"unsaid, of models", "x-ratelimit-remaining: 0", resilience.ScopeModel, true, false},
		{"the plan's", "anthropic-ratelimit-unified-5h-status: rejected", resilience.ScopeModel, true, true},
		{"a class of models", "anthropic-ratelimit-unified-7d_opus-status: rejected", resilience.ScopeModel, true, false},
	}
	for _, c := range cases {
		b := newBench(t, "claude-opus-5")
		b.m.Generic(c.generic)
		other := NewMeter(b.a, "claude-sonnet-5", c.generic)
		b.heard(c.headers)
		if opus, sonnet := b.held(b.m, oneToken) > 0, b.held(other, oneToken) > 0; opus != c.opus || sonnet != c.sonnet {
			t.Errorf("%s: held %v and %v, want %v and %v", c.name, opus, sonnet, c.opus, c.sonnet)
		}
	}
}

// TestReservations: what is on its way counts, until the upstream counts it or it is over.
func TestReservations(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	b.heard("x-ratelimit-limit-tokens: 10000\nx-ratelimit-remaining-tokens: 10000\nx-ratelimit-reset-tokens: 60")
	first, second := b.send(of(4000, 500)), b.send(of(4000, 500))
	if b.held(b.m, of(900, 50)) != 0 || b.held(b.m, of(1000, 100)) == 0 {
		t.Error("the requests on their way are not counted for what they were taken for")
	}
	first.Heard(headers("x-ratelimit-limit-tokens: 10000\nx-ratelimit-remaining-tokens: 6000\nx-ratelimit-reset-tokens: 60"), b.now)
	if b.held(b.m, of(1400, 50)) != 0 || b.held(b.m, of(1500, 100)) == 0 {
		t.Error("the first one is counted by the upstream and by us")
	}
	first.Used(3500, 400)
	first.Done(good, b.now)
	second.Used(1000, 100) // its answer had no headers
	second.Done(good, b.now)
	second.Done(good, b.now)
	b.m.inputRatio, b.m.outputRatio = 0, 0
	if b.held(b.m, of(4800, 100)) != 0 || b.held(b.m, of(4900, 100)) == 0 {
		t.Errorf("after the second one %d tokens are left, want 4900", b.m.buckets[0].left)
	}
	third := b.send(of(4000, 500))
	third.Done(broken, b.now)
	if b.held(b.m, of(4800, 100)) != 0 {
		t.Error("a failed request has used tokens")
	}
}

// TestAnswersCountWhenTheyAreWritten: of a bucket of answers the upstream takes off only what has
// been written.
func TestAnswersCountWhenTheyAreWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	const headers0 = "anthropic-ratelimit-output-tokens-limit: 8000\nanthropic-ratelimit-output-tokens-remaining: 8000\nanthropic-ratelimit-output-tokens-reset: 2026-01-05T10:01:00Z"
	b.heard(headers0)
	r := b.send(of(10, 4000))
	r.Heard(headers(headers0), b.now)
	if b.held(b.m, of(10, 3900)) != 0 || b.send(of(10, 3000)) == nil || b.held(b.m, of(10, 2000)) == 0 {
		t.Error("an answer that is being written is not counted")
	}
}

// TestLateFiguresOnlyLower: the figure of an older request that comes later tells of before.
func TestLateFiguresOnlyLower(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	b.heard("x-ratelimit-remaining-requests: 10\nx-ratelimit-reset-requests: 60")
	old := b.send(oneToken)
	b.now = b.now.Add(time.Second)
	b.heard("x-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 59")
	old.Heard(headers("x-ratelimit-remaining-requests: 9\nx-ratelimit-reset-requests: 60"), b.now)
	old.Done(good, b.now)
	if b.held(b.m, oneToken) != 59*time.Second {
		t.Errorf("held for %v", b.held(b.m, oneToken))
	}
}

// TestAfterARefillTheSizeIsKnown: the round after a reset is not spent blindly.
func TestAfterARefillTheSizeIsKnown(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	b.heard("x-ratelimit-limit-requests: 3\nx-ratelimit-remaining-requests: 0\nx-ratelimit-reset-requests: 10")
	b.now = b.now.Add(10 * time.Second)
	for i := range 3 {
		if b.held(b.m, oneToken) != 0 {
			t.Fatalf("request %d of the new round is held", i)
		}
		b.send(oneToken)
	}
	if got := b.held(b.m, oneToken); got != refillPause {
		t.Errorf("the fourth is held for %v", got)
	}
	b.now = b.now.Add(undatedLife)
	if b.held(b.m, oneToken) != 0 {
		t.Error("a figure that is old is believed")
	}
}

// TestChargesAreLearned: a prompt that mostly comes from a cache is not taken for its length.
func TestChargesAreLearned(t *testing.T) {
	t.Parallel()
	b := newBench(t, "m")
	const left = "anthropic-ratelimit-input-tokens-limit: 50000\nanthropic-ratelimit-input-tokens-remaining: 40000\nanthropic-ratelimit-input-tokens-reset: 2026-01-05T10:01:00Z"
	b.heard(left)
	if b.held(b.m, of(100000, 100)) == 0 {
		t.Fatal("nothing is known of caches, and a request that is too large is sent")
	}
	for range 3 {
		r := b.send(of(100000, 100))
		r.Heard(headers(left), b.now)
		r.Used(2000, 100)
		r.Done(good, b.now)
	}
	if got := b.held(b.m, of(100000, 100)); got != 0 {
		t.Errorf("held for %v although only a fiftieth is charged", got)
	}
}

// TestMeterModel sends requests at random to an upstream with a fixed window, by what the meter
// says. Where figures are fresh it is never refused by a bucket of requests; nothing that was set
// aside stays so; a hold ends; and there are never more buckets than there may be.
func TestMeterModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		limit := rapid.IntRange(1, 20).Draw(t, "limit")
		span := time.Duration(rapid.IntRange(5, 120).Draw(t, "window")) * time.Second
		b := &bench{now: now, a: new(Account)}
		b.m = NewMeter(b.a, "m", resilience.ScopeConnection)
		start, used, refused, blind := now, 0, 0, true
		var running []*Reservation
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				if _, held := b.m.Hold(oneToken, b.now); held {
					return
				}
				r := b.send(oneToken)
				if b.now.Sub(start) >= span {
					start, used = b.now, 0
				}
				v := good
				if used++; used > limit {
					used--
					refused++
					v = limited
					if !blind {
						t.Fatalf("refused although the figures were known")
					}
				}
				blind = false
				r.Heard(headers(fmt.Sprintf("x-ratelimit-limit-requests: %d\nx-ratelimit-remaining-requests: %d\nx-ratelimit-reset-requests: %f",
					limit, limit-used, start.Add(span).Sub(b.now).Seconds())), b.now)
				if rapid.Bool().Draw(t, "long") {
					running = append(running, r)
				} else {
					r.Done(v, b.now)
				}
			},
			"end": func(t *rapid.T) {
				if len(running) == 0 {
					t.Skip("none runs")
				}
				running[0].Done(rapid.SampledFrom([]resilience.Verdict{good, broken}).Draw(t, "how"), b.now)
				running = running[1:]
			},
			"wait": func(t *rapid.T) {
				b.now = b.now.Add(time.Duration(rapid.IntRange(1, 30000).Draw(t, "ms")) * time.Millisecond)
			},
			"other headers": func(t *rapid.T) {
				r := b.send(oneToken)
				used++
				r.Heard(headers(fmt.Sprintf("x-ratelimit-remaining-%s: 5", rapid.StringMatching(`[a-f]tokens`).Draw(t, "name"))), b.now)
				r.Done(good, b.now)
				blind = true // it was sent without asking
			},
			"": func(t *rapid.T) {
				if len(b.m.buckets) > maxBuckets || len(b.a.buckets) > maxBuckets {
					t.Fatal("more buckets than there may be")
				}
				if h, held := b.m.Hold(oneToken, b.now); held && (!h.Until.After(b.now) || h.Until.Sub(b.now) > figureLife) {
					t.Fatalf("held until %v at %v", h.Until, b.now)
				}
				if f, known := b.m.Headroom(b.now); known && (f < 0 || f > 1) {
					t.Fatalf("headroom %v", f)
				}
			},
		})
		for _, r := range running {
			r.Done(good, b.now)
		}
		for _, x := range b.m.buckets {
			if x.reserved != 0 {
				t.Fatalf("%d are still set aside of %s", x.reserved, x.label)
			}
		}
	})
}

func TestReasons(t *testing.T) {
	t.Parallel()
	for lines, want := range map[string]string{
		"x-ratelimit-limit-requests: 60\nx-ratelimit-remaining-requests: 0": "0 of 60 left of its requests",
		"x-ratelimit-remaining: 0":                        "0 left of its requests",
		"x-ratelimit-remaining-tokens-minute: 0":          "0 left of its tokens minute",
		"anthropic-ratelimit-unified-5h-status: rejected": "the 5h window of the plan is used up",
	} {
		b := newBench(t, "m")
		b.heard(lines)
		if got := b.m.Reason(oneToken, b.now); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", lines, got, want)
		}
	}
}

// BenchmarkMeter is what a request costs at the meter: asked, reserved, heard and settled.
func BenchmarkMeter(b *testing.B) {
	h := headers("x-ratelimit-limit-requests: 100000000\nx-ratelimit-remaining-requests: 90000000\nx-ratelimit-reset-requests: 6s\nx-ratelimit-limit-tokens: 300000000\nx-ratelimit-remaining-tokens: 290000000\nx-ratelimit-reset-tokens: 6s")
	for _, told := range []bool{false, true} {
		b.Run(fmt.Sprintf("told=%v", told), func(b *testing.B) {
			m := NewMeter(new(Account), "m", resilience.ScopeConnection)
			ask := &failover.Ask{Bytes: 1000, Estimate: func() failover.Needs { return failover.Needs{Input: 250} }}
			b.ReportAllocs()
			for b.Loop() {
				if _, held := m.Hold(ask, now); held {
					b.Fatal("held")
				}
				r := m.Reserve(ask, now).(*Reservation)
				if told {
					r.Heard(h, now)
					r.Used(240, 300)
				}
				r.Done(good, now)
			}
		})
	}
}

// known returns the request with what it needs read already, so that tests that run at once may
// share it.
func known(a *failover.Ask) *failover.Ask {
	a.Needs()
	return a
}
