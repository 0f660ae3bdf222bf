package config

import (
	"fmt"
	"slices"
	"strings"

	"omniroute/internal/catalog"
)

// Means says by which rule a name was understood.
type Means string

// The rules, in the order in which they are tried.
const (
	MeansCombo  Means = "combo"  // a combo of that name
	MeansTarget Means = "target" // provider/model
	MeansListed Means = "listed" // a model that providers list
	MeansOwner  Means = "owner"  // a name that belongs to a provider, such as claude-… to Anthropic
	MeansOnly   Means = "only"   // nobody else could be meant
)

// Resolution is what a name that a client sent stands for.
type Resolution struct {
	Name  string
	Means Means
	// Combo is the combo of that name, or an implicit one (priority, general settings) of what the
	// name stands for.
	Combo *Combo
}

// NotFoundError says that a name stands for nothing here.
type NotFoundError struct {
	Name string
	// Nearest are at most three names that may have been meant, the likeliest first.
	Nearest []string
}

// NotFound makes the error for a name, of which those in names may have been meant.
func NotFound(name string, names []string) *NotFoundError {
	return &NotFoundError{name, nearest(name, names, 3)}
}

// Error names what may have been meant.
func (e *NotFoundError) Error() string {
	name := e.Name
	if len(name) > 100 {
		name = name[:100] + "…"
	}
	text := fmt.Sprintf("no combo, model or provider/model is named %q", name)
	if len(e.Nearest) > 0 {
		quoted := make([]string, len(e.Nearest))
		for i, n := range e.Nearest {
			quoted[i] = quote(n)
		}
		text += "; did you mean " + strings.Join(quoted, ", ") + "?"
	}
	return text
}

// Resolve tells what a name that a client of the OpenAI dialect sent stands for: a combo, provider/model (listed or
// not), a model that providers list, a name that by the catalogue belongs to a configured provider, or else the only
// provider that speaks the dialect. The error is a *NotFoundError.
func (c *Config) Resolve(name string) (Resolution, error) { return c.ResolveFor(catalog.OpenAI, name) }

// ResolveFor is Resolve for a client of another dialect.
func (c *Config) ResolveFor(d catalog.Dialect, name string) (Resolution, error) {
	if combo := c.combos[name]; combo != nil {
		return Resolution{name, MeansCombo, combo}, nil
	}
	if id, model, ok := strings.Cut(name, "/"); ok && model != "" {
		if p := c.providers[id]; p != nil {
			return c.Implicit(name, MeansTarget, c.Target(p, model)), nil
		}
	}
	if targets := c.listed[name]; len(targets) > 0 {
		return c.Implicit(name, MeansListed, targets...), nil
	}
	if name != "" {
		if owners := c.owners(name); len(owners) > 0 {
			return c.Implicit(name, MeansOwner, owners...), nil
		}
		if only := c.only(d); only != nil {
			return c.Implicit(name, MeansOnly, c.Target(only, name)), nil
		}
	}
	return Resolution{}, NotFound(name, c.names)
}

// Implicit returns what a name stands for that is no combo of the file: its targets, tried in their order, with
// the general settings.
func (c *Config) Implicit(name string, means Means, targets ...Target) Resolution {
	combo := &Combo{Name: name, Strategy: Priority, Targets: slices.Clip(targets), Relay: c.Relay}
	for _, t := range targets {
		combo.Entries = append(combo.Entries, Entry{Target: t, Weight: 1})
	}
	return Resolution{name, means, combo}
}

// owners returns the providers to which a bare name belongs, those with the longest match; a provider
// without a connection counts only where there is no other.
func (c *Config) owners(name string) []Target {
	var targets []Target
	longest, connected := 0, false
	for _, p := range c.Providers {
		if p.Known == nil {
			continue
		}
		length, ok := p.Known.Owns(name)
		has := len(p.Connections) > 0
		switch {
		case !ok || connected && !has || connected == has && length < longest:
			continue
		case has && !connected || length > longest:
			targets = targets[:0]
		}
		longest, connected = length, has
		targets = append(targets, c.Target(p, name))
	}
	return targets
}

// only returns the single provider that speaks the dialect, nil when there are none or several. One without
// a connection counts only where all are so.
func (c *Config) only(d catalog.Dialect) *Provider {
	var connected, others []*Provider
	for _, p := range c.Providers {
		switch _, speaks := p.Endpoint(d); {
		case !speaks:
		case len(p.Connections) > 0:
			connected = append(connected, p)
		default:
			others = append(others, p)
		}
	}
	if len(connected) == 0 {
		connected = others
	}
	if len(connected) != 1 {
		return nil
	}
	return connected[0]
}

// Target returns the target of a model of a provider outside of any combo.
func (c *Config) Target(p *Provider, model string) Target {
	t := Target{Provider: p, Model: model}
	t.FirstTokenTimeout, t.AnswerTimeout = c.timeouts(p, model)
	if m := p.Model(model); m != nil {
		t.Context = m.Context
	}
	return t
}
