package config

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/catalog"
)

const routes = `
providers:
  openai:
    models: [gpt-5.2, shared]
    connections: [{id: main, api_key: aaaaaaaa}]
  acme:
    base_url: https://llm.acme.example/v1
    models: [acme-large, shared, {id: org/model, context: 32000}]
    connections: [{id: k1, api_key: aaaaaaaa}]
  zhipu:
    connections: [{id: main, api_key: "${EMPTY:-}"}]
  zai:
    connections: [{id: main, api_key: aaaaaaaa}]
combos:
  coding: {targets: [acme/acme-large, openai/gpt-5.2], deadline: 1m}
  gpt-5.2-fast: {targets: [openai/gpt-5.2], strategy: round-robin}
`

func names(targets []Target) string {
	var all []string
	for _, t := range targets {
		all = append(all, t.Name())
	}
	return strings.Join(all, " ")
}

func TestResolve(t *testing.T) {
	t.Parallel()
	c := mustParse(t, routes)
	for _, test := range []struct {
		name    string
		means   Means
		targets string
	}{
		{"coding", MeansCombo, "acme/acme-large openai/gpt-5.2"},
		{"gpt-5.2-fast", MeansCombo, "openai/gpt-5.2"}, // a combo before any model of that name
		{"openai/gpt-5.2", MeansTarget, "openai/gpt-5.2"},
		{"openai/unlisted", MeansTarget, "openai/unlisted"},
		{"acme/org/model", MeansTarget, "acme/org/model"},
		{"openai/a/b", MeansTarget, "openai/a/b"},
		{"gpt-5.2", MeansListed, "openai/gpt-5.2"},
		{"shared", MeansListed, "openai/shared acme/shared"}, // in config order
		{"org/model", MeansListed, "acme/org/model"},
		{"gpt-6", MeansOwner, "openai/gpt-6"},
		{"o9-mini", MeansOwner, "openai/o9-mini"},
		{"glm-5", MeansOwner, "zai/glm-5"}, // zhipu owns it too and has no connection left
	} {
		r, err := c.Resolve(test.name)
		if err != nil || r.Means != test.means || names(r.Combo.Targets) != test.targets || r.Name != test.name || r.Combo.Name != test.name {
			t.Errorf("%s: %s %+v, %v; want %s %s", test.name, r.Means, r.Combo, err, test.means, test.targets)
			continue
		}
		if test.means == MeansCombo {
			continue
		}
		if r.Combo.Strategy != Priority || !cmp.Equal(r.Combo.Relay, c.Relay) {
			t.Errorf("%s: the implicit combo is %+v", test.name, r.Combo)
		}
	}
	if r, _ := c.Resolve("org/model"); r.Combo.Targets[0].Context != 32000 {
		t.Errorf("the window is lost: %+v", r.Combo.Targets[0])
	}
	if r, _ := c.Resolve("coding"); r.Combo.Relay.Deadline != time.Minute || r.Combo.Relay.MaxAttempts != 6 {
		t.Errorf("the combo's own settings: %+v", r.Combo.Relay)
	}
}

func TestResolveNotFound(t *testing.T) {
	t.Parallel()
	c := mustParse(t, routes)
	for name, want := range map[string][]string{
		"codign": {"coding"}, "acme-lrge": {"acme-large"}, "": nil, "claude-sonnet-5": nil, "open/gpt": nil,
		"openai/": {"openai/shared", "openai/gpt-5.2"}, "completely-different": nil, strings.Repeat("x", 5000): nil,
	} {
		_, err := c.Resolve(name)
		var missing *NotFoundError
		if !errors.As(err, &missing) {
			t.Errorf("%q: %v, want a NotFoundError", name, err)
			continue
		}
		if missing.Name != name || !cmp.Equal(want, missing.Nearest) {
			t.Errorf("%q: nearest %q, want %q", name, missing.Nearest, want)
		}
		if text := err.Error(); len(text) > 400 || len(want) > 0 && !strings.Contains(text, want[0]) {
			t.Errorf("%q: the text is %q", name, text)
		}
	}
}

