package torture

import (
	"fmt"
	"slices"
	"time"

	"omniroute/resilience"
)

// hintCap is how long a stated wait of a kind is believed: days only of kinds that last.
func hintCap(p resilience.Policy, k resilience.Kind) time.Duration {
	if gravity[k] > gravity[resilience.KindRateLimit] {
		return p.Hints.MaxQuota
	}
	return p.Hints.Max
}

// capOf is the longest that an exclusion of a kind may last from now on.
func capOf(p resilience.Policy, layer resilience.Layer, k resilience.Kind, base time.Duration) time.Duration {
	hint := hintCap(p, k)
	switch layer {
	case resilience.LayerBreaker:
		return max(hint, time.Duration(float64(max(p.Breaker.ResetTimeout, p.Breaker.CooldownByKind[k]))*p.Breaker.MaxBackoffMultiplier))
	case resilience.LayerModel:
		hint = max(hint, p.Lockout.MaxLockout, p.Lockout.CooldownByKind[k], base, time.Second)
	}
	ladder := float64(max(p.Cooldown.Max, p.Cooldown.CooldownByKind[k], base))
	return max(hint, time.Duration(ladder*(1+p.Cooldown.Jitter)))
}

// storedCap is the longest that a stored exclusion may last: a graver cause may have been learned since it was set.
func storedCap(p resilience.Policy, g *gate) (longest time.Duration) {
	for _, k := range resilience.Kinds() {
		if gravity[k] <= gravity[g.Kind] {
			longest = max(longest, capOf(p, g.Layer, k, time.Duration(g.BaseMs)*time.Millisecond))
		}
	}
	return longest
}

func withinCap(n *node, m *moment, c *change) string {
	a := c.after
	if a == nil || !a.out || a.Quarantined {
		return ""
	}
	if m.configured || m.restarted {
		return ""
	}
	longest := time.Duration(0)
	kinds := []resilience.Kind{a.Kind}
	base := time.Duration(0)
	for i := range m.reports {
		if v, bad := m.reports[i].bad(); bad {
			kinds = append(kinds, v.Kind)
			base = max(base, v.Cooldown)
		}
	}
	if c.before.live(n.w.mono) {
		if alike(c.before, a) || a.until <= c.before.until+slack {
			return "" // it was judged when it was set
		}
		kinds = kinds[1:] // who extends it now counts
	}
	if len(kinds) > 1 && !c.before.live(n.w.mono) {
		kinds = kinds[1:]
	}
	for _, k := range kinds {
		longest = max(longest, capOf(n.policy(c.id), c.id.Layer, k, base))
	}
	if left := a.until - n.w.mono; len(kinds) > 0 && left > longest+slack && !n.byHand(m, c) && !n.widens(c) {
		return fmt.Sprintf("it lasts %v more, at most %v are allowed", left, longest)
	}
	return ""
}

// widens reports whether a connection's gate may have taken over the end of its models' gates.
func (n *node) widens(c *change) bool {
	return c.id.Layer == resilience.LayerConnection && c.id.Key.Model == "" && c.after.transient()
}

// sole returns the only report of a moment, if it is a failure that counts.
func (m *moment) sole() (*report, resilience.Verdict, bool) {
	if len(m.reports) != 1 || len(m.resets) > 0 || m.reports[0].hazy {
		return nil, resilience.Verdict{}, false
	}
	v, bad := m.reports[0].bad()
	return &m.reports[0], v, bad
}

// hint is what of a stated wait is believed.
func (n *node) hint(v resilience.Verdict, k resilience.Key) time.Duration {
	p := n.variant.policyOf(k)
	limit := hintCap(p, v.Kind)
	if v.Prose {
		limit = min(limit, p.Hints.MaxProse)
	}
	return min(v.RetryAfter, limit)
}

// ladder is the cooldown of a failure at a level, without jitter and hint.
func ladder(p resilience.Policy, v resilience.Verdict, level int) time.Duration {
	most := p.Cooldown.Max
	if v.Kind.Transient() {
		most = min(most, p.Cooldown.MaxTransient)
	}
	base := p.Cooldown.Base
	if own := p.Cooldown.CooldownByKind[v.Kind]; own > 0 {
		base, most = own, max(most, own)
	}
	if v.Cooldown > 0 {
		base = v.Cooldown
		most = max(most, base)
	}
	if v.Constant {
		level = 0
	}
	d := base
	for range min(level, p.Cooldown.MaxLevel) { // a reload may have lowered it
		d = min(d*2, most)
	}
	return min(d, most)
}

