package resilience

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// mapStore is a store whose troubles a test decides.
type mapStore struct {
	mu      sync.Mutex
	records map[RecordID]Record
	fail    error // what calls return
	torn    bool  // a failing Apply is carried out nevertheless
	hang    bool  // calls wait for their context
	deaf    chan struct{}
	applies int
	changes int
}

func newStore() *mapStore { return &mapStore{records: map[RecordID]Record{}} }

func (s *mapStore) set(change func(*mapStore)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

func (s *mapStore) snapshot() map[RecordID]Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.records)
}

func (s *mapStore) counts() (applies, changes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.applies, s.changes
}

// trouble waits or fails as it was told.
func (s *mapStore) trouble(ctx context.Context) error {
	s.mu.Lock()
	hang, deaf, fail := s.hang, s.deaf, s.fail
	s.mu.Unlock()
	if deaf != nil {
		<-deaf
	}
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return fail
}

func (s *mapStore) Load(ctx context.Context) ([]Record, error) {
	if err := s.trouble(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []Record
	for _, r := range s.records {
		out = append(out, r)
	}
	return out, nil
}

func (s *mapStore) Apply(ctx context.Context, changes []Change) error {
	err := s.trouble(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && !s.torn {
		return err
	}
	s.applies++
	s.changes += len(changes)
	for _, c := range changes {
		if c.Delete {
			delete(s.records, c.Record.ID())
		} else {
			s.records[c.Record.ID()] = c.Record
		}
	}
	return err
}

var errStore = errors.New("disk full")

// live starts an engine on synctest's clock.
func live(t *testing.T, s Store, o Options) *Engine {
	t.Helper()
	o.Store, o.Logger = s, quiet
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { // whatever the test did
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = e.Stop(ctx)
	})
	return e
}

func stop(t *testing.T, e *Engine) {
	t.Helper()
	if err := e.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

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

func TestP3StoreFailsAndComesBack(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*mapStore, bool){
		"fails": func(s *mapStore, on bool) {
			s.fail = nil
			if on {
				s.fail = errStore
			}
		},
		"hangs": func(s *mapStore, on bool) { s.hang = on },
		"fails although it stored": func(s *mapStore, on bool) {
			s.fail, s.torn = nil, on
			if on {
				s.fail = errStore
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				e := live(t, store, Options{})
				if got := e.Status().Persistence; got != "ok" {
					t.Fatalf("persistence %q", got)
				}
				store.set(func(s *mapStore) { trouble(s, true) })
				e.RecordFailure(target("p/a/m"), err429.after(time.Hour))
				e.RecordFailure(target("p/b/m"), err429.after(time.Hour))
				time.Sleep(2 * sec)
				if got := e.Status().Persistence; got != "degraded" {
					t.Fatalf("persistence %q", got)
				}
				if e.IsReady(target("p/a/m")) || !e.IsReady(target("p/c/m")) {
					t.Fatal("routing does not go on from memory")
				}
				e.Reset(target("p/b"), false) // stored or not: it must not come back
				time.Sleep(time.Minute)
				store.set(func(s *mapStore) { trouble(s, false) })
				time.Sleep(11 * sec)
				if got := e.Status().Persistence; got != "ok" {
					t.Fatalf("persistence %q after the store is back", got)
				}
				got := store.snapshot()
				if _, ok := got[RecordID{LayerConnection, target("p/a")}]; !ok || len(got) != 1 {
					t.Fatalf("stored is %v", got)
				}
				stop(t, e)
			})
		})
	}
}

