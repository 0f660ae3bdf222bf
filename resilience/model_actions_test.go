package resilience

import (
	"context"
	"errors"
	"slices"
	"time"

	"pgregory.net/rapid"
)

func (m *machine) pick(t *rapid.T) *pair {
	if len(m.pairs) == 0 {
		t.Skip("no attempt in flight")
	}
	return rapid.SampledFrom(m.pairs).Draw(t, "attempt")
}

func (m *machine) drop(p *pair) {
	p.ref.settled = true
	// Now and then it stays, so that it is settled again.
	m.pairs = slices.DeleteFunc(m.pairs, func(x *pair) bool { return x == p && p.ref.id%3 != 0 })
	if len(m.pairs) > 12 {
		m.pairs = m.pairs[1:] // lost
	}
}

func (m *machine) actions() map[string]func(*rapid.T) {
	key := rapid.SampledFrom(m.keys)
	return map[string]func(*rapid.T){
		"": m.check,
		"take": func(t *rapid.T) {
			k, alone := key.Draw(t, "key"), rapid.Bool().Draw(t, "alone")
			want, ref := m.ref.take(k, alone)
			acquire := m.Target(k).Acquire
			if alone {
				acquire = m.Target(k).AcquireAlone
			}
			p, err := acquire()
			if (err != nil) != want.Out || p.Probe() != want.Probe || p.Recheck() != want.Recheck {
				t.Fatalf("%s: %v, probe %v, recheck %v; want %+v", k, err, p.Probe(), p.Recheck(), want)
			}
			if err == nil {
				m.pairs = append(m.pairs, &pair{p, ref})
			} else if !errors.Is(err, ErrExcluded) {
				t.Fatal(err)
			}
		},
		"content": func(t *rapid.T) {
			p := m.pick(t)
			p.permit.FirstContent()
			if !p.ref.settled && !p.ref.content {
				p.ref.content = true
				m.ref.good(p.ref)
			}
		},
		"success": func(t *rapid.T) {
			p := m.pick(t)
			p.permit.Success()
			if !p.ref.settled {
				if !p.ref.content {
					m.ref.good(p.ref)
				}
				m.ref.over(p.ref)
			}
			m.drop(p)
		},
		"failure": func(t *rapid.T) {
			p, v := m.pick(t), m.verdicts.Draw(t, "verdict")
			p.permit.Failure(v)
			if !p.ref.settled {
				if v.Scope == ScopeNone {
					if !p.ref.content {
						m.ref.good(p.ref)
					}
					m.ref.over(p.ref)
				} else {
					m.ref.bad(p.ref, v)
				}
			}
			m.drop(p)
		},
		"neutral": func(t *rapid.T) {
			p := m.pick(t)
			p.permit.Neutral()
			if !p.ref.settled {
				m.ref.neutral(p.ref)
			}
			m.drop(p)
		},
		"waited": func(t *rapid.T) {
			p := m.pick(t)
			p.permit.Waited()
			if !p.ref.settled && !p.ref.content && !p.ref.waited {
				p.ref.waited = true
				m.ref.waited(p.ref)
			}
		},
		"time": func(t *rapid.T) {
			d := rapid.SampledFrom([]time.Duration{ms, 500 * ms, sec, 2 * sec, 4 * sec, 5 * sec, 30 * sec, 90 * sec, 6 * time.Minute, time.Hour}).Draw(t, "pass")
			m.at(m.offset() + d)
			m.ref.now = m.offset()
		},
		"next": func(t *rapid.T) { // to the moment at which something opens
			x, out, _ := m.Target(key.Draw(t, "key")).Standing(false)
			if !out || x.RetryAfter == 0 {
				t.Skip("nothing to wait for")
			}
			m.at(m.offset() + x.RetryAfter)
			m.ref.now = m.offset()
		},
		"reset": func(t *rapid.T) {
			k := key.Draw(t, "key")
			switch rapid.IntRange(0, 6).Draw(t, "width") {
			case 0:
				k = Key{}
			case 1:
				k.Connection, k.Model = "", ""
			case 2:
				k.Model = ""
			case 3:
				k.Connection = ""
			case 4, 5:
				t.Skip("resets are rare")
			}
			operator := rapid.Bool().Draw(t, "operator")
			m.Reset(k, operator)
			m.ref.reset(k, operator)
		},
		"trim": func(t *rapid.T) {
			if len(m.pairs) > 0 {
				t.Skip("reports from before a trim count as new ones")
			}
			m.Trim()
		},
	}
}

// restarted adds restarts to the actions: a new engine with what the old one stored, and without
// its attempts.
func (m *machine) restarted(actions map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	actions["restart"] = func(t *rapid.T) {
		if rapid.Bool().Draw(t, "rare") {
			t.Skip("restarts are rare")
		}
		if err := m.sync(context.Background()); err != nil {
			t.Fatal(err)
		}
		next := newRig(m.rig.t, m.opts)
		next.at(m.offset())
		if err := next.load(context.Background()); err != nil {
			t.Fatal(err)
		}
		m.rig, m.pairs = next, nil
		m.ref.restart()
	}
	return actions
}

// operated adds an operator to the actions.
func (m *machine) operated(actions map[string]func(*rapid.T)) map[string]func(*rapid.T) {
	key := rapid.SampledFrom(m.keys)
	actions["exclude"] = func(t *rapid.T) {
		k := key.Draw(t, "key")
		d := rapid.SampledFrom([]time.Duration{0, sec, 10 * sec, time.Minute}).Draw(t, "for")
		if rapid.Bool().Draw(t, "wide") {
			k.Model = ""
		}
		if err := m.Exclude(k, d, ""); err != nil {
			t.Fatal(err)
		}
		m.ref.operator[k] = refNever
		if d > 0 {
			m.ref.operator[k] = m.offset() + d
		}
	}
	actions["include"] = func(t *rapid.T) {
		for k := range m.ref.operator {
			m.Include(k)
			delete(m.ref.operator, k)
		}
	}
	return actions
}
