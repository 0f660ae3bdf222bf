package transport

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"omniroute/internal/config"
)

// Upstream is one account at a provider, and what to ask it for.
type Upstream struct {
	// Provider is a name that OmniRoute knows ("openai", "anthropic", "groq", …), or any other with
	// a BaseURL and a Dialect. Upstreams of one name share a circuit breaker and must have the same
	// BaseURL and Dialect; a region that fails by itself deserves a name of its own.
	Provider string
	// Connection names the account in errors, logs and the state, so that it keeps its state when
	// others come or go. Defaults to the upstream's place among those of its provider: "1", "2".
	// Upstreams of one provider with the same name are one account asked for several models.
	Connection string
	// APIKey is the account's secret. Empty where the service needs none.
	APIKey string
	// Model is what to ask for here. Empty: what the request names. Neighbours in the list with the
	// same provider and model are siblings: they take turns, and are tried at once when one fails.
	Model string
	// BaseURL is the address up to and without /chat/completions or /messages. Empty: the known
	// one.
	BaseURL string
	// Dialect is "openai", "responses", "anthropic" or "gemini". Empty: the known one.
	Dialect string
}

// configure makes the configuration of a list of upstreams, and what tells the targets of a model.
func configure(list []Upstream) (*config.Config, func(model string) []config.Target, error) {
	list = slices.Clone(list)
	text := &document{values: map[string]string{}}
	var order []string
	providers := map[string]*provider{}
	for i := range list {
		u := &list[i]
		if u.Provider == "" {
			return nil, nil, fmt.Errorf("upstream %d has no Provider", i+1)
		}
		p := providers[u.Provider]
		if p == nil {
			p = &provider{first: u, at: i, keys: map[string]string{}}
			providers[u.Provider] = p
			order = append(order, u.Provider)
		}
		if err := p.add(u, i); err != nil {
			return nil, nil, err
		}
	}
	var all yaml.MapSlice
	for _, name := range order {
		all = append(all, yaml.MapItem{Key: name, Value: providers[name].write(text)})
	}
	src, err := yaml.Marshal(yaml.MapSlice{{Key: "providers", Value: all}})
	if err != nil {
		return nil, nil, fmt.Errorf("the upstreams cannot be written down: %w", err)
	}
	cfg, _, err := config.Parse("upstreams", src, text.lookup)
	if err != nil {
		return nil, nil, err
	}
	return cfg, func(model string) []config.Target { return targets(cfg, list, model) }, nil
}

// provider gathers the accounts of one provider.
type provider struct {
	first *Upstream
	at    int
	ids   []string
	keys  map[string]string // by connection
}

func (p *provider) add(u *Upstream, i int) error {
	if u.BaseURL != p.first.BaseURL || u.Dialect != p.first.Dialect {
		return fmt.Errorf("upstreams %d and %d are both of %q and differ in BaseURL or Dialect; give one of them a Provider name of its own", p.at+1, i+1, u.Provider)
	}
	if u.Connection == "" {
		u.Connection = strconv.Itoa(len(p.ids) + 1)
		for j, id := range p.ids { // the same account again, for another model
			if u.APIKey == p.keys[id] && id == strconv.Itoa(j+1) {
				u.Connection = id
			}
		}
	}
	key, known := p.keys[u.Connection]
	if known && key != u.APIKey {
		return fmt.Errorf("upstream %d: there are two keys for connection %q of %q", i+1, u.Connection, u.Provider)
	}
	if !known {
		p.ids = append(p.ids, u.Connection)
		p.keys[u.Connection] = u.APIKey
	}
	return nil
}

func (p *provider) write(d *document) yaml.MapSlice {
	var out yaml.MapSlice
	add := func(key, value string) {
		if value != "" {
			out = append(out, yaml.MapItem{Key: key, Value: d.value(value)})
		}
	}
	add("base_url", strings.TrimSuffix(p.first.BaseURL, "/"))
	add("dialect", p.first.Dialect)
	var connections []yaml.MapSlice
	for _, id := range p.ids {
		key := p.keys[id]
		if key == "" {
			key = "none"
		}
		connections = append(connections, yaml.MapSlice{{Key: "id", Value: d.value(id)}, {Key: "api_key", Value: d.value(key)}})
	}
	return append(out, yaml.MapItem{Key: "connections", Value: connections})
}

// document holds the values that are written as variables, so that no text of a caller is ever read
// as YAML or as a variable.
type document struct{ values map[string]string }

func (d *document) value(text string) string {
	name := "V" + strconv.Itoa(len(d.values))
	d.values[name] = text
	return "${" + name + "}"
}

func (d *document) lookup(name string) (string, bool) {
	v, ok := d.values[name]
	return v, ok
}

// targets lists, in order, what a request for a model may go to.
func targets(cfg *config.Config, list []Upstream, model string) []config.Target {
	var out []config.Target
	for i := 0; i < len(list); {
		asked := func(u Upstream) string {
			if u.Model != "" {
				return u.Model
			}
			return model
		}
		first := list[i]
		run := i + 1
		for run < len(list) && list[run].Provider == first.Provider && asked(list[run]) == asked(first) {
			run++
		}
		p := cfg.Provider(first.Provider)
		t := cfg.Target(p, asked(first))
		if run-i == len(p.Connections) { // all of them: they take turns
			out = append(out, t)
		} else {
			for _, u := range list[i:run] {
				t.Connection = p.Connection(u.Connection)
				out = append(out, t)
			}
		}
		i = run
	}
	return out
}
