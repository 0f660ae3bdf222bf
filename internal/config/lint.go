package config

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// lint warns of what is right by itself and does not do what its author may believe. It comes last, and
// only where nothing is wrong.
func (b *builder) lint(n *node) {
	if len(b.errors) > 0 {
		return
	}
	for _, p := range b.cfg.Providers {
		b.lintProvider(n.get("providers").get(p.ID), p)
	}
	for _, c := range b.cfg.Combos {
		at := n.get("combos").get(c.Name)
		b.lintWeights(at.get("targets"), c)
		b.lintRedundancy(at.get("targets"), c)
		b.lintWindows(c)
		b.lintTwice(c)
		b.lintPrices(c)
		b.lintTimes(at, c)
		b.lintWaits(at, c.Relay)
		b.lintPatience(at, c)
	}
	b.lintRelay(n.get("relay"))
	b.lintClients(n.get("client_keys"))
	b.lintSessions(n.get("affinity"))
	b.lintResilience(n.get("resilience"), b.cfg.Resilience)
}

// weighs reports whether weights mean something to a strategy.
func (s Strategy) weighs() bool {
	switch s {
	case RoundRobin, Weighted, LeastBusy:
		return true
	}
	return false
}

func (b *builder) lintWeights(list *node, c *Combo) {
	if list == nil || c.Strategy.weighs() && len(c.Entries) > 1 {
		return
	}
	for _, item := range list.items {
		if w := item.get("weight"); w.ok() {
			why := fmt.Sprintf("the strategy %s knows no weights", c.Strategy)
			if len(c.Entries) < 2 {
				why = "the combo has one entry, which gets everything"
			}
			b.warnf(w, "%s, so this has no effect; remove it, or write strategy: weighted, round-robin or least-busy", why)
			return
		}
	}
}

// lintProvider looks for siblings that fail together, and for options that choose among none.
func (b *builder) lintProvider(n *node, p *Provider) {
	if n == nil {
		return
	}
	list := n.get("connections")
	if p.Known != nil && p.Known.Retired != "" && p.baseURL == "" && !allHave(list, "base_url") {
		b.warnf(n, "%s was retired by its owner on %s, so that calls fail; remove the provider", p.Known.Title, p.Known.Retired)
	}
	if way := n.get("connections_strategy"); way.ok() && len(p.Connections) < 2 && len(p.LeftOut) == 0 {
		b.warnf(way, "the provider has one connection, so there is nothing to choose; remove it, or add a connection")
	}
	for i, c := range p.Connections {
		at := connectionNode(list, c.ID)
		if w := at.get("weight"); w.ok() && len(p.Connections) > 1 && !p.Strategy.weighs() {
			b.warnf(w, "the connections_strategy %s knows no weights, so this has no effect; remove it, or write round-robin, weighted or least-busy", p.Strategy)
		}
		for _, other := range p.Connections[:i] {
			if !c.Key.Empty() && c.Key.Equal(other.Key) && c.baseURL == other.baseURL && at != nil {
				b.warnf(at.get("id"), "it has the same key and address as %s, so that it is limited, refused and out whenever that is; give it another key, or remove it", quote(other.ID))
				break
			}
		}
	}
	b.lintResilience(n.get("resilience"), p.Policy)
}

func connectionNode(list *node, id string) *node {
	if list == nil {
		return nil
	}
	for _, item := range list.items {
		if name := item.get("id"); name.ok() && name.text == id {
			return item
		}
	}
	return nil
}

// lintRedundancy looks at combos whose targets all hang on one key or one host.
func (b *builder) lintRedundancy(list *node, c *Combo) {
	if list == nil || len(c.Targets) < 2 {
		return
	}
	keys, hosts, providers := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, t := range c.Targets {
		if len(t.Provider.LeftOut) > 0 {
			return // on another machine there is more, and here that is warned of already
		}
		providers[t.Provider.ID] = true
		conns := t.Provider.Connections
		if t.Connection != nil {
			conns = []*Connection{t.Connection}
		}
		for _, conn := range conns {
			host := hostOf(conn.BaseURL(t.Provider.Endpoints[0].Dialect))
			hosts[host] = true
			key := conn.Key.Reveal()
			if conn.Command != nil {
				key = strings.Join(conn.Command.Args, " ")
			}
			keys[host+" "+key] = true
		}
	}
	switch {
	case len(keys) == 1:
		b.warnf(list, "all %d targets use one key, so that one quota, one block or one outage takes them all; add a connection, or a target at another provider", len(c.Targets))
	case len(hosts) == 1 && len(providers) > 1:
		for host := range hosts {
			b.warnf(list, "all targets are at %s though under %d names, so that its outage takes them all; add a target elsewhere", quote(host), len(providers))
		}
	}
}

func hostOf(address string) string {
	_, rest, _ := strings.Cut(address, "://")
	host, _, _ := strings.Cut(rest, "/")
	return host
}

