package resilience

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// busy brings one of everything into an engine that is worth storing.
func busy(t *testing.T, e *Engine) {
	t.Helper()
	report := func(k string, v Verdict) { e.RecordFailure(target(k), v) }
	report("cooling/a/m", err429.after(60*sec))
	report("cooling/b/m", account(KindQuotaExhausted).after(100*time.Hour))
	report("cooling/c/m", revoked)
	for range 2 {
		report("counting/a/m", err500)
	}
	for i := range 5 {
		report([]string{"open/a/m", "open/b/n"}[i%2], err500)
	}
	for range 5 {
		report("sole/a/m", err500)
	}
	report("moved/a/m", err500)
	e.RecordSuccess(target("moved/a/n"))
	report("locked/a/m", Verdict{Scope: ScopeModel, Kind: KindModelNotFound, Certain: true})
	report("ladder/a/m", model(KindRateLimit))
	if err := e.Exclude(target("operator/a"), time.Hour, "sold"); err != nil {
		t.Fatal(err)
	}
	if err := e.Exclude(target("operator/b/m"), 0, ""); err != nil {
		t.Fatal(err)
	}
}

// outside makes the status what a restart must keep: not when it was read, nor what only the
// process knew.
func outside(e *Engine) Status {
	s := e.Status()
	s.Now = Timestamp{}
	for i := range s.Providers {
		p := &s.Providers[i]
		for j := range p.Connections {
			p.Connections[j].LastError = nil
		}
		p.Connections = withTrouble(p.Connections)
	}
	return s
}

// withTrouble leaves out connections of which nothing is known: a restart does not know them,
// unless the configuration does.
func withTrouble(in []ConnectionStatus) []ConnectionStatus {
	var out []ConnectionStatus
	for _, c := range in {
		if c.State != Ready || c.BackoffLevel > 0 {
			out = append(out, c)
		}
	}
	return out
}

func TestP1RestartEqualsNoRestart(t *testing.T) { // C021, C024, C133
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		for _, pause := range []time.Duration{0, 500 * ms, 3 * sec, 29 * sec, 31 * sec, 2 * time.Minute, 20 * time.Minute, 30 * time.Hour} {
			store := newStore()
			one := live(t, store, Options{})
			busy(t, one)
			two := func() *Engine {
				time.Sleep(250 * ms) // what a crash may lose
				copied := &mapStore{records: store.snapshot()}
				return live(t, copied, Options{})
			}()
			time.Sleep(pause)
			want, got := outside(one), outside(two)
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%v later (-no restart +restart):\n%s", pause, d)
			}
			// And it goes on in the same way.
			for _, k := range []string{"cooling/a/m", "cooling/b/m", "open/a/m", "sole/a/n", "moved/z/m", "locked/a/m", "ladder/a/m", "counting/a/m"} {
				for _, e := range []*Engine{one, two} {
					if p, err := e.Target(target(k)).Acquire(); err == nil {
						p.Failure(err500)
						e.RecordFailure(target(k), model(KindRateLimit))
					}
				}
			}
			if d := cmp.Diff(outside(one), outside(two)); d != "" {
				t.Errorf("%v later, after more failures (-no restart +restart):\n%s", pause, d)
			}
			stop(t, one)
			stop(t, two)
		}
	})
}

