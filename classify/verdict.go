package classify

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"omniroute/resilience"
)

const ruleHealthy = "healthy"

// waitable is the longest stated wait after which the same target is worth another try within
// the same request.
const waitable = time.Minute

// conclude makes the verdict of a rule that matched. What the kind and the hint imply is filled
// in for built-in rules; an operator's rule says what it means.
func conclude(a *answer, r *compiled, m matched, builtin bool) resilience.Verdict {
	v := resilience.Verdict{Scope: r.Scope, Kind: r.Kind, Certain: r.Certain, Quarantine: r.Quarantine,
		Cooldown: r.Cooldown, Constant: r.Constant, Rule: r.ID}
	if builtin {
		v.Scope = refineScope(a, r)
		v.Kind = refineKind(a, r, m)
		if person(r, v) {
			v.Certain = v.Scope == resilience.ScopeModel
			v.Quarantine = v.Scope == resilience.ScopeConnection
		}
	}
	ignored := ""
	if h := a.hints.best; h.ok {
		if hinted(v) && !r.noHint {
			v.RetryAfter, v.Until, v.Prose = h.wait, h.until, h.prose
		} else if v.Scope != resilience.ScopeRequest && v.Scope != resilience.ScopeClient {
			ignored = "; " + h.source + " " + clip(h.given, 40) + " ignored: waiting does not cure this"
		}
	}
	implyWindow(a, r, &v)
	v.RetrySame = retrySameTarget(a, r, v)
	v.RetryElsewhere = v.Scope != resilience.ScopeClient && v.Scope != resilience.ScopeLocal && !r.elseNot
	if a.in.Phase == PhaseMidStream {
		v.RetrySame, v.RetryElsewhere = false, false
	}
	v.Evidence = evidence(a, m, v, ignored)
	return v
}

// refineScope narrows or widens a rule's scope by what the words name.
func refineScope(a *answer, r *compiled) resilience.Scope {
	model := a.facts&(namesModel|isNamed) != 0
	switch r.by {
	case byRate:
		switch {
		case model, a.has(isRelayed):
			return resilience.ScopeModel
		case a.in.RateLimitScope == resilience.ScopeModel || a.in.RateLimitScope == resilience.ScopeConnection:
			return a.in.RateLimitScope
		}
		return a.traits.rate
	case byLoad:
		if model {
			return resilience.ScopeModel
		}
		return a.traits.load
	case byResource:
		if model {
			return resilience.ScopeModel
		}
	case byWork:
		if model || a.has(isShared) || a.has(isRelayed) {
			return resilience.ScopeModel
		}
	case byFault:
		if a.traits.reseller || a.facts&isRelayed != 0 {
			return resilience.ScopeModel
		}
	}
	return r.Scope
}

// refineKind tells a rate limit from a quota by the stated wait: beyond ten minutes it is a quota
// where anything speaks of one, whatever the code; a shorter one is a rate limit, although the words
// speak of a quota. A long wait alone proves no quota and stays under the cap of rate limits. A quota that a code, a quota id or a known window states stays one.
func refineKind(a *answer, r *compiled, m matched) resilience.Kind {
	switch {
	case r.Kind == resilience.KindRateLimit && r.Scope != resilience.ScopeProvider && a.has(isLongHint|saysQuota):
		return resilience.KindQuotaExhausted
	case r.Kind == resilience.KindQuotaExhausted && r.window == "" && m.text != nil && m.code == nil && !r.Certain && !a.has(isDayQuota) &&
		a.hints.best.ok && !a.has(isLongHint):
		return resilience.KindRateLimit
	}
	return r.Kind
}

// person reports whether the kind, at its scope, usually needs one.
func person(r *compiled, v resilience.Verdict) bool {
	if r.soft {
		return false
	}
	switch v.Kind {
	case resilience.KindBilling, resilience.KindAuth, resilience.KindPermission, resilience.KindModelNotFound:
		return true
	}
	return r.Certain || r.Quarantine
}

// hinted reports whether a stated wait can be true for the verdict.
func hinted(v resilience.Verdict) bool {
	if v.Certain || v.Quarantine {
		return false
	}
	switch v.Scope {
	case resilience.ScopeModel, resilience.ScopeConnection, resilience.ScopeProvider:
		return v.Kind != resilience.KindPermission
	}
	return false
}

