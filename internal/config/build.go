package config

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"omniroute/resilience"
)

// builder makes the snapshot of a checked tree. It skips what is bad, so that everything else is checked too.
type builder struct {
	*problems
	root *node
	dir  string // of the file
	read func(string) ([]byte, error)
	cfg  *Config

	nesting *nesting // where the entries of combos stand
}

func (b *builder) build() *Config {
	n := b.root
	c := &Config{
		File: b.src.name, MaxBody: 64 << 20, MaxBodies: 1 << 30, ShutdownGrace: 30 * time.Second, Affinity: Affinity{nil, time.Hour, 10_000},
		Listen: Address{"tcp", "127.0.0.1:20128"}, Store: Store{Kind: StoreSQLite, Path: fromDir(b.dir, "omniroute.db")},
		providers: map[string]*Provider{}, combos: map[string]*Combo{}, listed: map[string][]Target{},
	}
	b.cfg = c
	b.listener(n)
	b.store(n.get("store"))
	if size := n.get("max_body"); size.ok() {
		c.MaxBody, _ = parseSize(size.text)
	}
	c.MaxBodies = max(c.MaxBodies, c.MaxBody)
	if size := n.get("max_bodies"); size.ok() {
		if c.MaxBodies, _ = parseSize(size.text); c.MaxBodies < c.MaxBody {
			b.errorf(size, "it is below max_body, so that the largest request could never be taken; raise it, or lower max_body")
		}
	}
	b.duration(n.get("shutdown_grace"), &c.ShutdownGrace)
	b.record(n.get("record"))

	b.affinity(n.get("affinity"))
	b.alerts(n.get("alerts"))
	b.tracing(n.get("tracing"))
	c.Relay = defaultRelay()
	b.relay(n.get("relay"), &c.Relay)
	c.firstTokenSet = n.get("relay").get("first_token_timeout").ok()
	c.answerSet = n.get("relay").get("answer_timeout").ok()
	policy := defaultPolicy()
	b.resilience(n.get("resilience"), &policy)
	b.contradictions(n.get("resilience"), policy)

	b.providers(n.get("providers"))
	b.combos(n.get("combos"))
	b.policies(n, policy)
	b.rules(n.get("error_rules"))
	b.index()
	b.lint(n)
	return c
}

func (b *builder) affinity(n *node) {
	a := &b.cfg.Affinity
	b.duration(n.get("forget_after"), &a.ForgetAfter)
	b.int(n.get("sessions"), &a.Sessions)
	fields := n.get("fields")
	if !fields.ok() {
		return
	}
	for _, item := range fields.items {
		switch {
		case !item.ok():
		case slices.Contains(a.Fields, item.text):
			b.errorf(item, "the field stands in the list twice; remove one")
		default:
			a.Fields = append(a.Fields, item.text)
		}
	}
}

// listener reads who may come in from where.
func (b *builder) listener(n *node) {
	c := b.cfg
	if listen := n.get("listen"); listen.ok() {
		a, err := parseAddress(listen.text, b.dir)
		if err != nil {
			b.errorf(listen, "%v", err)
			return
		}
		c.Listen = a
	}
	b.tls(n.get("tls"))
	b.metrics(n.get("metrics_listen"))
	keys := n.get("client_keys")
	b.clients(keys)
	token := n.get("admin_token")
	switch {
	case token == nil || token.bad:
	case token.absent:
		b.warnf(token, "the variable is not set or empty, so there is no admin token")
	default:
		c.AdminToken = NewSecret(token.text)
	}
	if c.Listen.Local() {
		return
	}
	var missing []string
	// A key that was written and is wrong has been reported; it is not missing.
	if wrong := keys != nil && (keys.bad || slices.ContainsFunc(keys.items, (*node).anyBad)); len(c.ClientKeys) == 0 && !wrong {
		missing = append(missing, `client_keys: ["${OMNIROUTE_CLIENT_KEY}"]   # `+"`omniroute key` makes one")
	}
	if c.AdminToken.Empty() && (token == nil || !token.bad) {
		missing = append(missing, `admin_token: "${OMNIROUTE_ADMIN_TOKEN}"`)
	}
	if len(missing) > 0 {
		b.errorf(n.get("listen"), "other machines can reach %s, so clients and the admin need keys; add, or listen on 127.0.0.1\n    %s",
			c.Listen, strings.Join(missing, "\n    "))
	}
}

// record reads where outcomes go.
func (b *builder) record(n *node) {
	if !n.ok() {
		return
	}
	name := "outcomes.jsonl"
	if file := n.get("file"); file.ok() {
		if name = file.text; name == "" {
			b.errorf(file, "the file needs a name, such as outcomes.jsonl")
			return
		}
	}
	b.cfg.Record = Record{Path: fromDir(b.dir, name), MaxSize: 64 << 20}
	if size := n.get("max_size"); size.ok() {
		b.cfg.Record.MaxSize, _ = parseSize(size.text)
	}
}

// metrics reads where /metrics is, apart from the listener.
func (b *builder) metrics(n *node) {
	if !n.ok() || n.text == "" {
		return
	}
	a, err := parseAddress(n.text, b.dir)
	switch {
	case err != nil:
		b.errorf(n, "%v", err)
	case a == b.cfg.Listen && !strings.HasSuffix(a.Address, ":0"):
		b.errorf(n, "%s is where clients connect (listen); write another address, or leave it out to have /metrics there", a)
	default:
		b.cfg.Metrics = a
	}
}

