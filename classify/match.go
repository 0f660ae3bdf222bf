package classify

import (
	"slices"
	"strings"

	"omniroute/resilience"
)

// compiled is a rule made ready for matching.
type compiled struct {
	Rule
	codes       []codePattern
	texts, nots []pattern
	headerName  string
	headerValue string
	harmless    bool // the verdict changes no state, so an echo cannot do harm
}

type codePattern struct {
	s        string
	pre, suf bool // a "*" at the beginning or end
}

func newCodePattern(s string) codePattern {
	s = strings.TrimSpace(s)
	return codePattern{canonicalCode(s), strings.HasPrefix(s, "*"), strings.HasSuffix(s, "*")}
}

func (p codePattern) has(c string) bool {
	switch {
	case p.pre && p.suf:
		return strings.Contains(c, p.s)
	case p.pre:
		return strings.HasSuffix(c, p.s)
	case p.suf:
		return strings.HasPrefix(c, p.s)
	}
	return c == p.s
}

func compile(r Rule) *compiled {
	c := &compiled{Rule: r, texts: patterns(r.Text...), nots: patterns(r.Not...),
		harmless: r.Scope == resilience.ScopeRequest || r.Scope == resilience.ScopeClient || r.Scope == resilience.ScopeLocal}
	for _, s := range r.Code {
		c.codes = append(c.codes, newCodePattern(s))
	}
	if r.Header != "" {
		name, value, _ := strings.Cut(r.Header, ":")
		c.headerName, c.headerValue = strings.TrimSpace(name), strings.ToLower(strings.TrimSpace(value))
	}
	return c
}

// matched says what a rule saw, for the evidence.
type matched struct {
	code *code
	text *pattern
}

func (r *compiled) match(a *answer) (m matched, ok bool) {
	if len(r.Provider) > 0 && !slices.Contains(r.Provider, a.in.Provider) && !slices.Contains(r.Provider, a.provider) {
		return m, false
	}
	if len(r.Dialect) > 0 && !slices.Contains(r.Dialect, a.in.Dialect) {
		return m, false
	}
	if a.facts&r.facts != r.facts || a.facts&r.absent != 0 {
		return m, false
	}
	if len(r.Status) > 0 && !slices.ContainsFunc(r.Status, func(s StatusRange) bool { return s.has(a.status) }) {
		return m, false
	}
	if len(r.codes) > 0 {
		if m.code = a.code(r.codes); m.code == nil {
			return m, false
		}
	}
	text := a.text
	if r.harmless {
		text = a.full
	}
	if len(r.texts) > 0 {
		for i := range r.texts {
			if a.matchesIn(text, r.texts[i]) {
				m.text = &r.texts[i]
				break
			}
		}
		if m.text == nil {
			return m, false
		}
	}
	for i := range r.nots {
		if a.matchesIn(text, r.nots[i]) {
			return m, false
		}
	}
	if r.headerName != "" {
		v := a.in.Header.Get(r.headerName)
		if v == "" || !strings.Contains(strings.ToLower(v), r.headerValue) {
			return m, false
		}
	}
	return m, true
}

// code returns the first of the answer's codes that one of the patterns has.
func (a *answer) code(ps []codePattern) *code {
	for i := range a.codes {
		for _, p := range ps {
			if p.has(a.codes[i].canon) {
				return &a.codes[i]
			}
		}
	}
	return nil
}