// implyWindow dates the end of a quota whose window the rule or a quota id knows. A stated wait
// that is longer stays; one that is shorter is outranked by a structured quota id only.
func implyWindow(a *answer, r *compiled, v *resilience.Verdict) {
	window := r.window
	if window == "" || a.in.Now.IsZero() || v.Certain || v.Quarantine || v.Kind != resilience.KindQuotaExhausted {
		return
	}
	if v.RetryAfter > 0 && !a.has(isDayQuota) {
		return
	}
	span, zone, _ := strings.Cut(window, ":")
	end := nextDay(a.in.Now, zone)
	if span == "month" {
		end = nextMonth(a.in.Now, zone)
	}
	if end.After(v.Until) {
		v.Until = end
	}
}

func retrySameTarget(a *answer, r *compiled, v resilience.Verdict) bool {
	wait := max(v.RetryAfter, 0)
	if !v.Until.IsZero() {
		wait = max(wait, v.Until.Sub(a.in.Now))
	}
	if wait > waitable || r.same == sameNo || v.Certain || v.Quarantine || v.Scope == resilience.ScopeClient {
		return false
	}
	if r.same == sameYes {
		return true
	}
	if v.Scope == resilience.ScopeRequest {
		return false
	}
	switch {
	case v.Kind == resilience.KindRateLimit, v.Kind.Transient():
		return true
	case v.Kind == resilience.KindQuotaExhausted:
		return wait > 0
	}
	return false
}

const maxEvidence = 360

// evidence tells a person what was read: status, code and where it stood, the rule's words, the
// hint. It repeats nothing of the upstream's but codes and numbers.
func evidence(a *answer, m matched, v resilience.Verdict, ignored string) string {
	b := make([]byte, 0, 160)
	if a.in.Status != 0 {
		b = append(b, "status "...)
		b = strconv.AppendInt(b, int64(a.in.Status), 10)
		if a.status != a.in.Status && a.status != 0 {
			b = append(b, " stating "...)
			b = strconv.AppendInt(b, int64(a.status), 10)
		}
	} else {
		b = append(b, a.in.Phase.String()...)
	}
	if m.code != nil {
		b = append(b, "; code "...)
		b = append(b, redactCode(m.code.canon)...)
		b = append(b, " at "...)
		b = append(b, m.code.at...)
	}
	if m.text != nil {
		b = append(b, "; words \""...)
		for i, f := range m.text.frags {
			if i > 0 {
				b = append(b, " … "...)
			}
			b = append(b, f...)
		}
		b = append(b, '"')
	}
	if m.code == nil && m.text == nil {
		b = append(b, "; "...)
		b = append(b, shapeName(a.facts)...)
	}
	switch h := a.hints.best; {
	case ignored != "":
		b = append(b, ignored...)
	case h.ok && (v.RetryAfter > 0 || !v.Until.IsZero()):
		b = append(b, "; hint "...)
		b = append(b, h.source...)
		b = append(b, ' ')
		b = append(b, clip(h.given, 60)...)
	}
	if v.Until.IsZero() || !a.hints.best.until.Equal(v.Until) {
		if !v.Until.IsZero() {
			b = append(b, "; quota window ends "...)
			b = v.Until.UTC().AppendFormat(b, time.RFC3339)
		}
	}
	if h := a.hints.absurd; h.ok {
		why := "already past"
		switch {
		case h.wait > maxHint:
			why = "longer than 31 days"
		case h.wait < 0 && h.until.IsZero():
			why = "negative"
		}
		b = append(b, fmt.Sprintf("; %s %s ignored: %s", h.source, clip(h.given, 40), why)...)
	}
	return clip(string(b), maxEvidence)
}

func shapeName(f fact) string {
	for _, s := range [...]struct {
		f    fact
		name string
	}{{isChallenge, "challenge page"}, {isHTML, "HTML page"}, {isEmpty, "no body"}, {isBlank, "keep-alives only"}, {isHollow, "empty answer"}, {isNoAnswer, "no choice"}, {isGarbled, "no events of any dialect"}, {isCut, "cut short"}, {isBlocked, "blocked prompt"}, {isPlain, "plain text"}, {isStream, "events"}, {isJSON, "error envelope"}} {
		if f&s.f != 0 {
			return s.name
		}
	}
	return "no envelope"
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n-3], "") + "…"
}

// settle finishes a transport verdict.
func settle(v resilience.Verdict, in Input) resilience.Verdict {
	if in.Phase == PhaseMidStream {
		v.RetrySame, v.RetryElsewhere = false, false
	}
	return v
}
