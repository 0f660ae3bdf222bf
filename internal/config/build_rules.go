package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"omniroute/internal/catalog"
	"omniroute/resilience"
)

func pathOfRule(i int) string { return fmt.Sprintf("error_rules[%d]", i) }

func (b *builder) rules(n *node) {
	if !n.ok() {
		return
	}
	ids := map[string]bool{}
	for i, item := range n.items {
		if item.bad || item.shape != shapeMap {
			continue
		}
		r := ErrorRule{Index: i, at: b.src.position(item.pos), fields: map[string]Position{}}
		for _, e := range item.entries {
			r.fields[e.key] = b.src.position(e.value.pos)
		}
		r.ID = b.text(item.get("id"))
		r.Providers = b.texts(item.get("provider"))
		r.Dialects = b.texts(item.get("dialect"))
		r.Status = b.texts(item.get("status"))
		r.Codes = b.texts(item.get("code"))
		r.Texts = b.texts(item.get("text"))
		r.Not = b.texts(item.get("not"))
		r.Header = b.text(item.get("header"))
		if scope := item.get("scope"); scope.ok() {
			r.Scope, _ = resilience.ParseScope(scope.text)
		}
		if kind := item.get("kind"); kind.ok() {
			r.Kind, _ = resilience.ParseKind(kind.text)
		}
		b.duration(item.get("cooldown"), &r.Cooldown)
		r.Certain = item.get("certain").is("true")
		r.Quarantine = item.get("quarantine").is("true")
		r.Constant = item.get("backoff").is("false")
		b.checkRule(item, r, ids)
		b.cfg.ErrorRules = append(b.cfg.ErrorRules, r)
	}
}

// is reports whether the value is that word.
func (n *node) is(word string) bool { return n.ok() && n.text == word }

// text returns a text that must not be empty.
func (b *builder) text(n *node) string {
	if !n.ok() {
		return ""
	}
	if strings.TrimSpace(n.text) == "" {
		b.errorf(n, "an empty text says nothing; remove the key")
	}
	return n.text
}

// texts returns the entries of a list, or the one that stands for a list.
func (b *builder) texts(n *node) []string {
	if !n.ok() {
		return nil
	}
	if n.shape != shapeList {
		return []string{b.text(n)}
	}
	var all []string
	for _, item := range n.items {
		if item.ok() {
			all = append(all, b.text(item))
		}
	}
	return all
}

// checkRule refuses rules that could never match or would change nothing, as far as that can be seen from here;
// the classifier, which knows how rules are matched, refuses more.
func (b *builder) checkRule(n *node, r ErrorRule, ids map[string]bool) {
	if r.ID != "" {
		if ids[r.ID] {
			b.errorf(n.get("id"), "another rule has this id; give each its own")
		}
		ids[r.ID] = true
	}
	b.ruleProviders(n.get("provider"))
	b.ruleStatus(n.get("status"))
	b.ruleDialects(n.get("dialect"), r)
	if n.anyBad() {
		return
	}
	excludes := r.Scope == resilience.ScopeModel || r.Scope == resilience.ScopeConnection || r.Scope == resilience.ScopeProvider
	switch {
	case len(r.Status)+len(r.Codes)+len(r.Texts) == 0 && r.Header == "":
		b.errorf(n, "the rule would match every failure; add at least one of status, code, text and header")
	case r.Cooldown > 0 && !excludes:
		b.errorf(n.get("cooldown"), "a failure of scope %s takes nothing out of service, so a cooldown has no effect; remove it, or use scope connection or model", r.Scope)
	case n.get("backoff") != nil && !excludes:
		b.errorf(n.get("backoff"), "a failure of scope %s takes nothing out of service, so backoff has no effect; remove it, or use scope connection or model", r.Scope)
	case r.Certain && r.Scope != resilience.ScopeModel:
		b.errorf(n.get("certain"), "only a model is locked at once, so certain has no effect at scope %s; remove it, or use scope model", r.Scope)
	case r.Quarantine && r.Scope != resilience.ScopeConnection:
		b.errorf(n.get("quarantine"), "only a connection is quarantined, so it has no effect at scope %s; remove it, or use scope connection", r.Scope)
	case r.Quarantine && r.Cooldown > 0:
		b.errorf(n.get("cooldown"), "a quarantine has no end, so a cooldown has no effect; remove one of the two")
	}
}

// anyBad reports whether something about the mapping was reported.
func (n *node) anyBad() bool {
	for _, e := range n.entries {
		if e.value.bad || e.value.anyBad() {
			return true
		}
		for _, item := range e.value.items {
			if item.bad {
				return true
			}
		}
	}
	return n.bad
}

func (b *builder) ruleProviders(n *node) {
	var names []string
	for _, p := range b.cfg.Providers {
		names = append(names, p.ID)
	}
	for _, item := range n.each() {
		if item.ok() && b.root.get("providers").get(item.text) == nil {
			b.errorf(item, "the rule could never match: there is no provider %s here%s", quote(item.shown()), or(didYouMean(item.text, names), "; remove it or add the provider"))
		}
	}
}

// ruleDialects refuses a dialect that none of the rule's providers is spoken to in.
func (b *builder) ruleDialects(n *node, r ErrorRule) {
	for _, item := range n.each() {
		spoken := !item.ok()
		for _, p := range b.cfg.Providers {
			if len(r.Providers) == 0 || slices.Contains(r.Providers, p.ID) {
				_, speaks := p.Endpoint(catalog.Dialect(item.text))
				spoken = spoken || speaks
			}
		}
		if !spoken {
			who := "any provider here"
			if len(r.Providers) > 0 {
				who = strings.Join(r.Providers, ", ")
			}
			b.errorf(item, "the rule could never match: %s is not spoken with %s; remove it or name another provider", item.text, who)
		}
	}
}

func (b *builder) ruleStatus(n *node) {
	for _, item := range n.each() {
		if item.ok() && !validStatus(item.text) {
			b.errorf(item, "%s is no HTTP status; write one such as 429, a class such as 5xx, or a range such as 500-504", quote(item.shown()))
		}
	}
}

func validStatus(text string) bool {
	if len(text) == 3 && strings.EqualFold(text[1:], "xx") {
		return '1' <= text[0] && text[0] <= '5'
	}
	low, high, isRange := strings.Cut(text, "-")
	from, err := strconv.Atoi(low)
	if err != nil || from < 100 || from > 599 {
		return false
	}
	to := from
	if isRange {
		if to, err = strconv.Atoi(high); err != nil {
			return false
		}
	}
	return from <= to && to <= 599
}

// each returns the items of a list, or the one value that stands for a list.
func (n *node) each() []*node {
	switch {
	case n == nil:
		return nil
	case n.shape == shapeList:
		return n.items
	}
	return []*node{n}
}