func TestResolveOnlyProvider(t *testing.T) {
	t.Parallel()
	c := mustParse(t, "providers: {ollama: {models: [llama3.3]}}\n")
	r, err := c.Resolve("anything:8b")
	if err != nil || r.Means != MeansOnly || names(r.Combo.Targets) != "ollama/anything:8b" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := c.ResolveFor(catalog.Gemini, "anything:8b"); err == nil {
		t.Error("a provider that does not speak the client's dialect was taken as its only one")
	}
	// A provider whose connections were left out on this machine makes no name ambiguous.
	c = mustParse(t, "providers: {ollama: {}, groq: {connections: [{id: main, api_key: \"${EMPTY:-}\"}]}}\n")
	if r, err = c.Resolve("anything:8b"); err != nil || names(r.Combo.Targets) != "ollama/anything:8b" {
		t.Errorf("%+v, %v", r, err)
	}
	c = mustParse(t, "providers: {ollama: {}, vllm: {}}\n")
	if r, err = c.Resolve("anything:8b"); err == nil {
		t.Errorf("two providers could be meant, and %+v was chosen", r)
	}
	// The owner's connection was left out: the name still is known, so that the answer is "no
	// connection" and not "no such model".
	c = mustParse(t, "providers: {ollama: {}, openai: {connections: [{id: main, api_key: \"${EMPTY:-}\"}]}}\n")
	if r, err = c.Resolve("gpt-5.2"); err != nil || r.Means != MeansOwner || len(r.Combo.Targets[0].Provider.Connections) != 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestTimeouts(t *testing.T) {
	t.Parallel()
	const text = `
providers:
  openai:
    models: [{id: o3-listed, first_token_timeout: 20s}]
    connections: [{id: main, api_key: aaaaaaaa}]
  acme:
    base_url: https://llm.acme.example/v1
    first_token_timeout: 40s
    answer_timeout: 41s
    models: [{id: slow, answer_timeout: 50s}]
    connections: [{id: main, api_key: aaaaaaaa}]
combos:
  plain: {targets: [openai/o3, acme/slow]}
  own: {targets: [openai/o3, acme/slow], first_token_timeout: 7s}
`
	check := func(c *Config, name string, index int, first, answer time.Duration) {
		t.Helper()
		r, err := c.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := r.Combo.Targets[index]; got.FirstTokenTimeout != first || got.AnswerTimeout != answer {
			t.Errorf("%s[%d]: %v and %v, want %v and %v", name, index, got.FirstTokenTimeout, got.AnswerTimeout, first, answer)
		}
	}
	c := mustParse(t, text)
	check(c, "openai/gpt-5.2", 0, 60*time.Second, 5*time.Minute)
	check(c, "openai/o3", 0, 3*time.Minute, 10*time.Minute)
	check(c, "openai/o3-listed", 0, 20*time.Second, 10*time.Minute)
	check(c, "acme/fast", 0, 40*time.Second, 41*time.Second)
	check(c, "acme/slow", 0, 40*time.Second, 50*time.Second)
	check(c, "plain", 0, 3*time.Minute, 10*time.Minute)
	check(c, "own", 0, 7*time.Second, 10*time.Minute)
	check(c, "own", 1, 7*time.Second, 50*time.Second)
	// What the file says in general is stronger than what is known in general.
	c = mustParse(t, text+"relay: {first_token_timeout: 5s}\n")
	check(c, "openai/o3", 0, 5*time.Second, 10*time.Minute)
	check(c, "acme/fast", 0, 40*time.Second, 41*time.Second)
}

// TestOwnerWithTheLongestName uses providers of its own: no two known ones claim the same names differently.
func TestOwnerWithTheLongestName(t *testing.T) {
	t.Parallel()
	known := func(patterns ...catalog.Pattern) *catalog.Provider { return &catalog.Provider{Models: patterns} }
	one := []*Connection{{ID: "main"}}
	for _, test := range []struct {
		providers []*Provider
		want      string
	}{
		{[]*Provider{{ID: "short", Known: known("a-*"), Connections: one}, {ID: "long", Known: known("a-b-*"), Connections: one}}, "long/a-b-c"},
		{[]*Provider{{ID: "long", Known: known("a-b-*"), Connections: one}, {ID: "short", Known: known("a-*"), Connections: one}}, "long/a-b-c"},
		{[]*Provider{{ID: "long", Known: known("a-b-*")}, {ID: "short", Known: known("a-*"), Connections: one}}, "short/a-b-c"},
		{[]*Provider{{ID: "short", Known: known("a-*"), Connections: one}, {ID: "long", Known: known("a-b-*")}}, "short/a-b-c"},
		{[]*Provider{{ID: "x", Known: known("a-*"), Connections: one}, {ID: "y", Known: known("a-*"), Connections: one}, {ID: "z", Known: known("z-*")}, {ID: "own"}}, "x/a-b-c y/a-b-c"},
	} {
		c := &Config{Providers: test.providers}
		if r, err := c.Resolve("a-b-c"); err != nil || names(r.Combo.Targets) != test.want {
			t.Errorf("%+v, %v; want %s", r.Combo, err, test.want)
		}
	}
}
