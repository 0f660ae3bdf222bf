package route

import (
	"slices"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// Candidate is one target as a request for the route would meet it now.
type Candidate struct {
	Provider   string `json:"provider"`
	Connection string `json:"connection"`
	Model      string `json:"model"`
	// Eligible says that the target would be dispatched to.
	Eligible bool `json:"eligible"`
	// Layer and Kind say who turns traffic away and why; null for an eligible target, and Kind for
	// an operator's own exclusion and a connection without a free place.
	Layer *resilience.Layer `json:"layer"`
	Kind  *resilience.Kind  `json:"kind"`
	// Until is the end of the exclusion, null where there is none that is known.
	Until resilience.Timestamp `json:"until"`
	// RetryAfterMs is how long until a request may pass, an early probe included; 0 where that is
	// not known, and for an eligible target.
	RetryAfterMs int64 `json:"retry_after_ms"`
	// Reason is a sentence for people.
	Reason string `json:"reason"`
}

// Question is a request that nobody makes.
type Question struct {
	Asked
	// Ask is what it asks for, as far as limits and prices depend on it.
	Ask failover.Ask
	// Barred says by place which of the plan's targets it may not use. Nil: it may use all.
	Barred []bool
	// Unfit says by place why a target cannot take the request. Nil: all can.
	Unfit []string
}

func (q *Question) unfit(i int) string {
	if q.Unfit == nil {
		return ""
	}
	return q.Unfit[i]
}

// Explain returns every target in the order in which the next such request would try them, and whether
// it would, and what the first is to the request's session. It asks the gates and the strategies what
// a request asks, and changes nothing.
func Explain(r *Route, q Question, now time.Time) ([]Candidate, Affinity) {
	picker := r.Peek(q.Asked)
	defer r.Done(picker)
	request := failover.NewRequest(r.Plan, picker, q.Stream).For(q.Ask)
	for i, barred := range q.Barred {
		if barred {
			request.Bar(i)
		}
	}
	for i, reason := range q.Unfit {
		if reason != "" {
			request.Bar(i)
		}
	}
	order := request.Outlook(now)
	places := slices.DeleteFunc(r.arrange(order), func(i int) bool { return q.Barred != nil && q.Barred[i] })
	out := make([]Candidate, 0, len(places))
	for _, i := range places {
		c := describe(&r.Plan.Targets[i], &q.Ask, false, now)
		if reason := q.unfit(i); reason != "" {
			layer := resilience.LayerFit
			c = Candidate{Provider: c.Provider, Connection: c.Connection, Model: c.Model, Layer: &layer, Reason: "it cannot take this request: " + reason}
		}
		out = append(out, c)
	}
	if len(order) > 0 {
		if p, ok := picker.(*Picker); ok {
			return out, p.relation(order[0])
		}
		return out, NoSession
	}
	// A request without any other target looks after long exclusions sooner. One that only lacks a place
	// on a connection, or what an upstream has left, waits for that.
	if slices.ContainsFunc(out, func(c Candidate) bool {
		return c.Layer != nil && (*c.Layer == resilience.LayerConcurrency || *c.Layer == resilience.LayerHeadroom)
	}) {
		return out, NoSession
	}
	if at, c := rechecked(r, &q, places, now); at >= 0 {
		out[at] = c
	}
	return out, NoSession
}

// rechecked returns which of the places a request without any other target would look after, -1 for none: first one
// of which it is not known that its upstream has nothing left.
func rechecked(r *Route, q *Question, places []int, now time.Time) (int, Candidate) {
	spent, last := -1, Candidate{}
	for at, i := range places {
		if q.unfit(i) != "" {
			continue
		}
		c := describe(&r.Plan.Targets[i], &q.Ask, true, now)
		switch {
		case c.Eligible:
			return at, c
		case spent < 0 && c.Layer != nil && *c.Layer == resilience.LayerHeadroom && r.Plan.Targets[i].Places.Free():
			spent, last = at, Candidate{Provider: c.Provider, Connection: c.Connection, Model: c.Model, Eligible: true,
				Reason: "it is out and has too little left, but as the only target it would be looked at again"}
		}
	}
	return spent, last
}

// arrange puts the targets that would not be tried among those that would, each where it would be if
// it were asked last of its siblings. What goes from top to bottom keeps its order.
func (r *Route) arrange(tried []int) []int {
	if r.root == nil {
		all := make([]int, len(r.Plan.Targets))
		for i := range all {
			all[i] = i
		}
		return all
	}
	rank := make([]int, len(r.Plan.Targets))
	for i := range rank {
		rank[i] = len(tried)
	}
	for at, i := range tried {
		rank[i] = at
	}
	return r.root.arrange(rank, make([]int, 0, len(rank)))
}

func (n *node) arrange(rank, out []int) []int {
	first := func(k *kid) int { return slices.Min(rank[k.from:k.to]) }
	kids := make([]*kid, len(n.kids))
	for i := range n.kids {
		kids[i] = &n.kids[i]
	}
	if n.choose != nil {
		slices.SortStableFunc(kids, func(a, b *kid) int { return first(a) - first(b) })
	}
	for _, k := range kids {
		if k.node != nil {
			out = k.node.arrange(rank, out)
		} else {
			out = append(out, k.from)
		}
	}
	return out
}

func describe(t *failover.Target, ask *failover.Ask, alone bool, now time.Time) Candidate {
	key := t.Key()
	c := Candidate{Provider: key.Provider, Connection: key.Connection, Model: key.Model}
	x, out, asProbe := t.Look(ask, alone, now)
	switch {
	case !out && !asProbe:
		c.Eligible, c.Reason = true, "nothing is known against it"
		return c
	case !out && alone:
		c.Eligible, c.Reason = true, "it is out, but as the only target it would be looked at again"
		return c
	case !out:
		c.Eligible, c.Reason = true, "an exclusion is due, so this request would find out whether it is over"
		return c
	}
	c.Layer, c.Until = &x.Layer, resilience.Timestamp{Time: x.Until}
	if x.HasKind() {
		c.Kind = &x.Kind
	}
	// Rounded up: whoever comes then is not too early.
	c.RetryAfterMs = (x.RetryAfter.Nanoseconds() + 999_999) / 1_000_000
	c.Reason = why(x)
	return c
}

// why puts an exclusion into words.
func why(x resilience.Exclusion) string {
	var text string
	switch x.Layer {
	case resilience.LayerBreaker:
		text = "the provider's circuit breaker is open"
	case resilience.LayerConnection:
		text = "the connection cools down"
	case resilience.LayerModel:
		text = "the model is locked out on this connection"
	case resilience.LayerFit:
		return "the model cannot take such a request: " + x.Reason
	case resilience.LayerHeadroom:
		return "the upstream has too little left: " + x.Reason
	case resilience.LayerConcurrency:
		return x.Reason
	default:
		text = "an operator took it out"
		if x.Reason != "" {
			text += ": " + x.Reason
		}
		return text
	}
	switch {
	case x.Held:
		text += ", and a probe is finding out whether it is well"
	case x.Until.IsZero():
		text += " until a person acts"
	}
	if x.Reason != "" {
		text += " (" + x.Reason + ")"
	}
	return text
}
