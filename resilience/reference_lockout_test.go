package resilience

import (
	"slices"
	"time"
)

// attempts is the row of failures inside attempt_window.
func (m *reference) attempts(l *refGate, n int) {
	for range n {
		l.window = slices.DeleteFunc(l.window, func(t time.Duration) bool { return m.now-t > m.p.Lockout.AttemptWindow })
		l.window = append(l.window, m.now)
		if over := len(l.window) - m.p.Lockout.MaxAttempts; over > 0 {
			l.window = l.window[over:]
		}
	}
}

func (m *reference) failLock(l *refGate, r refReport) {
	m.forget(l)
	if m.late(l, r) {
		if r.hint > 0 {
			r.hint = max(r.hint, time.Second)
		}
		m.worsen(l, r)
		l.locked = l.locked || l.out && (r.Certain || r.hint > 0)
		return
	}
	m.attempts(l, 1)
	if l.locked || r.Certain || r.hint > 0 || len(l.window) >= m.p.Lockout.MaxAttempts {
		m.lockIt(l, r)
		return
	}
	m.exclude(l, r, m.ladder(l, r))
	l.level = min(l.level+1, 15)
	l.fails = len(l.window)
}

func (m *reference) lockMoved(k Key, kind Kind, n int) {
	l := get(m.locks, k)
	m.forget(l)
	if l.out { // it is known already; the cause may become graver (law A5)
		m.worsen(l, refReport{Verdict: Verdict{Kind: kind}})
		return
	}
	m.moved(l, refReport{Verdict: Verdict{Kind: kind}}, n)
}

func (m *reference) failMoved(l *refGate, r refReport) {
	m.forget(l)
	if m.late(l, r) {
		m.worsen(l, r)
		return
	}
	m.moved(l, r, 1)
}

func (m *reference) moved(l *refGate, r refReport, n int) {
	m.attempts(l, n)
	l.kind, l.lastFail, l.fails = r.Kind, m.now, len(l.window)
	if l.locked || len(l.window) >= m.p.Lockout.MaxAttempts {
		m.lockIt(l, r)
	}
}

func (m *reference) lockIt(l *refGate, r refReport) {
	d := max(r.hint, time.Second)
	if r.hint == 0 {
		base, most := m.p.Lockout.LockoutDuration, m.p.Lockout.MaxLockout
		own := m.p.Lockout.CooldownByKind[r.Kind]
		if r.Kind.Transient() && own == 0 {
			own = m.p.Lockout.CooldownByKind[KindServerError]
		}
		if own > 0 {
			base, most = own, max(most, own)
		}
		d = base
		if !r.Kind.Transient() {
			d = min(max(base, 2*l.lock), most)
		}
		l.lock = d
	}
	fails := max(len(l.window), l.fails, 1)
	m.exclude(l, r, d)
	l.level = min(l.level+1, 15)
	l.locked, l.fails = true, fails
}
