package resilience

import (
	"encoding/binary"
	"testing"
	"time"
)

// steps reads a fuzzer's bytes as numbers.
type steps []byte

func (s *steps) next() uint64 {
	var b [8]byte
	n := copy(b[:4], *s)
	*s = (*s)[n:]
	return binary.LittleEndian.Uint64(b[:])
}

func (s *steps) upTo(n int) int { return int(s.next() % uint64(n)) }

// FuzzTransitions runs the pure transitions with instants that jump about, as no clock does: the
// gates must stay within their bounds whatever happens to them.
func FuzzTransitions(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x01\x00\x00\x00\x02\x00\x00\x00\x03\x00\x00\x00\x04\x00\x00\x00"))
	f.Add(make([]byte, 400))
	f.Fuzz(func(t *testing.T, b []byte) {
		s := steps(b)
		p := modelPolicies[s.upTo(len(modelPolicies))].Defaults()
		breaker, cool, lock := newBreaker(), gate{}, newLockout()
		seq, id := uint64(1), uint64(0)
		var now instant
		for len(s) > 0 {
			switch s.upTo(4) {
			case 0:
				now = instant(s.next()) * time.Millisecond // anywhere within 50 days
			case 1:
				now += instant(s.upTo(60_000)) * time.Millisecond
			}
			seq++
			r := report{
				key: Key{"p", "a", string(rune('m' + s.upTo(3)))}, kind: Kind(s.upTo(int(kindCount))), seq: seq,
				begun: uint64(s.upTo(int(seq))), certain: s.upTo(8) == 0, constant: s.upTo(8) == 0,
				base: time.Duration(s.upTo(4)) * 20 * time.Second,
			}
			if s.upTo(3) == 0 {
				r.hint = min(time.Duration(s.next())*time.Millisecond, p.Hints.MaxQuota)
			}
			if s.upTo(2) == 0 {
				r.lease = id
			}
			gates := [3]*gate{&breaker, &cool, &lock}
			before := [3]gate{breaker, cool, lock}
			switch s.upTo(8) {
			case 0:
				breaker = breaker.breakerFail(r, &p, now)
				cool = cool.cooldownFail(r, &p, now)
				lock = lock.lockoutFail(r, &p, now)
			case 1:
				cool = cool.transientFail(r, &p, now)
			case 2:
				breaker = breaker.breakerWait(r, &p, now)
			case 3:
				var moved []evidence
				breaker, _, moved = breaker.breakerSuccess(r.key.Model, r.begun, seq, &p)
				for _, m := range moved {
					if m.key.Model == r.key.Model {
						t.Fatalf("the run of %v moved to the model that was answered", m)
					}
					lock = lock.lockoutMoved(max(m.count, m.waited), r, &p, now)
					breaker = breaker.withMoved(m.key.Model, &p, now)
				}
			case 4:
				cool = cool.success(r.begun, seq)
				lock = lock.success(r.begun, seq)
			case 5:
				id++
				answers := [3]answer{breaker.breakerAsk(r.key.Model, &p, s.upTo(2) == 0, now), cool.ask(&p, false, now), lock.ask(&p, true, now)}
				for i, g := range gates {
					*g = g.admit(answers[i], id, &p, now)
				}
			case 6:
				for _, g := range gates {
					*g = g.release(r.lease)
				}
			case 7:
				for _, g := range gates[1:] {
					*g = g.aged(&p, now, seq)
				}
			}
			for i, g := range gates {
				slots := 1
				if i == 0 {
					slots = p.Breaker.HalfOpenRequests
				}
				if n, _ := g.running(now); n > slots && now >= before[i].since {
					// Only a clock that went back can bring dead leases to life.
					live := 0
					for _, l := range before[i].leases {
						if now < l.until {
							live++
						}
					}
					if live <= slots && n > live+1 {
						t.Fatalf("gate %d has %d leases", i, n)
					}
				}
				if g.level < 0 || g.level > 15 || g.failures < 0 {
					t.Fatalf("gate %d has level %d and %d failures", i, g.level, g.failures)
				}
				if g.excluded && g.setAt == seq && !g.quarantined {
					if left := g.until - now; left < 0 || left > p.Hints.MaxQuota {
						t.Fatalf("gate %d was set for %v", i, left)
					}
				}
				if g.excluded && before[i].excluded && before[i].setAt == g.setAt && g.until < before[i].until {
					t.Fatalf("gate %d was shortened from %v to %v", i, before[i].until, g.until)
				}
				if g.level > before[i].level+1 {
					t.Fatalf("gate %d rose from level %d to %d at once", i, before[i].level, g.level)
				}
			}
		}
	})
}