// Counts that have not tripped anything yet go on where they were.
func TestP1CountsSurviveARestart(t *testing.T) {
	t.Parallel()
	restarted := func(r *rig, s *mapStore) *rig {
		t.Helper()
		if err := r.sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := newRig(t, Options{Store: s})
		next.at(r.clock.Now().Sub(epoch))
		if err := next.load(t.Context()); err != nil {
			t.Fatal(err)
		}
		return next
	}
	s := newStore()
	r := newRig(t, Options{Store: s})
	if err := r.sync(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, want := range []time.Duration{sec, 2 * sec, 2 * time.Minute, 4 * time.Minute} {
		r.fail("p/a/m", model(KindRateLimit))
		r = restarted(r, s)
		r.refusedFor("p/a/m", LayerModel, KindRateLimit, want)
		if l, _ := r.lockout("p/a/m"); l.Failures != min(i+1, 3) || l.Locked != (i >= 2) {
			t.Fatalf("after %d failures and a restart the lockout is %+v", i+1, l)
		}
		r.at(r.clock.Now().Sub(epoch) + want)
	}
	for i := range 5 {
		r.wantState("p", map[bool]BreakerState{true: Degraded, false: Closed}[i >= 3], i)
		r.fail([]string{"p/b/m", "p/c/n"}[i%2], err500)
		if i == 2 {
			r.refusedFor("p/b/m", LayerConnection, KindServerError, sec)
		}
		if i == 3 {
			r.refusedFor("p/c/n", LayerConnection, KindServerError, sec)
			r.at(r.clock.Now().Sub(epoch) + sec)
		}
		r = restarted(r, s)
	}
	r.wantState("p", Open, 5)

	// An overtaken probe's pause.
	at := r.clock.Now().Sub(epoch) + 30*sec
	r.at(at)
	probe := r.takeAs("p/d/m", probing)
	probe.Waited()
	probe.Neutral()
	r = restarted(r, s)
	if x := r.refused("p/d/m"); x.RetryAfter != 4*sec {
		t.Fatalf("after an overtaken probe and a restart the next one comes in %v", x.RetryAfter)
	}
}

// Whatever was reported 250 ms ago is stored, however busy the engine is.
func TestP1StoredWithin250ms(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		for i := range 200 {
			k := Key{Provider: "p", Connection: string(rune('a' + i%26)), Model: "m"}
			e.RecordFailure(k, err429.after(time.Hour))
			time.Sleep(13 * ms)
			e.RecordFailure(Key{Provider: "q", Connection: "c", Model: "m"}, err500)
			time.Sleep(237 * ms)
			if _, ok := store.snapshot()[RecordID{LayerConnection, Key{Provider: "p", Connection: k.Connection}}]; !ok {
				t.Fatalf("change %d is not stored after 250 ms", i)
			}
		}
		stop(t, e)
	})
}

func TestP1TablesSpeakForThemselves(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		now := time.Now().UnixMilli()
		busy(t, e)
		time.Sleep(250 * ms)
		type row struct {
			State       string
			Kind        Kind
			Level       int
			Failures    int
			Since, Left int64
			Lock        int64
		}
		got := map[string]row{}
		for id, r := range store.snapshot() {
			x := row{r.State, r.Kind, r.Level, r.Failures, 0, 0, r.LockoutMs}
			if r.SinceMs != 0 {
				x.Since = r.SinceMs - now
			}
			if r.UntilMs != 0 {
				x.Left = r.UntilMs - now
			}
			got[id.Layer.String()+" "+id.Key.String()] = x
		}
		want := map[string]row{
			"connection cooling/a":    {"cooling", KindRateLimit, 1, 1, 0, 60_000, 0},
			"connection cooling/b":    {"cooling", KindQuotaExhausted, 1, 1, 0, 360_000_000, 0},
			"connection cooling/c":    {"quarantined", KindAuth, 1, 1, 0, 0, 0},
			"breaker counting":        {"CLOSED", KindServerError, 0, 2, 0, 0, 0},
			"connection counting/a/m": {"cooling", KindServerError, 1, 2, 0, 1000, 0},
			"breaker open":            {"OPEN", KindServerError, 0, 5, 0, 30_000, 0},
			"connection open/a/m":     {"cooling", KindServerError, 1, 2, 0, 1000, 0},
			"connection open/b/n":     {"cooling", KindServerError, 1, 2, 0, 1000, 0},
			"breaker sole":            {"OPEN", KindServerError, 0, 5, 0, 30_000, 0},
			"connection sole/a/m":     {"cooling", KindServerError, 1, 2, 0, 1000, 0},
			"breaker moved":           {"CLOSED", KindUnknown, 0, 0, 0, 0, 0},
			"connection moved/a/m":    {"counting", KindServerError, 0, 1, 0, 0, 0},
			"model moved/a/m":         {"counting", KindServerError, 0, 1, 0, 0, 0},
			"model locked/a/m":        {"locked", KindModelNotFound, 1, 1, 0, 600_000, 600_000},
			"model ladder/a/m":        {"cooling", KindRateLimit, 1, 1, 0, 1000, 0},
			"operator operator/a":     {"excluded", KindUnknown, 0, 0, 0, 3_600_000, 0},
			"operator operator/b/m":   {"excluded", KindUnknown, 0, 0, 0, 0, 0},
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("rows (-want +got):\n%s", d)
		}
		stop(t, e)
	})
}

