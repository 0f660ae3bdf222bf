package config

import (
	"slices"
	"time"

	"omniroute/internal/catalog"
	"omniroute/resilience"
)

const noPlaces = "no connection has max_concurrent, so nobody waits for a place and this has no effect; remove it, or set max_concurrent"

// lintRelay looks for timers that others make pointless.
func (b *builder) lintRelay(n *node) {
	r := b.cfg.Relay
	if at := n.get("deadline"); at.ok() {
		for _, limit := range []struct {
			key string
			d   int64
		}{{"first_token_timeout", int64(r.FirstTokenTimeout)}, {"answer_timeout", int64(r.AnswerTimeout)}} {
			if limit.d > int64(r.Deadline) {
				b.warnf(at, "it is shorter than %s, so that one slow target leaves no time for another; raise it, or lower the timeout", limit.key)
				break
			}
		}
	}
	if at := n.get("suspect_after"); at.ok() && r.SuspectAfter >= max(r.FirstTokenTimeout, r.AnswerTimeout) {
		b.warnf(at, "every timeout is over by then, so nothing is ever suspected; write a shorter time, or auto")
	}
	if at := n.get("idle_timeout"); at.ok() && r.IdleTimeout > r.StallTimeout {
		b.warnf(at, "stall_timeout (%s) ends a silent stream before that, so it has no effect; lower it, or raise stall_timeout", DurationText(r.StallTimeout))
	}
	b.lintWaits(n, r)
	if at := n.get("patience_for"); at.ok() && r.Patience == 0 {
		b.warnf(at, "patience is 0s, so it has no effect; remove it, or raise patience")
	}
	bounded := slices.ContainsFunc(b.cfg.Providers, func(p *Provider) bool {
		return slices.ContainsFunc(p.Connections, func(c *Connection) bool { return c.MaxConcurrent > 0 })
	})
	usual := defaultRelay().Queue
	switch wait, depth := n.get("queue").get("wait"), n.get("queue").get("depth"); {
	case bounded:
	case wait.ok() && r.Queue.Wait != usual.Wait:
		b.warnf(wait, noPlaces)
	case depth.ok() && r.Queue.Depth != usual.Depth:
		b.warnf(depth, noPlaces)
	}
}

// lintClients looks for patterns that match nothing there is.
func (b *builder) lintClients(n *node) {
	if !n.ok() {
		return
	}
	var targets []string
	for _, c := range b.cfg.Combos {
		for _, t := range c.Targets {
			targets = append(targets, t.Name())
		}
	}
	names := slices.Concat(b.cfg.names, targets)
	for _, p := range b.cfg.Providers {
		for _, m := range p.Models {
			targets = append(targets, p.ID+"/"+m.ID)
		}
	}
	for _, item := range n.items {
		if item.shape != shapeMap {
			continue
		}
		b.lintPatterns(item.get("models"), names)
		b.lintPatterns(item.get("targets"), targets)
	}
}

func (b *builder) lintPatterns(list *node, names []string) {
	if !list.ok() {
		return
	}
	for _, item := range list.items {
		p := catalog.Pattern(item.text)
		if slices.ContainsFunc(names, p.Match) || b.reachable(p) {
			continue
		}
		b.warnf(item, "it matches no combo, model or target that is written here%s", or(didYouMean(item.text, names), "; check its spelling"))
	}
}

// reachable reports whether a pattern may match models of a provider that nobody has written down.
func (b *builder) reachable(p catalog.Pattern) bool {
	return slices.ContainsFunc(b.cfg.Providers, func(provider *Provider) bool {
		return len(p) > len(provider.ID) && string(p[:len(provider.ID)+1]) == provider.ID+"/"
	})
}

// lintSessions looks for sessions that have nowhere to be at home.
func (b *builder) lintSessions(n *node) {
	if n.ok() && !b.cfg.sharing() {
		b.warnf(n, "nothing is shared out here: no provider has several connections, and no combo with several entries has a strategy other than priority; so sessions have no effect")
	}
}

// manyFailures is how many failures in a row no breaker will see: each of them is a request that
// has waited for one.
const manyFailures = 100

// lintResilience looks for a breaker that never trips, and for bounds that others bound already.
func (b *builder) lintResilience(n *node, p resilience.Policy) {
	if at := n.get("breaker").get("failure_threshold"); at.ok() {
		if count, _ := at.int(); count > manyFailures {
			b.warnf(at, "after %d failures in a row without one success it will hardly ever open, and each of them makes a request wait; write a number such as 5", count)
		}
	}
	if at := n.get("cooldown").get("max_transient"); at.ok() && p.Cooldown.MaxTransient > p.Cooldown.Max {
		b.warnf(at, "no cooldown is longer than max (%s), so this has no effect; lower it, or raise max", DurationText(p.Cooldown.Max))
	}
	if at := n.get("recheck").get("alone"); at.ok() && p.Recheck.Alone > p.Recheck.After {
		b.warnf(at, "every request may look again after %s (recheck.after), so this has no effect; lower it, or raise after", DurationText(p.Recheck.After))
	}
}

// lintWaits looks for waits that the deadline cuts short.
func (b *builder) lintWaits(n *node, r Relay) {
	for _, wait := range []struct {
		at *node
		d  time.Duration
	}{{n.get("patience"), r.Patience}, {n.get("max_wait"), r.MaxWait}, {n.get("queue").get("wait"), r.Queue.Wait}} {
		if wait.at.ok() && wait.d > r.Deadline {
			b.warnf(wait.at, "the deadline (%s) ends requests before that, so that none waits so long; lower it, or raise deadline", DurationText(r.Deadline))
		}
	}
}