// FuzzRestore loads whatever may stand in a table under a wall clock that may have jumped: no
// exclusion lasts longer than its kind's cap, and what was loaded can be stored and loaded again.
func FuzzRestore(f *testing.F) {
	f.Add(uint8(1), uint8(8), "OPEN", 3, 5, int64(0), int64(30_000), int64(0), `{"early_ms":2000,"run":[{"provider":"p","kind":"timeout","count":5}]}`, int64(-3600_000))
	f.Add(uint8(2), uint8(1), "cooling", 3, 5, int64(0), int64(1<<60), int64(0), `{"quarantined":true}`, int64(0))
	f.Add(uint8(3), uint8(6), "locked", -3, -5, int64(-1<<60), int64(1<<62), int64(1<<62), `{"recent_ms":[1,2,3]}`, int64(1<<40))
	f.Add(uint8(4), uint8(0), "excluded", 0, 0, int64(5), int64(9), int64(0), `{"reason":"x"}`, int64(0))
	f.Fuzz(func(t *testing.T, layer, kind uint8, state string, level, failures int, since, until, lockout int64, detail string, jump int64) {
		const century = int64(100*365*24) * 3600_000
		clamp := func(ms int64) int64 { return min(max(ms, -century), century) }
		clock := newClock()
		clock.set(epoch.Add(time.Duration(clamp(jump)) * time.Millisecond))
		base := epoch.UnixMilli()
		r := Record{Layer: Layer(layer%4 + 1), Key: target("p/a/m"), Kind: Kind(kind), State: state, Level: level, Failures: failures,
			LockoutMs: lockout, Detail: detail}
		switch r.Layer {
		case LayerBreaker:
			r.Key = target("p")
		case LayerConnection:
			if level%2 == 0 {
				r.Key = target("p/a")
			}
		}
		if since != 0 {
			r.SinceMs = base + clamp(since)
		}
		if until != 0 {
			r.UntilMs = base + clamp(until)
		}
		load := func(r Record) (*Engine, *mapStore) {
			store := newStore()
			store.records[r.ID()] = r
			e, err := New(Options{Store: store, Now: clock.Now, Logger: quiet})
			if err != nil {
				t.Fatal(err)
			}
			if err := e.sync(t.Context()); err != nil {
				t.Fatal(err)
			}
			return e, store
		}
		e, _ := load(r)
		tt := e.Target(target("p/a/m"))
		x, out := tt.Check()
		p := e.policy
		limit := p.Hints.of(x.Kind)
		if x.Layer == LayerOperator {
			limit = maxDuration
		}
		if x.Layer == LayerModel {
			limit = max(limit, p.Lockout.MaxLockout)
		}
		ruled := tt.conn.cool.base + tt.cool.base + tt.lock.base
		if ruled == 0 && out && !x.Until.IsZero() && x.Until.Sub(clock.Now()) > limit {
			t.Fatalf("%v is out for %v, at most %v is allowed", x.Kind, x.Until.Sub(clock.Now()), limit)
		}
		e.Status()
		for _, v := range []Verdict{err500, err429, model(KindServerError)} {
			e.RecordFailure(target("p/a/m"), v)
		}
		e.RecordSuccess(target("p/a/m"))
		for id := range e.persist.stored {
			if again, ok := e.record(id, edge{clock.Now(), clock.Now().Sub(e.start)}); ok {
				two, _ := load(again)
				got, ok := two.record(id, edge{clock.Now(), clock.Now().Sub(two.start)})
				if ok && got != again {
					t.Fatalf("stored, loaded and stored again\n%+v became\n%+v", again, got)
				}
			}
		}
	})
}
