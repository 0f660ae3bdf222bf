package torture

import (
	"maps"
	"slices"
	"time"

	"omniroute/resilience"
)

// seen is an exclusion as a node of a cluster last said that it is.
type seen struct {
	until time.Duration
	layer resilience.Layer
	ord   int
	at    time.Duration // when it was first seen
}

// oneProbeOfAll is K2: a probe on one node keeps the others from probing, while they can hear of each other.
func (n *node) oneProbeOfAll(p *permit) {
	if !p.asProbe || p.resort || !n.joined() {
		return
	}
	for _, o := range n.w.nodes {
		if o == n || !o.joined() {
			continue
		}
		for _, q := range o.permits {
			if q.key != p.key || q.settled || q.content || !q.asProbe || q.resort || n.w.mono >= q.lease || q.at < max(o.joinedAt, n.joinedAt) {
				continue
			}
			if q.called.domain != p.called.domain {
				continue // the nodes' configurations have it at different addresses, each with a breaker of its own
			}
			if n.w.refuted[account1(q.key)] > q.begun || n.w.failed[q.key.Provider] > q.begun {
				continue // it is a probe of another exclusion
			}
			n.w.broke("K2 one probe for the whole cluster", "node %d probes %v while node %d does", n.id, p.key, o.id)
		}
	}
}

func account1(k resilience.Key) resilience.Key {
	return resilience.Key{Provider: k.Provider, Connection: k.Connection}
}

// joined reports whether the node has been in touch with the others for long enough to know it.
func (n *node) joined() bool {
	return n.way != nil && !n.way.cut && n.engine.Cluster().State == resilience.ClusterOK && n.w.mono-n.joinedAt > 3*time.Second
}

// note remembers what a moment was evidence of, for every node.
func (w *world) note(n *node, m *moment) {
	if n.way == nil {
		return
	}
	switch apart := n.way.cut || n.engine.Cluster().State != resilience.ClusterOK; {
	case apart || m.restarted:
		if !n.apart { // the last news was still on its way
			for k, at := range w.refutedLast {
				if w.mono-at < 2*time.Second {
					n.unheard[k] = true
				}
			}
		}
		n.joinedAt, n.apart = w.mono, true
	case n.apart:
		n.apart, w.lastReturn = false, w.mono // it brings along what it has found out alone, and hears the rest
		unheard := slices.Collect(maps.Keys(n.unheard))
		clear(n.unheard)
		for _, k := range unheard {
			n.refutes(k)
		}
	}
	for i := range m.reports {
		r := &m.reports[i]
		if _, bad := r.bad(); bad || r.what == waited {
			w.failed[r.key.Provider], w.blamed[account1(r.key)] = w.ord, w.ord
			w.lastNews[r.key.Provider] = w.mono
		}
		if r.good() || r.what == success {
			n.refutes(r.key)
		}
	}
	for _, k := range m.resets {
		for _, v := range w.setup.variants {
			for _, x := range v.keys {
				if k.Contains(x) {
					n.refutes(x)
				}
			}
		}
	}
	if m.configured || m.restarted {
		for _, v := range w.setup.variants {
			for _, x := range v.keys {
				n.refutes(x)
			}
		}
	}
	for _, e := range m.events {
		if e.Type == resilience.EventOperatorExcluded || e.Type == resilience.EventOperatorCleared {
			w.lastNews[e.Key.Provider] = w.mono
		}
	}
}

// refutes notes evidence of health. Who is apart, the node itself or another, tells or hears of it on return.
func (n *node) refutes(k resilience.Key) {
	n.w.refutedAt(k)
	for _, o := range n.w.nodes {
		if o.apart {
			o.unheard[k] = true
		}
	}
}

func (w *world) refutedAt(k resilience.Key) {
	w.refuted[account1(k)] = w.ord
	w.refuted[resilience.Key{Provider: k.Provider}] = w.ord
	w.refutedLast[account1(k)] = w.mono
	w.lastNews[k.Provider] = w.mono
}

// agrees is A5 and K1: on no node does an exclusion shorten without a success or an operator's word on
// some node, and what one node knows all know soon.
func (n *node) agrees(k resilience.Key, x resilience.Exclusion, out bool) {
	w := n.w
	lasting := out && !x.Held && (x.Layer == resilience.LayerConnection || x.Layer == resilience.LayerModel) && !x.Kind.Transient() && !w.probed(k)
	until := never
	if !x.Until.IsZero() {
		until = w.mono + x.Until.Sub(w.clock.now())
	}
	const skew = 1500 * time.Millisecond
	before, had := n.seen[k]
	account := account1(k)
	cleared := w.refuted[account] > before.ord || w.refutedLast[account] >= before.at-2*time.Second || w.keysDiffer(account) // it may have heard in another order
	if had && n.joined() && before.until > w.mono+skew && !cleared && x.Layer != resilience.LayerOperator && (!out || x.Layer == before.layer && until < before.until-skew && n.trusted(k, before)) {
		if _, admitted, asProbe := n.engine.Target(k).Standing(false); !(asProbe && !admitted) {
			w.broke("A5 K3 nodes join by the later deadline", "node %d: %v was out until %v and is out %v until %v (%v)", n.id, k, before.until, out, until, x.Layer)
		}
	}
	switch {
	case lasting:
		if !had || cleared || until > before.until {
			n.seen[k] = seen{until, x.Layer, w.ord, w.mono}
		}
	case cleared || had && before.until <= w.mono:
		delete(n.seen, k)
	}
	if !lasting || until <= w.mono+skew || w.mono-max(w.lastNews[k.Provider], w.lastReturn) < 2*time.Second {
		return
	}
	for _, o := range w.nodes {
		if o == n || !o.joined() || !n.joined() || o.number != n.number {
			continue
		}
		if o.dropped[account] > w.blamed[account] {
			continue // what it did not have it begins anew with (law P4), until somebody fails anew
		}
		if _, there, asProbe := o.engine.Target(k).Standing(false); !there && !asProbe {
			w.broke("K1 a trip is everybody's", "node %d has %v out (%v %v until %v), node %d has it free", n.id, k, x.Layer, x.Kind, until, o.id)
		}
	}
}

// keysDiffer reports whether the nodes' configurations have different secrets for a connection, as they do for a while
// when a key is exchanged: what a node says of its own then takes the place of what the others say of theirs, where it
// is the graver and the longer.
func (w *world) keysDiffer(connection resilience.Key) bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool {
		return n.variant.credentialOf(connection) != w.nodes[0].variant.credentialOf(connection)
	})
}

// probed reports whether some node has a probe in flight on the way to a target: then the end of its lease may
// be what is said.
func (w *world) probed(k resilience.Key) bool {
	return slices.ContainsFunc(w.nodes, func(n *node) bool { return n.carried(k) })
}

// trusted reports whether the exclusion is too short to be rechecked: while one is due for that it is
// another gate that speaks.
func (n *node) trusted(k resilience.Key, s seen) bool {
	after := n.variant.policyOf(k).Recheck.After
	return after < 0 || s.until-s.at < after
}