// A store that cannot be read at the start is merged when it is back. A5: the later deadline wins.
func TestP3DegradedStartThenMerge(t *testing.T) {
	t.Parallel()
	for name, trouble := range map[string]func(*mapStore, bool){
		"fails": func(s *mapStore, on bool) {
			s.fail = nil
			if on {
				s.fail = errStore
			}
		},
		"hangs": func(s *mapStore, on bool) { s.hang = on },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				before := live(t, store, Options{})
				before.RecordFailure(target("p/longer/m"), err429.after(9*time.Minute))
				before.RecordFailure(target("p/shorter/m"), err429.after(60*sec))
				before.RecordFailure(target("p/graver/m"), account(KindBilling).after(60*sec))
				before.RecordFailure(target("p/revoked/m"), revoked)
				before.RecordFailure(target("p/old/m"), err429.after(9*time.Minute))
				stop(t, before)

				store.set(func(s *mapStore) { trouble(s, true) })
				began := time.Now()
				e := live(t, store, Options{})
				if waited := time.Since(began); waited > 5*sec {
					t.Fatalf("the start waited %v", waited)
				}
				if got := e.Status().Persistence; got != "degraded" {
					t.Fatalf("persistence %q", got)
				}
				for _, c := range []string{"longer", "shorter", "graver", "revoked", "new"} {
					e.RecordFailure(Key{"p", c, "m"}, err429.after(2*time.Minute))
				}
				now := time.Now()
				store.set(func(s *mapStore) { trouble(s, false) })
				time.Sleep(20 * sec)
				if got := e.Status().Persistence; got != "ok" {
					t.Fatalf("persistence %q", got)
				}
				for c, want := range map[string]struct {
					kind  Kind
					until time.Time
				}{
					"longer": {KindRateLimit, began.Add(9 * time.Minute)}, "shorter": {KindRateLimit, now.Add(2 * time.Minute)},
					"graver": {KindBilling, now.Add(2 * time.Minute)}, "revoked": {KindAuth, time.Time{}},
					"old": {KindRateLimit, began.Add(9 * time.Minute)}, "new": {KindRateLimit, now.Add(2 * time.Minute)},
				} {
					x, out := e.Target(Key{"p", c, "m"}).Check()
					if !out || x.Kind != want.kind || !x.Until.Equal(want.until) {
						t.Errorf("%s: %v until %v, want %v until %v", c, x.Kind, x.Until, want.kind, want.until)
					}
				}
				// The merged state is what the store has, too.
				two := live(t, &mapStore{records: store.snapshot()}, Options{})
				if d := cmp.Diff(outside(e), outside(two)); d != "" {
					t.Errorf("stored (-engine +store):\n%s", d)
				}
				stop(t, two)
				stop(t, e)
			})
		})
	}
}

// Not even a store that ignores its context holds up Start, requests, status or Stop.
func TestP3StoreThatNeverReturns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.deaf = make(chan struct{})
		e := live(t, store, Options{})
		e.RecordFailure(target("p/a/m"), err429)
		if e.Status().Persistence != "degraded" || e.IsReady(target("p/a/m")) {
			t.Fatal("routing does not go on")
		}
		ctx, cancel := context.WithTimeout(t.Context(), sec)
		defer cancel()
		if err := e.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("Stop says %v", err)
		}
		close(store.deaf)
		synctest.Wait()
	})
}

func TestP5NothingIsWrittenOnTheHappyPath(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		work := func() {
			for i := range 1000 {
				p, err := e.Target(target("p/a/m")).Acquire()
				if err != nil {
					t.Fatal(err)
				}
				p.FirstContent()
				p.Success()
				if i%100 == 0 {
					time.Sleep(50 * ms)
				}
			}
			time.Sleep(sec)
		}
		work()
		if n, _ := store.counts(); n != 0 {
			t.Fatalf("%d writes for 1000 successes", n)
		}
		// Nor do successes beside a trouble that they do not change.
		e.RecordFailure(target("p/b/m"), err429.after(time.Hour))
		e.RecordFailure(target("p/c/bad"), err500)
		e.RecordSuccess(target("p/a/m"))
		time.Sleep(sec)
		n, _ := store.counts()
		work()
		if now, _ := store.counts(); now != n {
			t.Fatalf("%d writes for 1000 successes beside a cooldown", now-n)
		}
		// A probe that tells nothing changes no row.
		e.RecordFailure(target("q/a/m"), err429)
		time.Sleep(1100 * ms)
		n, _ = store.counts()
		p, _ := e.Target(target("q/a/m")).Acquire()
		p.Neutral()
		time.Sleep(sec)
		if now, _ := store.counts(); now != n {
			t.Fatal("a neutral probe was written")
		}
		stop(t, e)
	})
}

func TestWritesAreCoalesced(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		time.Sleep(sec)
		for range 1000 {
			e.RecordFailure(target("p/a/m"), err500)
			time.Sleep(ms)
		}
		time.Sleep(sec)
		if n, _ := store.counts(); n > 12 {
			t.Fatalf("%d writes in a second", n)
		}
		// Many changed gates go in bounded batches.
		before, _ := store.counts()
		for i := range 2500 {
			e.RecordFailure(Key{"q", "c", string(rune('a'+i%26)) + string(rune(0x100+i))}, model(KindRateLimit))
		}
		time.Sleep(250 * ms)
		after, _ := store.counts()
		if after-before < 3 || len(store.snapshot()) < 2500 {
			t.Fatalf("%d writes stored %d rows", after-before, len(store.snapshot()))
		}
		stop(t, e)
	})
}

func TestStopFlushes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		e.RecordFailure(target("p/a/m"), err429)
		stop(t, e)
		stop(t, e) // again is harmless
		if len(store.snapshot()) != 1 {
			t.Fatal("the last change is not stored")
		}
		if err := e.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Start(t.Context()); err == nil {
			t.Fatal("a started engine starts again")
		}
		store.set(func(s *mapStore) { s.fail = errStore })
		e.RecordFailure(target("p/b/m"), err429)
		if err := e.Stop(t.Context()); !errors.Is(err, errStore) {
			t.Fatalf("Stop says %v", err)
		}
		var never Engine
		if err := never.Stop(t.Context()); err != nil {
			t.Fatal(err)
		}
	})
}

