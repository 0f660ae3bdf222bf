package torture

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"

	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// setup is a configuration and what it may be replaced by.
type setup struct {
	variants []*variant // the first is what a world begins with, the last is brief
}

// usual is how many variants an operator may bring about; the one after them is for dramas.
const usual = 3

// variant is one checked configuration.
type variant struct {
	text   string
	cfg    *config.Config
	engine resilience.Config
	combos []string
	keys   []resilience.Key // of all targets
}

// setups are kept, since to parse and check one costs as much as a world.
var setups sync.Map // seed to func() *setup

func setupOf(seed uint64) *setup {
	make, _ := setups.LoadOrStore(seed, sync.OnceValue(func() *setup { return newSetup(seed) }))
	return make.(func() *setup)()
}

func newSetup(seed uint64) *setup {
	for try := uint64(0); ; try++ {
		s := &setup{}
		base := draft(rand.New(rand.NewPCG(seed, try)))
		for i := range usual {
			d := base
			if i > 0 {
				d = base.changed(rand.New(rand.NewPCG(seed, try<<8+uint64(i))))
			}
			if v := d.check(); v != nil {
				s.variants = append(s.variants, v)
			}
		}
		if len(s.variants) < usual {
			continue
		}
		if v := base.brief().check(); v != nil {
			s.variants = append(s.variants, v)
			return s
		}
	}
}

// outline is a configuration before it is written down.
type outline struct {
	providers []providerOutline
	combos    []string // as YAML
	rest      string
}

type providerOutline struct {
	name, lines string
	connections []string // as YAML
}

func draft(r *rand.Rand) outline {
	var o outline
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	models := []string{"m", "n", "o"}
	for i := range 1 + r.IntN(3) {
		p := providerOutline{name: string(rune('a' + i))}
		p.lines = fmt.Sprintf("    dialect: openai\n    base_url: https://%s.example/v1\n    connections_strategy: %s\n", p.name, strategy(r))
		p.lines += "    models: [{id: m, context: 8000, price: {input: 1, output: 2}}, {id: n, context: 64000, price: {input: 2, output: 1}}, o]\n"
		if r.IntN(4) == 0 {
			p.lines += "    resilience:\n" + policy(r, "      ")
		}
		for k := range 1 + r.IntN(3) {
			c := fmt.Sprintf("id: k%d, api_key: secret-of-%s-%d", k+1, p.name, k+1)
			if r.IntN(4) == 0 {
				c += fmt.Sprintf(", max_concurrent: %d", 1+r.IntN(3))
			}
			if r.IntN(5) == 0 {
				c += fmt.Sprintf(", base_url: https://%s-%d.example/v1", p.name, k+1)
			}
			p.connections = append(p.connections, c)
		}
		o.providers = append(o.providers, p)
	}
	depth := map[int]int{}
	for i := range 1 + r.IntN(3) {
		var targets []string
		for range 1 + r.IntN(3) {
			if under := r.IntN(i + 1); i > 0 && under < i && r.IntN(3) == 0 && depth[under] < 3 {
				targets = append(targets, fmt.Sprintf("combo%d", under))
				depth[i] = max(depth[i], depth[under]+1)
				continue
			}
			p := o.providers[r.IntN(len(o.providers))]
			t := p.name + "/" + one(models...)
			if r.IntN(4) == 0 {
				t = fmt.Sprintf("{target: %s, connection: k%d, weight: %d}", t, 1+r.IntN(len(p.connections)), 1+r.IntN(3))
			}
			targets = append(targets, t)
		}
		way := "priority"
		if r.IntN(2) == 0 {
			way = strategy(r)
		}
		c := fmt.Sprintf("  combo%d:\n    strategy: %s\n    targets: [%s]\n", i, way, strings.Join(targets, ", "))
		for _, l := range []struct {
			in   int
			line string
		}{
			{2, "patience: " + one("0s", "1s", "2s", "5s")},
			{4, "patience_for: any"},
			{2, "max_wait: " + one("0s", "2s", "10s", "30s")},
			{3, "max_attempts: " + one("1", "2", "3", "10")},
			{3, "first_token_timeout: " + one("2s", "5s", "20s")},
			{3, "answer_timeout: " + one("5s", "20s")},
			{4, "deadline: " + one("5s", "30s", "60s")},
			{4, "suspect_after: " + one("300ms", "1s", "3s")},
			{3, "hedge: {after: " + one("200ms", "500ms", "p95") + ", budget: " + one("5%", "20%", "100%") + "}"},
			{3, "recover: continue"},
			{3, "last_resort: true"},
		} {
			if r.IntN(l.in) == 0 {
				c += "    " + l.line + "\n"
			}
		}
		o.combos = append(o.combos, c)
	}
	if r.IntN(4) > 0 {
		o.rest = "resilience:\n" + policy(r, "  ")
	}
	if r.IntN(3) == 0 {
		o.rest += fmt.Sprintf("relay: {queue: {wait: %s, depth: %s, recovery: %s}}\n", one("0s", "2s", "30s"), one("0", "1", "4"), one("1", "3", "100"))
	}
	return o
}

func strategy(r *rand.Rand) string {
	all := config.Strategies()
	return all[r.IntN(len(all))]
}

