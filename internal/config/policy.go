package config

import (
	"fmt"
	"maps"
	"time"

	"omniroute/resilience"
)

// checkKind refuses an entry of a cooldown_by_kind that could never have an effect.
func (p *problems) checkKind(n *node, e *entry, s *spec) bool {
	if contains(s.enum, e.key) {
		return true
	}
	kind, err := resilience.ParseKind(e.key)
	if err != nil {
		p.errorAt(e.pos, n.path, "%s is not a kind of failure%s", quote(e.key), didYouMeanKind(e.key, s.enum))
		return false
	}
	if kind == resilience.KindUnknown {
		p.errorAt(e.pos, e.value.path, "what is unknown counts as server_error; write\n    server_error: %s", value(e.value))
		return false
	}
	layer := instead(kind)
	if layer == "" {
		p.errorAt(e.pos, e.value.path, "a failure of kind %s takes nothing out of service; remove it", kind)
		return false
	}
	p.errorAt(e.pos, e.value.path, "a failure of kind %s never reaches this layer; under resilience, write instead\n    %s: {cooldown_by_kind: {%s: %s}}",
		kind, layer, kind, value(e.value))
	return false
}

func didYouMeanKind(key string, kinds []string) string {
	if near := didYouMean(key, kinds); near != "" {
		return near
	}
	return "; use one of " + oneOf(kinds)
}

// value is what the file says, for a line to write instead, or an example where that could not be pasted.
func value(n *node) string {
	if d, ok := n.duration(); ok && n.shape.scalar() && d >= 0 {
		return n.text
	}
	return "1m"
}

// resilience lays the numbers of a file over a policy.
func (b *builder) resilience(n *node, p *resilience.Policy) {
	if n == nil {
		return
	}
	br := n.get("breaker")
	b.int(br.get("failure_threshold"), &p.Breaker.FailureThreshold)
	b.int(br.get("degraded_threshold"), &p.Breaker.DegradedThreshold)
	b.duration(br.get("reset_timeout"), &p.Breaker.ResetTimeout)
	if probes := br.get("early_probes"); probes.ok() {
		p.Breaker.EarlyProbes = make([]time.Duration, 0, len(probes.items))
		for _, item := range probes.items {
			var d time.Duration
			if b.duration(item, &d); d > 0 {
				p.Breaker.EarlyProbes = append(p.Breaker.EarlyProbes, d)
			}
		}
	}
	b.number(br.get("max_backoff_multiplier"), &p.Breaker.MaxBackoffMultiplier)
	b.int(br.get("half_open_requests"), &p.Breaker.HalfOpenRequests)
	b.int(br.get("success_threshold"), &p.Breaker.SuccessThreshold)
	b.duration(br.get("probe_lease"), &p.Breaker.ProbeLease)
	b.byKind(br.get("cooldown_by_kind"), &p.Breaker.CooldownByKind)

	co := n.get("cooldown")
	b.duration(co.get("base"), &p.Cooldown.Base)
	b.duration(co.get("max"), &p.Cooldown.Max)
	b.duration(co.get("max_transient"), &p.Cooldown.MaxTransient)
	b.int(co.get("max_level"), &p.Cooldown.MaxLevel)
	b.int(co.get("transient_after"), &p.Cooldown.TransientAfter)
	b.duration(co.get("forget_after"), &p.Cooldown.ForgetAfter)
	b.share(co.get("jitter"), &p.Cooldown.Jitter)
	b.byKind(co.get("cooldown_by_kind"), &p.Cooldown.CooldownByKind)

	lo := n.get("lockout")
	b.int(lo.get("max_attempts"), &p.Lockout.MaxAttempts)
	b.duration(lo.get("attempt_window"), &p.Lockout.AttemptWindow)
	b.duration(lo.get("lockout_duration"), &p.Lockout.LockoutDuration)
	b.duration(lo.get("max_lockout"), &p.Lockout.MaxLockout)
	b.byKind(lo.get("cooldown_by_kind"), &p.Lockout.CooldownByKind)

	re := n.get("recheck")
	b.duration(re.get("after"), &p.Recheck.After)
	if after := re.get("after"); after.ok() && p.Recheck.After == 0 {
		p.Recheck.After = -1 // the file's 0s is "never"; the policy's 0 is the default
	}
	b.duration(re.get("alone"), &p.Recheck.Alone)

	hi := n.get("hints")
	b.duration(hi.get("max"), &p.Hints.Max)
	b.duration(hi.get("max_quota"), &p.Hints.MaxQuota)
	b.duration(hi.get("max_prose"), &p.Hints.MaxProse)
}

func (b *builder) byKind(n *node, m *map[resilience.Kind]time.Duration) {
	if !n.ok() || len(n.entries) == 0 {
		return
	}
	merged := maps.Clone(*m)
	if merged == nil {
		merged = map[resilience.Kind]time.Duration{}
	}
	for _, e := range n.entries {
		kind, err := resilience.ParseKind(e.key)
		if err != nil || !e.value.ok() {
			continue
		}
		var d time.Duration
		b.duration(e.value, &d)
		merged[kind] = d
	}
	*m = merged
}

// contradictions reports numbers that are each possible and together are not. A provider's are
// compared as merged, and reported where the provider wrote one of the two.
func (b *builder) contradictions(n *node, p resilience.Policy) {
	if n == nil {
		return
	}
	d := p.Defaults()
	for _, c := range []struct {
		section, low, high string
		wrong              bool
		lowValue           any
		highValue          any
	}{
		{"breaker", "degraded_threshold", "failure_threshold", d.Breaker.DegradedThreshold > d.Breaker.FailureThreshold, d.Breaker.DegradedThreshold, d.Breaker.FailureThreshold},
		{"cooldown", "base", "max", d.Cooldown.Base > d.Cooldown.Max, d.Cooldown.Base, d.Cooldown.Max},
		{"lockout", "lockout_duration", "max_lockout", d.Lockout.LockoutDuration > d.Lockout.MaxLockout, d.Lockout.LockoutDuration, d.Lockout.MaxLockout},
	} {
		section := n.get(c.section)
		for _, key := range []string{c.low, c.high} {
			if at := section.get(key); c.wrong && at.ok() {
				b.errorf(at, "%s (%s) must not be above %s (%s); change one of them", c.low, plain(c.lowValue), c.high, plain(c.highValue))
				break
			}
		}
	}
	// What is left is found only if the two packages disagree; it must not pass silently then.
	if err := p.Validate(); err != nil && len(b.errors) == 0 {
		b.errorf(n, "%v", err)
	}
}

func plain(v any) string {
	if d, ok := v.(time.Duration); ok {
		return DurationText(d)
	}
	return fmt.Sprint(v)
}

// DurationText writes a duration without the zero units that time.Duration appends: 2m, not 2m0s.
func DurationText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if len(text) > len(zero) && text[len(text)-len(zero):] == zero {
			text = text[:len(text)-len(zero)+1]
		}
	}
	return text
}
