package resilience

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var noEarly = policy(func(p *Policy) { p.Breaker.EarlyProbes = []time.Duration{} })

// CLOSED, DEGRADED at three, OPEN at five, HALF_OPEN, CLOSED; and OPEN again. C001, C003, C101, C116.
func TestBreakerWalk(t *testing.T) {
	t.Parallel()
	r := newRig(t, noEarly)
	walk := []BreakerState{Closed, Closed, Degraded, Degraded, Open}
	for i, want := range walk {
		r.fail(fmt.Sprintf("p/c%d/m%d", i, i%2), err500)
		r.wantState("p", want, i+1)
	}
	r.refusedFor("p/fresh/m9", LayerBreaker, KindServerError, 30*sec)
	r.at(30*sec - 1)
	r.wantState("p", Open, 5)
	r.refused("p/fresh/m9")
	r.at(30 * sec)
	r.wantState("p", HalfOpen, 5)
	r.takeAs("p/fresh/m9", probing).Failure(err500)
	r.wantState("p", Open, 6)
	if b := r.provider("p").Breaker; b.OpenCycles != 2 || b.RetryAfterMs != 30_000 {
		t.Fatalf("after a failed probe: %d cycles, retry after %d ms", b.OpenCycles, b.RetryAfterMs)
	}
	r.at(60 * sec)
	r.takeAs("p/fresh/m9", probing).Success()
	r.wantState("p", Closed, 0)
	r.takeAs("p/c0/m0", normal).Success() // V5: its transient trouble went with the breaker's
	var got []EventType
	for _, e := range r.events {
		if e.Layer == LayerBreaker {
			got = append(got, e.Type)
		}
	}
	want := []EventType{EventDegraded, EventOpened, EventHalfOpen, EventOpened, EventHalfOpen, EventClosed}
	if !slices.Equal(got, want) {
		t.Fatalf("events %v, want %v", got, want)
	}
	if last := r.events[len(r.events)-1]; last.Cause != "probe_success" && last.Cause != "breaker closed" {
		t.Fatalf("the last event's cause is %q", last.Cause)
	}
}

func TestBreakerDegradedThreshold(t *testing.T) {
	t.Parallel()
	for threshold, degraded := range map[int]int{1: 1, 2: 2, 3: 2, 4: 3, 5: 3, 6: 4, 10: 6, 11: 7} {
		p := Policy{Breaker: BreakerPolicy{FailureThreshold: threshold}}.Defaults()
		if got := p.Breaker.DegradedThreshold; got != degraded {
			t.Errorf("threshold %d: degraded from %d, want %d", threshold, got, degraded)
		}
	}
}

// While OPEN single probes pass after 2 s, then 4 s, 8 s and every 10 s after the one before
// failed; reset_timeout does not move.
func TestBreakerEarlyProbes(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) { p.Breaker.ResetTimeout = time.Minute }))
	r.trip("p")
	at := time.Duration(0)
	for i, pause := range []time.Duration{2 * sec, 4 * sec, 8 * sec, 10 * sec, 10 * sec, 10 * sec} {
		r.at(at + pause - 1)
		x := r.refusedFor("p/a/m0", LayerBreaker, KindServerError, time.Minute-at-pause+1)
		if x.RetryAfter != 1 {
			t.Fatalf("probe %d: retry after %v, want 1ns", i, x.RetryAfter)
		}
		at += pause
		r.at(at)
		probe := r.takeAs("p/a/m0", probing)
		r.refused("p/b/m1")
		r.wantState("p", Open, 5+i)
		at += 500 * ms // the probe takes its time
		r.at(at)
		probe.Failure(err500)
		r.wantState("p", Open, 6+i)
	}
	r.at(time.Minute)
	r.wantState("p", HalfOpen, 11)
	// Neutral results and other scopes do not use a probe up.
	r.takeAs("p/a/m0", probing).Neutral()
	r.takeAs("p/a/m0", probing).Failure(err429.after(sec)) // C113
	r.wantState("p", HalfOpen, 11)
	r.takeAs("p/b/m0", probing).FirstContent()
	r.wantState("p", Closed, 0)
}

func TestBreakerEarlyProbeCloses(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.trip("p")
	r.at(2 * sec)
	r.takeAs("p/a/m0", probing).FirstContent()
	r.wantState("p", Closed, 0)
}

// A probe that the client cancelled tells nothing; the next one may go at once.
func TestBreakerNeutralEarlyProbeIsRepeated(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.trip("p")
	r.at(2 * sec)
	r.takeAs("p/a/m0", probing).Neutral()
	r.takeAs("p/a/m0", probing).Neutral()
	r.wantState("p", Open, 5)
}

