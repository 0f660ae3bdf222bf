package torture

import (
	"time"

	"omniroute/resilience"
)

// moment is one step of one engine and what is known of it: the laws look at a moment at a time.
type moment struct {
	reports []report
	taken   []*permit
	resets  []resilience.Key
	events  []resilience.Event
	changes []change

	configured, restarted, reading bool
	localBefore                    bool
	hazy                           bool // the store is back, and it is not known what happened when
}

// permit is the right to one attempt, as the world knows it.
type permit struct {
	n       *node
	key     resilience.Key
	called  *called // nil until it is placed
	begun   int     // ord
	at      time.Duration
	lease   time.Duration // when its hold of a slot ends
	asProbe bool          // it is a probe, a recheck or a last resort
	recheck bool          // certainly a recheck
	maybe   bool          // it may be a recheck
	resort  bool
	alone   bool          // it was asked for as the only target's
	silent  time.Duration // how long it may be, before it is suspicious
	real    resilience.Permit
	bare    bool
	attempt int // its number, for the story

	content, waited, settled bool
	hazy                     bool // it began while nobody could see the gates
	holds                    []hold
}

// called is whom an attempt was sent to: a reload may give its connection another address later.
type called struct {
	domain   resilience.Key // its failure domain
	endpoint string         // where that is, or was when it was last configured
}

// placed notes whom the attempt is sent to. For a plan of before a connection that is no longer configured is where it
// was; who names it anew speaks of its provider.
func (p *permit) placed() {
	if p.called != nil {
		return
	}
	v := p.n.variant
	if last := p.n.last[p.key]; last != nil && !v.has(p.key) && !p.bare {
		v = last
	}
	p.called = &called{v.domainOf(p.key), v.endpointOf(p.key)}
	p.called.follow(p.n.variant)
}

// follow is called when the configuration has changed: a failure domain keeps its name where its address is
// another.
func (c *called) follow(v *variant) {
	if v.has(c.domain) && v.domainOf(c.domain) == c.domain {
		c.endpoint = v.endpointOf(c.domain)
	}
}

// hold is a slot of a gate that a probe holds.
type hold struct {
	id    resilience.RecordID
	since int // ord of the exclusion
}

// report is what an attempt has told.
type report struct {
	*permit
	what  what
	v     resilience.Verdict
	after bool // its content had come
}

type what uint8

const (
	hasContent what = iota
	success
	failure
	neutral
	waited
)

// good reports whether the report is evidence of health.
func (r *report) good() bool { return r.what == hasContent || r.what == success && !r.after }

// bad returns the verdict of a failure that counts somewhere.
func (r *report) bad() (resilience.Verdict, bool) {
	v := r.v
	switch {
	case r.what != failure || r.recheck && !r.after || v.Kind == resilience.KindCanceled:
		return v, false
	case v.Scope < resilience.ScopeModel || v.Scope > resilience.ScopeProvider:
		return v, false
	}
	if v.Scope == resilience.ScopeModel && r.key.Model == "" {
		v.Scope = resilience.ScopeConnection
	}
	if v.Scope == resilience.ScopeConnection && r.key.Connection == "" {
		v.Scope = resilience.ScopeProvider
	}
	if v.Kind == resilience.KindUnknown {
		v.Kind = resilience.KindServerError
	}
	return v, true
}

// account reports whether a failure is the account's.
func account(v resilience.Verdict) bool {
	if v.Scope == resilience.ScopeConnection {
		return true
	}
	switch v.Kind {
	case resilience.KindRateLimit, resilience.KindQuotaExhausted, resilience.KindBilling, resilience.KindAuth:
		return v.Scope == resilience.ScopeProvider
	}
	return false
}

// heard says that something was reported.
func (n *node) heard(p *permit, what what, v resilience.Verdict) {
	if p == nil || p.settled {
		return
	}
	p.placed()
	r := report{permit: p, what: what, v: v, after: p.content}
	switch what {
	case hasContent:
		p.content = true
	case waited:
		if p.content || p.waited {
			return
		}
		p.waited = true
	default:
		p.settled = true
	}
	if v.Scope == resilience.ScopeNone && what == failure {
		r.what = success
	}
	n.now.reports = append(n.now.reports, r)
}

// step lets something happen to the engine, has it told to the store, and checks the laws.
func (n *node) step(words string, f func()) {
	w := n.w
	w.ord += 2
	if words != "" {
		w.say("node %d %s", n.id, words)
	}
	n.now = &moment{localBefore: n.engine.LocalOutage()}
	f()
	m := n.now
	err := n.sync()
	if n.way == nil {
		n.learn(m, err)
	}
	n.now = nil
	w.note(n, m)
	n.check(m)
	n.remember(m)
}
