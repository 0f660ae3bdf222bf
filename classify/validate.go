package classify

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"omniroute/resilience"
)

// RuleError is a rule that the classifier refuses, and what to do about it.
type RuleError struct {
	Index  int    // position among the operator's rules, from 0
	ID     string // "error_rules[0]" when the rule has no name
	Field  string // the key at fault: "status", "text", "scope", …; empty when it is the whole rule
	Reason string
}

// Error is the rule's name, the field and the reason.
func (e *RuleError) Error() string {
	if e.Field != "" {
		return e.ID + ": " + e.Field + ": " + e.Reason
	}
	return e.ID + ": " + e.Reason
}

func operatorID(i int) string { return fmt.Sprintf("error_rules[%d]", i) }

// maxCooldown bounds a rule's cooldown: a year is a typing error.
const maxCooldown = 366 * 24 * time.Hour

// validate checks rule number i against itself and the ones before it.
func validate(i int, r Rule, before []Rule) error {
	fail := func(field, format string, args ...any) error {
		return &RuleError{Index: i, ID: r.ID, Field: field, Reason: fmt.Sprintf(format, args...)}
	}
	if len(r.Status)+len(r.Code)+len(r.Text) == 0 && r.Header == "" {
		return fail("", "it has no condition, so it would hide every other rule; add status, code, text or header")
	}
	for _, s := range r.Status {
		if s.From < 100 || s.To < s.From || s.To > 999 {
			return fail("status", "%v can never match; write a status from 100 to 999, a class such as 5xx, or a range such as 500-504", s)
		}
	}
	for _, d := range r.Dialect {
		if !slices.Contains([]string{"openai", "responses", "anthropic", "gemini"}, d) {
			return fail("dialect", "%q can never match; the dialects are openai, responses, anthropic and gemini", d)
		}
	}
	for _, c := range r.Code {
		if newCodePattern(c).s == "" {
			return fail("code", "%q can never match; a code has letters or digits", c)
		}
	}
	for _, t := range r.Text {
		if p := newPattern(t); len(p.frags) == 0 {
			return fail("text", "%q can never match; write words that the upstream's error has", t)
		}
		if string(plainWords(nil, t)) != strings.Join(strings.Fields(strings.ToLower(t)), " ") {
			return fail("text", "%q can never match, because rules do not see what the upstream puts in quotes; leave the quoted part out or write * for it", t)
		}
	}
	for _, n := range r.Not {
		p := newPattern(n)
		if len(p.frags) == 0 {
			return fail("not", "%q has no effect; write words", n)
		}
		for _, t := range r.Text {
			if p.find(strings.ReplaceAll(strings.TrimPrefix(newPattern(t).String(), "^"), " * ", " ")) > 0 {
				return fail("not", "%q excludes the rule's own text %q, so it can never match", n, t)
			}
		}
	}
	if err := checkResult(r, fail); err != nil {
		return err
	}
	for j, b := range before {
		id := b.ID
		if id == "" {
			id = operatorID(j)
		}
		if r.ID == id {
			return fail("id", "%q is taken by rule %d; give each rule its own", r.ID, j)
		}
		if covers(b, r) {
			return fail("", "it can never be reached, because %s before it matches everything that it does; put it first or narrow the other", id)
		}
	}
	return nil
}