// defaultRelay holds the defaults; keys.go shows the same to people, and a test compares them.
func defaultRelay() Relay {
	return Relay{
		MaxAttempts: 6, Deadline: 10 * time.Minute, Patience: 2 * time.Second, MaxWait: 10 * time.Second,
		ConnectTimeout: 5 * time.Second, FirstTokenTimeout: 60 * time.Second, AnswerTimeout: 5 * time.Minute,
		IdleTimeout: 60 * time.Second, StallTimeout: 120 * time.Second,
		Queue: Queue{Wait: 30 * time.Second, Depth: 100, Recovery: 2000},
	}
}

// relay lays the keys of a file over settings.
func (b *builder) relay(n *node, r *Relay) {
	b.int(n.get("max_attempts"), &r.MaxAttempts)
	b.duration(n.get("deadline"), &r.Deadline)
	b.duration(n.get("patience"), &r.Patience)
	if who := n.get("patience_for"); who.ok() {
		r.PatienceForAny = who.text == "any"
	}
	b.duration(n.get("max_wait"), &r.MaxWait)
	b.duration(n.get("connect_timeout"), &r.ConnectTimeout)
	b.duration(n.get("first_token_timeout"), &r.FirstTokenTimeout)
	b.duration(n.get("answer_timeout"), &r.AnswerTimeout)
	b.duration(n.get("idle_timeout"), &r.IdleTimeout)
	b.duration(n.get("stall_timeout"), &r.StallTimeout)
	b.duration(n.get("suspect_after"), &r.SuspectAfter)
	q := n.get("queue")
	b.duration(q.get("wait"), &r.Queue.Wait)
	b.int(q.get("depth"), &r.Queue.Depth)
	b.int(q.get("recovery"), &r.Queue.Recovery)
}

// policies gives every provider its policy. It comes after the combos: probe_lease follows the
// longest first_token_timeout that is written for the provider anywhere.
func (b *builder) policies(n *node, general resilience.Policy) {
	c := b.cfg
	const leaseMargin = 15 * time.Second
	lease := func(p resilience.Policy, longest time.Duration) resilience.Policy {
		if p.Breaker.ProbeLease == 0 {
			p.Breaker.ProbeLease = longest + leaseMargin
		}
		return p.Defaults()
	}
	c.Resilience = lease(general, c.Relay.FirstTokenTimeout)
	for _, p := range c.Providers {
		own := n.get("providers").get(p.ID).get("resilience")
		policy := general
		b.resilience(own, &policy)
		b.contradictions(own, policy)
		longest := max(c.Relay.FirstTokenTimeout, p.firstToken)
		for _, m := range p.Models {
			longest = max(longest, m.firstToken)
		}
		for _, combo := range c.Combos {
			for _, t := range combo.Targets {
				if t.Provider == p && combo.Relay.FirstTokenTimeout == t.FirstTokenTimeout {
					longest = max(longest, t.FirstTokenTimeout)
				}
			}
		}
		p.Policy = lease(policy, longest)
	}
}

// index makes what Resolve looks up.
func (b *builder) index() {
	c := b.cfg
	for _, combo := range c.Combos {
		c.names = append(c.names, combo.Name)
	}
	for _, p := range c.Providers {
		for _, m := range p.Models {
			c.listed[m.ID] = append(c.listed[m.ID], c.Target(p, m.ID))
			c.names = append(c.names, m.ID, p.ID+"/"+m.ID)
		}
	}
}

// timeouts returns the effective timeouts of a model outside of any combo.
func (c *Config) timeouts(p *Provider, model string) (firstToken, answer time.Duration) {
	firstToken, answer = c.Relay.FirstTokenTimeout, c.Relay.AnswerTimeout
	if p.Known != nil {
		known := p.Known.TimeoutOf(model)
		if !c.firstTokenSet {
			firstToken = max(firstToken, known.FirstToken)
		}
		if !c.answerSet {
			answer = max(answer, known.Answer)
		}
	}
	over := func(f, a time.Duration) {
		if f > 0 {
			firstToken = f
		}
		if a > 0 {
			answer = a
		}
	}
	over(p.firstToken, p.answerTimeout)
	if m := p.Model(model); m != nil {
		over(m.firstToken, m.answerTimeout)
	}
	return firstToken, answer
}

// The readers set a field when there is a value that can be used, and leave it as it is otherwise; a word
// such as auto sets the zero value.

func (b *builder) int(n *node, field *int) {
	if n.ok() {
		*field, _ = n.int()
	}
}

func (b *builder) number(n *node, field *float64) {
	if n.ok() {
		*field, _ = n.number()
	}
}

func (b *builder) share(n *node, field *float64) {
	if n.ok() {
		*field, _ = parseShare(n.text)
	}
}

func (b *builder) duration(n *node, field *time.Duration) {
	if n.ok() {
		*field, _ = n.duration()
	}
}

// fileError says what is wrong with a file that the configuration names.
func fileError(err error) string {
	return fmt.Sprintf("the file cannot be used (%v); check the path, which starts at the configuration's folder, and the permissions", err)
}