// lintWindows looks for fallbacks that cannot take what their primary took, and have none behind them that can.
func (b *builder) lintWindows(c *Combo) {
	if c.Strategy != Priority || len(c.Entries) < 2 {
		return
	}
	places := b.nesting.places[c]
	need := c.Entries[0].window()
	for i := len(c.Entries) - 1; i > 0; i-- {
		w := c.Entries[i].window()
		if w == 0 || w >= need {
			return
		}
		b.warnf(places[i], "its window (%d tokens) is smaller than that of %s before it (%d), so that longer requests cannot fall back here; choose a model with a larger one, or add one behind it", w, c.Entries[0].name(), need)
	}
}

// window is the largest window of an entry, 0 where one of its targets may have any.
func (e *Entry) window() (most int) {
	if e.Combo == nil {
		return e.Target.Context
	}
	for _, t := range e.Combo.Targets {
		if t.Context == 0 {
			return 0
		}
		most = max(most, t.Context)
	}
	return most
}

func (e *Entry) name() string {
	if e.Combo != nil {
		return e.Combo.Name
	}
	return e.Target.Name()
}

// lintTwice looks for targets that a combo has already, in itself or in a combo in it.
func (b *builder) lintTwice(c *Combo) {
	places := b.nesting.places[c]
	seen := map[string]bool{}
	add := func(t Target) (all bool) {
		conns := t.Provider.Connections
		if t.Connection != nil {
			conns = []*Connection{t.Connection}
		}
		all = len(conns) > 0
		for _, conn := range conns {
			key := t.Name() + " " + conn.ID
			all = all && seen[key]
			seen[key] = true
		}
		return all
	}
	for i, e := range c.Entries {
		targets := []Target{e.Target}
		if e.Combo != nil {
			targets = e.Combo.Targets
		}
		for _, t := range targets {
			if add(t) {
				b.warnf(places[i], "%s stands in the combo already, and is tried there only; remove one of the two", t.Name())
			}
		}
	}
}

// lintPrices looks for targets that come last under cost because nobody knows what they cost.
func (b *builder) lintPrices(c *Combo) {
	if c.Strategy != Cost {
		return
	}
	places := b.nesting.places[c]
	for i, e := range c.Entries {
		if e.Combo != nil {
			continue
		}
		if _, known := e.Target.Provider.PriceOf(e.Target.Model); !known {
			b.warnf(places[i], "its price is not known, so that it comes after all others; add to the provider\n    models: [{id: %s, price: {input: 1.25, output: 10}}]", e.Target.Model)
		}
	}
}

// lintTimes looks for deadlines that come before the timeouts that they must cover.
// What the general ones are to each other is lintRelay's.
func (b *builder) lintTimes(n *node, c *Combo) {
	own := n.get("deadline")
	for _, t := range c.Targets {
		for _, limit := range []struct {
			name       string
			d, general time.Duration
		}{{"first_token_timeout", t.FirstTokenTimeout, b.cfg.Relay.FirstTokenTimeout}, {"answer_timeout", t.AnswerTimeout, b.cfg.Relay.AnswerTimeout}} {
			if limit.d <= c.Relay.Deadline || own == nil && limit.d <= limit.general {
				continue
			}
			where := own
			if where == nil {
				where = n.get("targets")
			}
			b.warnf(where, "the deadline (%s) ends requests before the %s of %s (%s) does, so that nothing is left for another target; raise deadline, or lower the timeout",
				DurationText(c.Relay.Deadline), limit.name, t.Name(), DurationText(limit.d))
			return
		}
	}
}

// lintPatience looks for patience where there is nothing to be patient for.
func (b *builder) lintPatience(n *node, c *Combo) {
	for _, key := range []string{"patience", "patience_for"} {
		at := n.get(key)
		switch {
		case !at.ok() || key == "patience" && c.Relay.Patience == 0:
		case c.Strategy != Priority:
			b.warnf(at, "patience is for the entries of priority combos, and this one is %s, so it has no effect; remove it", c.Strategy)
		case len(c.Entries) < 2:
			b.warnf(at, "the combo has one entry, so there is no other one to be patient before; remove it")
		case key == "patience_for" && c.Relay.Patience == 0:
			b.warnf(at, "patience is 0s, so it has no effect; remove it, or raise patience")
		}
	}
	if s := n.get("strategy"); s.ok() && len(c.Entries) < 2 && c.Strategy != Priority {
		b.warnf(s, "the combo has one entry, so there is nothing to choose; remove it. Its connections are chosen by the provider's connections_strategy")
	}
}

// sharing reports whether anything is ever shared out.
func (c *Config) sharing() bool {
	return slices.ContainsFunc(c.Providers, func(p *Provider) bool { return len(p.Connections) > 1 && p.Strategy != Priority }) ||
		slices.ContainsFunc(c.Combos, func(x *Combo) bool { return len(x.Entries) > 1 && x.Strategy != Priority })
}