// An upstream's own word keeps early probes away and OPEN at least that long.
func TestBreakerHeedsHints(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for i := range 5 {
		r.fail(fmt.Sprintf("p/c%d/m%d", i, i%2), err500.after(45*sec))
	}
	x := r.refusedFor("p/x/y", LayerBreaker, KindServerError, 45*sec)
	if x.RetryAfter != 45*sec {
		t.Fatalf("an early probe comes after %v, against the hint", x.RetryAfter)
	}
}

func TestBreakerHundredAtHalfOpen(t *testing.T) { // C084, C101
	t.Parallel()
	for _, slots := range []int{1, 3} {
		t.Run(fmt.Sprint(slots), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, policy(func(p *Policy) {
				p.Breaker.HalfOpenRequests = slots
				p.Breaker.EarlyProbes = []time.Duration{}
			}))
			r.trip("p")
			r.at(30 * sec)
			var admitted atomic.Int32
			var mu sync.Mutex
			var probes []Permit
			var wg sync.WaitGroup
			tt := r.Target(target("p/fresh/m0"))
			for range 100 {
				wg.Go(func() {
					if p, err := tt.Acquire(); err == nil {
						admitted.Add(1)
						mu.Lock()
						probes = append(probes, p)
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if int(admitted.Load()) != slots {
				t.Fatalf("%d of 100 were admitted, want %d", admitted.Load(), slots)
			}
			probes[0].FirstContent() // its stream may go on for minutes
			r.takeAs("p/fresh/m0", normal).Neutral()
		})
	}
}

func TestBreakerSuccessThreshold(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) {
		p.Breaker.SuccessThreshold = 2
		p.Breaker.EarlyProbes = []time.Duration{}
	}))
	r.trip("p")
	r.at(30 * sec)
	first := r.takeAs("p/a/m0", probing)
	first.FirstContent()
	r.wantState("p", HalfOpen, 5)
	first.Success() // one answer is one success
	r.wantState("p", HalfOpen, 5)
	r.takeAs("p/a/m0", probing).Success()
	r.wantState("p", Closed, 0)
}

func TestBreakerMaxBackoffMultiplier(t *testing.T) {
	t.Parallel()
	for multiplier, want := range map[float64][]time.Duration{
		1: seconds(30, 30, 30, 30, 30, 30), 4: seconds(30, 30, 30, 60, 120, 120), 3: seconds(30, 30, 30, 60, 90, 90),
	} {
		r := newRig(t, policy(func(p *Policy) {
			p.Breaker.MaxBackoffMultiplier = multiplier
			p.Breaker.EarlyProbes = []time.Duration{}
		}))
		r.trip("p")
		at := time.Duration(0)
		for _, w := range want {
			r.refusedFor("p/q/r", LayerBreaker, KindServerError, w)
			at += w
			r.at(at)
			r.takeAs("p/a/m0", probing).Failure(err500)
		}
	}
}

func TestBreakerCooldownByKind(t *testing.T) {
	t.Parallel()
	r := newRig(t, policy(func(p *Policy) {
		p.Breaker.EarlyProbes = []time.Duration{}
		p.Breaker.CooldownByKind = map[Kind]time.Duration{KindTimeout: 90 * sec, KindNetwork: 5 * sec}
	}))
	for i, k := range []Kind{KindServerError, KindServerError, KindServerError, KindServerError, KindTimeout} {
		r.fail(fmt.Sprintf("p/c%d/m%d", i, i), down(k))
		r.fail(fmt.Sprintf("q/c%d/m%d", i, i), down([]Kind{KindTimeout, KindNetwork}[i/4]))
	}
	r.refusedFor("p/x/y", LayerBreaker, KindTimeout, 90*sec)
	r.refusedFor("q/x/y", LayerBreaker, KindNetwork, 30*sec) // the longer one, of the last kind
}

// The gateway's breaker never counts a 429; one that is used alone counts all it is told.
func TestV3RateLimitsAndTheBreaker(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for i := range 20 {
		k := fmt.Sprintf("p/c%d/m", i)
		r.fail(k, err429)
		r.RecordFailure(target(k), down(KindRateLimit))
		r.RecordFailure(target(k), down(KindQuotaExhausted))
	}
	r.wantState("p", Closed, 0)
	p := r.provider("p")
	if p.Available || p.AvailableAt.IsZero() {
		t.Fatalf("with every connection out: available %v, at %v", p.Available, p.AvailableAt)
	}
	b := r.CircuitBreaker("alone", BreakerOptions{ClassifyError: func(error) Kind { return KindRateLimit }})
	for range 5 {
		_ = b.Execute(t.Context(), failing)
	}
	if s := b.Status(); s.State != Open || *s.LastKind != KindRateLimit {
		t.Fatalf("a breaker alone is %v", s.State)
	}
}