func TestP2WallClockJumps(t *testing.T) {
	t.Parallel()
	stored := func(t *testing.T) map[RecordID]Record {
		clock, store := newClock(), newStore()
		e, err := New(Options{Store: store, Now: clock.Now, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		busy(t, e)
		stop(t, e)
		return store.snapshot()
	}
	for _, jump := range []time.Duration{-10 * 365 * 24 * time.Hour, -time.Hour, -sec, time.Hour, 10 * 365 * 24 * time.Hour} {
		clock := newClock()
		clock.set(epoch.Add(jump))
		e, err := New(Options{Store: &mapStore{records: stored(t)}, Now: clock.Now, Logger: quiet})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		for k, most := range map[string]time.Duration{
			"cooling/a/m": 60 * sec, "cooling/b/m": 100 * time.Hour, "open/a/m": 30 * sec, "counting/a/m": sec,
			"locked/a/m": 10 * time.Minute, "operator/a/m": time.Hour,
		} {
			if x, out := e.Target(target(k)).Check(); out && x.Until.Sub(clock.Now()) > most {
				t.Errorf("after a jump of %v %s is out for %v", jump, k, x.Until.Sub(clock.Now()))
			}
		}
		if _, out := e.Target(target("cooling/c/m")).Check(); !out && jump < 0 {
			t.Errorf("a jump of %v ended a quarantine", jump)
		}
		stop(t, e)
	}
}

// What a person or a fault wrote into the tables cannot make an exclusion that never ends. C002 c.
func TestP1RepairsWhatCannotBe(t *testing.T) {
	t.Parallel()
	now := epoch.UnixMilli()
	far := now + (365 * 24 * time.Hour).Milliseconds()
	for _, c := range []struct {
		name     string
		r        Record
		most     time.Duration // how long p/a/m may be out
		repaired bool
	}{
		{"open without a time", Record{Layer: LayerBreaker, Key: target("p"), State: "OPEN"}, 0, true},
		{"open without an end", Record{Layer: LayerBreaker, Key: target("p"), State: "OPEN", SinceMs: now}, 0, true},
		{"cooling without a time", Record{Layer: LayerConnection, Key: target("p/a"), State: "cooling"}, 0, true},
		{"broken detail", Record{Layer: LayerModel, Key: target("p/a/m"), State: "locked", SinceMs: now, UntilMs: now + 1000, Detail: "{"}, 0, true},
		{"a breaker out for a year", Record{Layer: LayerBreaker, Key: target("p"), State: "OPEN", SinceMs: now, UntilMs: far}, 10 * time.Minute, false},
		{"a rate limit for a year", Record{Layer: LayerConnection, Key: target("p/a"), Kind: KindRateLimit, SinceMs: now, UntilMs: far}, 10 * time.Minute, false},
		{"a quota for a year", Record{Layer: LayerConnection, Key: target("p/a"), Kind: KindQuotaExhausted, SinceMs: now, UntilMs: far}, 744 * time.Hour, false},
		{"a kind of the future", Record{Layer: LayerConnection, Key: target("p/a"), Kind: 200, SinceMs: now, UntilMs: far}, 10 * time.Minute, false},
		{"a negative level", Record{Layer: LayerConnection, Key: target("p/a"), Level: -5, Failures: -7, SinceMs: now, UntilMs: now + 1000}, sec, false},
		{"an end before its start", Record{Layer: LayerConnection, Key: target("p/a"), SinceMs: now, UntilMs: now - 1000}, 0, false},
		{"nobody's", Record{Layer: LayerConnection, SinceMs: now, UntilMs: far}, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			store := newStore()
			store.records[c.r.ID()] = c.r
			r := newRig(t, Options{Store: store})
			if err := r.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer stop(t, r.Engine)
			if got := r.seen(EventRepaired) == 1; got != c.repaired {
				t.Errorf("repaired is %v, want %v", got, c.repaired)
			}
			x, out := r.Target(target("p/a/m")).Check()
			if out != (c.most > 0) || out && x.Until.Sub(epoch) > c.most {
				t.Errorf("out %v until %v, want at most %v", out, x.Until, c.most)
			}
		})
	}
}