// checkResult refuses verdicts that no gate would hear.
func checkResult(r Rule, fail func(field, format string, args ...any) error) error {
	if r.Cooldown < 0 || r.Cooldown > maxCooldown {
		return fail("cooldown", "%v must be between 0 and %v", r.Cooldown, maxCooldown)
	}
	switch r.Scope {
	case resilience.ScopeNone:
		return fail("scope", "none would count a failure as a success; use request or client to punish nobody")
	case resilience.ScopeRequest, resilience.ScopeClient, resilience.ScopeLocal:
		switch {
		case r.Cooldown > 0:
			return fail("cooldown", "it has no effect, because scope %v excludes nothing; use model, connection or provider", r.Scope)
		case r.Constant:
			return fail("backoff", "it has no effect, because scope %v excludes nothing; use model, connection or provider", r.Scope)
		}
	case resilience.ScopeModel, resilience.ScopeConnection:
	case resilience.ScopeProvider:
		switch k := r.Kind; {
		case k.Transient(), k == resilience.KindRateLimit, k == resilience.KindQuotaExhausted, k == resilience.KindPermission, k == resilience.KindUnknown:
		default:
			return fail("kind", "%v has no effect at scope provider, which hears outages, limits and permission only; use scope connection or model", k)
		}
	default:
		return fail("scope", "%v is none; use request, model, connection, provider, client or local", r.Scope)
	}
	if r.Kind == resilience.KindCanceled {
		return fail("kind", "canceled is what the client does, so no answer can mean it; use scope client with kind invalid_request")
	}
	if !slices.Contains(resilience.Kinds(), r.Kind) {
		return fail("kind", "%v is none of the kinds", r.Kind)
	}
	if r.Quarantine && r.Scope != resilience.ScopeConnection {
		return fail("quarantine", "it has no effect at scope %v; only a connection can be quarantined", r.Scope)
	}
	if r.Certain && r.Scope != resilience.ScopeModel {
		return fail("certain", "it has no effect at scope %v; only a model is locked", r.Scope)
	}
	if r.Quarantine && r.Cooldown > 0 {
		return fail("cooldown", "it has no effect, because a quarantine has no end; leave one of the two out")
	}
	return nil
}

// covers reports whether rule b matches every answer that rule r does.
func covers(b, r Rule) bool {
	if !subset(b.Provider, r.Provider) || !subset(b.Dialect, r.Dialect) || len(b.Not) > 0 && !slices.Equal(b.Not, r.Not) {
		return false
	}
	if len(b.Status) > 0 && (len(r.Status) == 0 || slices.ContainsFunc(r.Status, func(s StatusRange) bool {
		return !slices.ContainsFunc(b.Status, func(w StatusRange) bool { return w.covers(s) })
	})) {
		return false
	}
	if b.Header != "" && !strings.EqualFold(b.Header, r.Header) {
		name, value, _ := strings.Cut(b.Header, ":")
		other, _, _ := strings.Cut(r.Header, ":")
		if strings.TrimSpace(value) != "" || !strings.EqualFold(strings.TrimSpace(name), strings.TrimSpace(other)) {
			return false
		}
	}
	if len(b.Code) > 0 && (len(r.Code) == 0 || slices.ContainsFunc(r.Code, func(s string) bool {
		return !slices.ContainsFunc(b.Code, func(w string) bool { return newCodePattern(w).covers(newCodePattern(s)) })
	})) {
		return false
	}
	return len(b.Text) == 0 || len(r.Text) > 0 && !slices.ContainsFunc(r.Text, func(s string) bool {
		return !slices.ContainsFunc(b.Text, func(w string) bool { return newPattern(w).covers(newPattern(s)) })
	})
}

// subset reports whether a filter lets everything through that another one does. Empty means all.
func subset(wide, narrow []string) bool {
	if len(wide) == 0 {
		return true
	}
	return len(narrow) > 0 && !slices.ContainsFunc(narrow, func(s string) bool { return !slices.Contains(wide, s) })
}

// covers reports whether every code that o matches is matched by p.
func (p codePattern) covers(o codePattern) bool {
	switch {
	case o.pre && !p.pre, o.suf && !p.suf:
		return false
	}
	return p.has(o.s)
}

// covers reports whether every text that o matches is matched by p.
func (p pattern) covers(o pattern) bool {
	if len(p.frags) == 1 && !p.wordEnd && !p.first {
		return slices.ContainsFunc(o.frags, func(f string) bool { return indexWord(f, p.frags[0]) >= 0 })
	}
	return slices.Equal(p.frags, o.frags) && p.wordEnd == o.wordEnd && p.first == o.first
}

// String spells the pattern as a rule has it.
func (p pattern) String() string {
	s := strings.Join(p.frags, " * ")
	if p.first {
		s = "^" + s
	}
	if p.wordEnd {
		s += "$"
	}
	return s
}