func TestV3UselessCooldownsAreRefused(t *testing.T) {
	t.Parallel()
	for _, k := range Kinds() {
		m := map[Kind]time.Duration{k: sec}
		trips := k.Transient() || k == KindUnknown || k == KindPermission
		if err := (Policy{Breaker: BreakerPolicy{CooldownByKind: m}}).Validate(); (err == nil) != trips {
			t.Errorf("breaker cooldown for %v: %v", k, err)
		}
		request := k == KindContextLength || k == KindContentPolicy || k == KindInvalidRequest || k == KindTooLarge || k == KindCanceled
		if err := (Policy{Cooldown: CooldownPolicy{CooldownByKind: m}}).Validate(); (err != nil) != request {
			t.Errorf("cooldown for %v: %v", k, err)
		}
		if err := (Policy{Lockout: LockoutPolicy{CooldownByKind: m}}).Validate(); (err != nil) != request {
			t.Errorf("lockout for %v: %v", k, err)
		}
	}
}

func TestV12OnlyASuccessResetsTheCount(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for i := range 4 {
		r.fail(fmt.Sprintf("p/c%d/m%d", i, i), err500)
	}
	for _, v := range []Verdict{
		{Scope: ScopeRequest, Kind: KindContextLength}, {Scope: ScopeClient, Kind: KindInvalidRequest},
		{Scope: ScopeLocal, Kind: KindTimeout}, err429, model(KindModelNotFound), account(KindAuth), down(KindRateLimit),
	} {
		r.RecordFailure(target("p/z/m"), v)
		r.wantState("p", Degraded, 4)
	}
	r.take("p/y/m").Neutral()
	r.at(time.Hour) // nor does time
	r.wantState("p", Degraded, 4)
	r.ok("p/x/m")
	r.wantState("p", Closed, 0)
}

// R9's engine part: attempts that wait too long open the breaker, any content closes it.
func TestR9Suspicion(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	var slow []Permit
	for i := range 6 {
		slow = append(slow, r.take(fmt.Sprintf("p/c%d/m", i)))
	}
	for i, p := range slow[:5] {
		p.Waited()
		p.Waited() // saying it again is harmless
		if suspected := r.Target(p.Key()).Suspected(); suspected != (i == 4) {
			t.Fatalf("after %d waits suspected is %v", i+1, suspected)
		}
	}
	x := r.refused("p/a/m")
	if x.Layer != LayerBreaker || x.Kind != KindTimeout {
		t.Fatalf("refused by %v for %v", x.Layer, x.Kind)
	}
	slow[0].Neutral() // hedged and cancelled
	r.wantState("p", Open, 0)
	slow[5].FirstContent()
	r.wantState("p", Closed, 0)
	r.takeAs("p/a/m", normal).Neutral()

	// A content in between starts the count anew, and after content nobody waits.
	r = newRig(t, Options{})
	slow = slow[:0]
	for range 9 {
		slow = append(slow, r.take("p/a/m"))
	}
	for _, p := range slow[:4] {
		p.Waited()
	}
	slow[4].FirstContent()
	slow[4].Waited()
	for _, p := range slow[5:] {
		p.Waited()
	}
	r.wantState("p", Closed, 0)
}

// Attempts that waited and then fail count once, in the count and in the run that may move.
func TestR9WaitsAreNotCountedTwice(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	for range 2 {
		p := r.take("p/a/m")
		p.Waited()
		p.Failure(down(KindTimeout))
		r.at(r.clock.Now().Sub(epoch) + 2*sec)
	}
	r.wantState("p", Closed, 2)
	r.ok("p/a/n") // contrast: two failures are m's own
	if l, locked := r.lockout("p/a/m"); locked {
		t.Fatalf("two timeouts locked the model: %+v", l)
	}
}

// Five quick failures among a hundred attempts that are still on their way mean nothing; when
// the rest fails too the breaker opens all the same.
func TestBreakerAmongManyInFlight(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{})
	r.fail("p/a/m", err500)
	r.Reset(target("p/a"), false) // the breaker alone counts here
	var flying []Permit
	for range 100 {
		flying = append(flying, r.takeAs("p/a/m", normal))
	}
	for i, p := range flying {
		p.Failure(err500)
		want := Degraded
		switch n := i + 2; {
		case n < 3:
			want = Closed
		case n*3 >= 100:
			want = Open
		}
		if got := r.Status().Providers[0].Breaker.State; got != want {
			t.Fatalf("after %d failures of 101 attempts: %s, want %s", i+2, got, want)
		}
	}
}

// What was sent during an earlier run says nothing of the failure that begins the next.
func TestBreakerCountsWhatARunSent(t *testing.T) {
	t.Parallel()
	r := newRig(t, Options{Config: Config{Policy: Policy{Breaker: BreakerPolicy{FailureThreshold: 1}}}})
	r.fail("p/c/m", err500)
	r.ok("p/c/n") // the run is m's, which the breaker remembers
	for range 10 {
		r.ok("p/c/n")
	}
	r.fail("p/c/n", err500)
	r.wantState("p", Open, 1)
}