func TestSweepForgets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		e := live(t, store, Options{})
		e.RecordFailure(target("p/a/m"), err429)
		e.RecordFailure(target("p/b/m"), model(KindRateLimit))
		e.RecordFailure(target("p/c/m"), err500)
		e.RecordSuccess(target("p/c/n")) // so that the breaker only knows a run that moved
		if err := e.Exclude(target("p/d"), time.Minute, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(4 * time.Minute)
		if len(store.snapshot()) != 5 {
			t.Fatalf("after four minutes %d rows are stored", len(store.snapshot()))
		}
		time.Sleep(2 * time.Minute)
		if got := store.snapshot(); len(got) != 0 {
			t.Fatalf("after six minutes there is %v", got)
		}
		if n := e.Trim(); n != 0 {
			t.Fatalf("%d cells are left", n)
		}
		for _, k := range []string{"p/a/m", "p/b/m", "p/c/m", "p/d/m"} {
			tt := e.Target(target(k))
			if w := tt.word.Load() | tt.conn.word.Load() | tt.dom.word.Load(); w != 0 {
				t.Errorf("%s still looks closer: %b", k, w)
			}
		}
		stop(t, e)
	})
}

func TestP4StateBelongsToIdentity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := func(names ...string) Config {
			c := Config{Providers: map[string]Provider{}}
			for _, n := range names {
				k := target(n)
				p := c.Providers[k.Provider]
				p.Connections = append(p.Connections, Connection{ID: k.Connection})
				c.Providers[k.Provider] = p
			}
			return c
		}
		store := newStore()
		e := live(t, store, Options{Config: config("p/a", "p/b", "q/a")})
		handle := e.Target(target("p/a/m"))
		for _, k := range []string{"p/a/m", "p/b/m", "q/a/m"} {
			e.RecordFailure(target(k), err429.after(time.Hour))
			e.RecordFailure(target(k), model(KindRateLimit).after(time.Hour))
			_ = e.Exclude(target(k), time.Hour, "")
		}
		time.Sleep(sec)
		if len(store.snapshot()) != 9 {
			t.Fatalf("%d rows", len(store.snapshot()))
		}
		if err := e.Configure(config("p/b", "r/a")); err != nil {
			t.Fatal(err)
		}
		time.Sleep(sec)
		for id := range store.snapshot() {
			if id.Key.Provider != "p" || id.Key.Connection != "b" {
				t.Errorf("a removed one is still stored: %v", id)
			}
		}
		if e.IsReady(target("p/b/m")) {
			t.Error("what keeps its name lost its state")
		}
		// Requests that are under way still hold the handle: it works, and leaves no trace.
		if permit, err := handle.Acquire(); err == nil {
			permit.Failure(err429.after(time.Hour))
		}
		for _, p := range e.Status().Providers {
			if p.ID == "q" || len(p.Connections) != 1 {
				t.Errorf("the status still shows %+v", p)
			}
		}
		time.Sleep(sec)
		if n := len(store.snapshot()); n != 3 {
			t.Errorf("%d rows are stored", n)
		}
		// Back again it starts clean, and the old handle is its own again.
		if err := e.Configure(config("p/a", "p/b")); err != nil {
			t.Fatal(err)
		}
		if !e.IsReady(target("p/a/m")) {
			t.Error("a connection that came back is not clean")
		}
		permit, err := handle.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		permit.Failure(err429)
		if e.IsReady(target("p/a/m")) {
			t.Error("the old handle's report is lost")
		}
		stop(t, e)
		// What the configuration lost while the process was down goes at load.
		two := live(t, store, Options{Config: config("p/b")})
		time.Sleep(sec)
		stop(t, two)
		for id := range store.snapshot() {
			if id.Key.Connection != "b" {
				t.Errorf("still stored: %v", id)
			}
		}
	})
}

// A key that was exchanged while the process was down ends a quarantine, too.
func TestV8CredentialChangedWhileDown(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := func(credential string) Options {
			return Options{Config: Config{Providers: map[string]Provider{"p": {Connections: []Connection{{ID: "a", Credential: credential}}}}}}
		}
		store := newStore()
		e := live(t, store, config("one"))
		e.RecordFailure(target("p/a/m"), revoked)
		stop(t, e)
		e = live(t, store, config("one"))
		if e.IsReady(target("p/a/m")) {
			t.Fatal("a restart ended the quarantine")
		}
		stop(t, e)
		e = live(t, store, config("two"))
		if !e.IsReady(target("p/a/m")) {
			t.Fatal("the changed credential does not end the quarantine")
		}
		stop(t, e)
		if len(store.snapshot()) != 0 {
			t.Fatal("it is still stored")
		}
	})
}