func onTheLadder(n *node, m *moment, c *change) string {
	r, v, bad := m.sole()
	a := c.after
	if !bad || a == nil || !a.out || a.Quarantined || c.id.Layer != resilience.LayerConnection || n.byHand(m, c) {
		return ""
	}
	old := c.before
	if model := c.id.Key.Model != ""; model == account(v) || model && r.key != c.id.Key {
		return ""
	}
	if !account(v) && a.Failures < n.policy(c.id).Cooldown.TransientAfter {
		return "" // by a hint alone
	}
	if old.live(n.w.mono) || !n.below(c.id, r.key) || (a.since-n.w.mono).Abs() > slack || r.begun < n.ended(c.id) {
		return ""
	}
	p := n.policy(c.id)
	step, hint := ladder(p, v, level(old)), n.hint(v, r.key)
	most := time.Duration(float64(step) * (1 + p.Cooldown.Jitter))
	got := a.until - a.since
	if got < max(step, hint)-slack || got > max(most, hint)+slack {
		return fmt.Sprintf("it lasts %v; level %d means %v, the hint %v", got, level(old), step, hint)
	}
	if want := min(level(old)+1, p.Cooldown.MaxLevel); a.Level != want {
		return fmt.Sprintf("the next level is %d, want %d", a.Level, want)
	}
	return ""
}

func opensByThreshold(n *node, m *moment, c *change) string {
	b, a := c.before, c.after
	if c.id.Layer != resilience.LayerBreaker || a == nil || !a.out || n.byHand(m, c) {
		return ""
	}
	t := n.policy(c.id).Breaker.FailureThreshold
	if b == nil || !b.out {
		if a.Failures < t && !a.Suspected {
			return fmt.Sprintf("it opened after %d failures, want %d", a.Failures, t)
		}
		return ""
	}
	if b.live(n.w.mono) && !sameStart(a, b) {
		return "a new round began while it was OPEN"
	}
	if b.live(n.w.mono) && sameStart(a, b) && a.until > b.until+slack {
		for i := range m.reports {
			if v, bad := m.reports[i].bad(); bad && n.hint(v, m.reports[i].key) > 0 {
				return ""
			}
		}
		return "a failed early probe moved the end of its round"
	}
	return ""
}

func roundLasts(n *node, m *moment, c *change) string {
	_, v, bad := m.sole()
	a := c.after
	if !bad || c.id.Layer != resilience.LayerBreaker || a == nil || !a.out || (a.since-n.w.mono).Abs() > slack || c.before.live(n.w.mono) || n.byHand(m, c) {
		return ""
	}
	p := n.policy(c.id).Breaker
	d := float64(max(p.ResetTimeout, p.CooldownByKind[v.Kind]))
	factor := 1.0
	for range a.Cycles - 3 {
		factor = min(2*factor, p.MaxBackoffMultiplier)
	}
	want := max(time.Duration(d*factor), n.hint(v, c.id.Key))
	if got := a.until - a.since; (got - want).Abs() > slack {
		return fmt.Sprintf("round %d lasts %v, want %v", a.Cycles, got, want)
	}
	if early := a.early; len(p.EarlyProbes) > 0 && early-n.w.mono < slices.Min(p.EarlyProbes)-slack {
		return fmt.Sprintf("the first early probe may pass after %v", early-n.w.mono)
	}
	return ""
}

func lockLasts(n *node, m *moment, c *change) string {
	r, v, bad := m.sole()
	a := c.after
	if !bad || c.id.Layer != resilience.LayerModel || a == nil || !a.out || v.Scope != resilience.ScopeModel || r.key != c.id.Key || n.byHand(m, c) {
		return ""
	}
	b := c.before
	if b.live(n.w.mono) || (a.since-n.w.mono).Abs() > slack || r.begun < n.ended(c.id) {
		return ""
	}
	p, hint := n.policy(c.id), n.hint(v, r.key)
	locked, relock := a.State == "locked", b != nil && b.State == "locked"
	certain := v.Certain || v.Quarantine
	if locked != (relock || certain || hint > 0 || a.Failures >= p.Lockout.MaxAttempts) {
		return fmt.Sprintf("locked is %v after %d failures (certain %v, hint %v, locked before %v)", locked, a.Failures, certain, hint, relock)
	}
	got := a.until - a.since
	if !locked {
		step := ladder(p, v, level(b))
		if got < max(step, hint)-slack {
			return fmt.Sprintf("the ladder before the lock lasts %v, want %v", got, step)
		}
		return ""
	}
	want := max(hint, time.Second)
	if hint == 0 {
		base, flat := p.Lockout.LockoutDuration, v.Kind.Transient()
		own := p.Lockout.CooldownByKind[v.Kind]
		if flat && own == 0 {
			own = p.Lockout.CooldownByKind[resilience.KindServerError]
		}
		if own > 0 {
			base = own
		}
		if v.Cooldown > 0 {
			base = v.Cooldown
		}
		want = base
		if !flat && !v.Constant {
			last := time.Duration(0)
			if b != nil {
				last = time.Duration(b.LockoutMs) * time.Millisecond
			}
			want = min(max(2*last, base), max(p.Lockout.MaxLockout, base))
		}
	}
	if (got - want).Abs() > slack {
		return fmt.Sprintf("it lasts %v, want %v", got, want)
	}
	return ""
}

func noRateLimitOpens(n *node, m *moment, c *change) string {
	if c.id.Layer != resilience.LayerBreaker || c.after == nil || c.after.Failures == 0 {
		return ""
	}
	if k := c.after.Kind; !k.Transient() && k != resilience.KindPermission && k != resilience.KindUnknown {
		return fmt.Sprintf("it counts %v", k)
	}
	return ""
}