// policy draws some of the numbers of the three layers.
func policy(r *rand.Rand, indent string) string {
	var out strings.Builder
	section := func(name string, lines ...string) {
		var some []string
		for _, l := range lines {
			if r.IntN(3) == 0 {
				some = append(some, l)
			}
		}
		fmt.Fprintf(&out, "%s%s: {%s}\n", indent, name, strings.Join(some, ", "))
	}
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	section("breaker", "failure_threshold: "+one("1", "2", "3"), "reset_timeout: "+one("1s", "5s", "2m"), "early_probes: "+one("[]", "[1s]", "[3s, 1s, 6s]"),
		"max_backoff_multiplier: "+one("2", "8"), "half_open_requests: "+one("2", "3"), "success_threshold: "+one("2", "3"), "probe_lease: "+one("3s", "20s"),
		"cooldown_by_kind: {timeout: 12s, permission: 1m}")
	section("cooldown", "base: "+one("300ms", "2s", "20s"), "max: "+one("60s", "5m"), "max_transient: "+one("5s", "1m"), "max_level: "+one("2", "5"),
		"transient_after: "+one("1", "3"), "forget_after: "+one("2s", "20s", "20m"), "jitter: "+one("10%", "100%"), "cooldown_by_kind: {rate_limit: 3s, billing: 30m, timeout: 0s}")
	section("lockout", "max_attempts: "+one("1", "2"), "attempt_window: "+one("3s", "10m"), "lockout_duration: "+one("3s", "25m", "3s, max_lockout: 5s"), "cooldown_by_kind: {timeout: 4s, rate_limit: 45m}")
	section("recheck", "after: "+one("0s", "10s", "1m"), "alone: "+one("2s", "30s"))
	section("hints", "max: "+one("5s", "1m"), "max_quota: "+one("1m", "24h"), "max_prose: "+one("2s", "30s"))
	return out.String()
}

// changed is what an operator may make of a configuration.
func (o outline) changed(r *rand.Rand) outline {
	n := o
	n.providers = append([]providerOutline(nil), o.providers...)
	p := &n.providers[r.IntN(len(n.providers))]
	p.connections = append([]string(nil), p.connections...)
	c := &p.connections[r.IntN(len(p.connections))]
	switch r.IntN(6) {
	case 0: // another secret
		*c = strings.Replace(*c, "secret-of", "other-secret-of", 1)
	case 1: // another name
		*c = strings.Replace(*c, "id: k1", "id: renamed", 1)
	case 2: // another place
		*c += fmt.Sprintf(", base_url: https://moved-%s.example/v1", p.name)
		if strings.Count(*c, "base_url") > 1 {
			*c = (*c)[:strings.Index(*c, ", base_url")]
		}
	case 3: // other numbers
		n.rest = "resilience:\n" + policy(r, "  ")
	case 4: // one fewer
		if len(p.connections) > 1 {
			p.connections = p.connections[:len(p.connections)-1]
		}
	case 5: // a second one
		p.connections = append(p.connections, "id: new, api_key: new-secret, max_concurrent: 2")
	}
	return n
}

// brief is the same with a policy that rests for little and forgets soon.
func (o outline) brief() outline {
	o.rest = "resilience: {cooldown: {base: 300ms, max: 2s, forget_after: 2s, cooldown_by_kind: {rate_limit: 1s}}, hints: {max: 3s, max_quota: 5s}}\n"
	return o
}

func (o outline) check() *variant {
	var b strings.Builder
	b.WriteString("providers:\n")
	for _, p := range o.providers {
		fmt.Fprintf(&b, "  %s:\n%s    connections:\n", p.name, p.lines)
		for _, c := range p.connections {
			fmt.Fprintf(&b, "      - {%s}\n", c)
		}
	}
	b.WriteString("combos:\n" + strings.Join(o.combos, "") + o.rest)
	cfg, _, err := config.Parse("torture.yaml", []byte(b.String()), func(string) (string, bool) { return "", false })
	if err != nil {
		return nil
	}
	v := &variant{text: b.String(), cfg: cfg, engine: route.EngineConfig(cfg)}
	for _, c := range cfg.Combos {
		v.combos = append(v.combos, c.Name)
	}
	for _, p := range cfg.Providers {
		for _, c := range p.Connections {
			for _, m := range []string{"m", "n", "o"} {
				v.keys = append(v.keys, resilience.Key{Provider: p.ID, Connection: c.ID, Model: m})
			}
		}
	}
	return v
}

// policyOf returns the policy that holds for a key, with its defaults.
func (v *variant) policyOf(k resilience.Key) resilience.Policy {
	return v.policies()[k.Provider]
}

func (v *variant) policies() map[string]resilience.Policy {
	all, ok := policies.Load(v)
	if !ok {
		m := map[string]resilience.Policy{}
		for name, p := range v.engine.Providers {
			m[name] = p.Policy.Defaults()
		}
		all, _ = policies.LoadOrStore(v, m)
	}
	return all.(map[string]resilience.Policy)
}

var policies sync.Map // *variant to map[string]resilience.Policy

// domainOf returns the failure domain of a key, endpointOf where it is.
func (v *variant) domainOf(k resilience.Key) resilience.Key {
	p := v.engine.Providers[k.Provider]
	for _, c := range p.Connections {
		if c.ID == k.Connection && c.Endpoint != "" && c.Endpoint != p.Endpoint {
			return resilience.Key{Provider: k.Provider, Connection: k.Connection}
		}
	}
	return resilience.Key{Provider: k.Provider}
}

func (v *variant) endpointOf(k resilience.Key) string {
	p := v.engine.Providers[k.Provider]
	for _, c := range p.Connections {
		if c.ID == k.Connection && c.Endpoint != "" {
			return c.Endpoint
		}
	}
	return p.Endpoint
}

// has reports whether the configuration names the key's provider and connection.
func (v *variant) has(k resilience.Key) bool {
	if _, ok := v.engine.Providers[k.Provider]; !ok || k.Connection == "" {
		return ok
	}
	return v.credentialOf(k) != ""
}

func (v *variant) credentialOf(k resilience.Key) string {
	for _, c := range v.engine.Providers[k.Provider].Connections {
		if c.ID == k.Connection {
			return c.Credential
		}
	}
	return ""
}
