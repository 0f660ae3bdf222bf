package config

import (
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"omniroute/internal/catalog"
)

func environment(vars map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := vars[name]; return v, ok }
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	c, warnings, err := FromEnvironment(environment(map[string]string{
		"ANTHROPIC_API_KEY": "sk-ant-1", "OPENAI_API_KEY": "sk-1", "OPENAI_API_KEY_2": "sk-2", "GROQ_API_KEY": "",
		"GOOGLE_API_KEY": "g-1", "GEMINI_API_KEY": "g-2", "MISTRAL_API_KEY": "two words",
		"AZURE_OPENAI_API_KEY": "az-1", "AZURE_OPENAI_ENDPOINT": "https://acme.openai.azure.com/",
		"OMNIROUTE_CLIENT_KEY": "ck-1", "XDG_STATE_HOME": state,
	}))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range c.Providers {
		for _, conn := range p.Connections {
			got = append(got, p.ID+"/"+conn.ID+"="+conn.Key.Reveal())
		}
	}
	want := []string{"openai/main=sk-1", "openai/key2=sk-2", "anthropic/main=sk-ant-1", "gemini/main=g-2", "azure/main=az-1"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if len(warnings) != 1 || !strings.Contains(warnings[0].String(), "MISTRAL_API_KEY") || strings.Contains(warnings[0].String(), "two words") {
		t.Errorf("warnings %v, want one about MISTRAL_API_KEY without its value", warnings)
	}
	if got := c.Provider("azure").Connections[0].BaseURL(catalog.OpenAI); got != "https://acme.openai.azure.com/openai/v1" {
		t.Errorf("azure is called at %s", got)
	}
	if want := (Store{Kind: StoreSQLite, Path: filepath.Join(state, "omniroute", "omniroute.db")}); c.Store != want {
		t.Errorf("store %+v, want %+v", c.Store, want)
	}
	if c.ClientAllowed("") || !c.ClientAllowed("ck-1") {
		t.Error("the client key of the environment does not hold")
	}
	for model, target := range map[string]string{"gpt-5.2": "openai/gpt-5.2", "claude-sonnet-5": "anthropic/claude-sonnet-5", "gemini-3-pro": "gemini/gemini-3-pro", "azure/prod": "azure/prod"} {
		if r, err := c.Resolve(model); err != nil || names(r.Combo.Targets) != target {
			t.Errorf("%s: %+v, %v", model, r, err)
		}
	}
}

func TestFromEnvironmentWithoutKeys(t *testing.T) {
	t.Parallel()
	_, _, err := FromEnvironment(environment(nil))
	if !errors.Is(err, ErrNoKeys) || !strings.Contains(err.Error(), "OPENAI_API_KEY") || !strings.Contains(err.Error(), "omniroute init") {
		t.Errorf("%v, want what to do", err)
	}
	_, warnings, err := FromEnvironment(environment(map[string]string{"AZURE_OPENAI_API_KEY": "az-secret-1"}))
	if !errors.Is(err, ErrNoKeys) || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "AZURE_OPENAI_ENDPOINT") {
		t.Errorf("%v, %v; want a warning that the endpoint is missing", warnings, err)
	}
}

// TestPairsFromTheEnvironment sets every two known variables together: both providers are there, and a bare name goes to
// the one that it belongs to.
func TestPairsFromTheEnvironment(t *testing.T) {
	t.Parallel()
	names := map[string]string{"openai": "gpt-5.2", "anthropic": "claude-sonnet-5", "gemini": "gemini-3-pro", "mistral": "mistral-large", "deepseek": "deepseek-chat",
		"xai": "grok-4", "cohere": "command-a", "moonshot": "kimi-k2", "dashscope": "qwen3-max", "minimax": "MiniMax-M2"}
	for i, p := range catalog.All() {
		for _, q := range catalog.All()[i+1:] {
			if !p.NeedsKey() || !q.NeedsKey() || p.Retired != "" || q.Retired != "" {
				continue
			}
			vars := map[string]string{p.KeyVariables[0]: "k-1", q.KeyVariables[0]: "k-2", "AZURE_OPENAI_ENDPOINT": "https://acme.example"}
			c, warnings, err := FromEnvironment(environment(vars))
			if err != nil || len(warnings) > 0 || len(c.Providers) != 2 {
				t.Errorf("%s and %s: %v, %v", p.ID, q.ID, warnings, err)
				continue
			}
			for _, known := range []*catalog.Provider{p, q} {
				if name := names[known.ID]; name != "" {
					if r, err := c.Resolve(name); err != nil || len(r.Combo.Targets) != 1 || r.Combo.Targets[0].Provider.ID != known.ID {
						t.Errorf("%s and %s: %s is not %s's: %v", p.ID, q.ID, name, known.ID, err)
					}
				}
				if r, err := c.Resolve(known.ID + "/made-up"); err != nil || r.Combo.Targets[0].Provider.ID != known.ID {
					t.Errorf("%s and %s: %s/made-up: %v", p.ID, q.ID, known.ID, err)
				}
			}
		}
	}
}

// TestRetiredProvider: a service that has ended is not taken from the environment, and a file that names it hears of it.
func TestRetiredProvider(t *testing.T) {
	t.Parallel()
	_, warnings, err := FromEnvironment(environment(map[string]string{"GITHUB_MODELS_TOKEN": "k-1"}))
	if !errors.Is(err, ErrNoKeys) || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "retired") {
		t.Errorf("%v, %v", warnings, err)
	}
	for text, want := range map[string]int{
		`providers: {github-models: {connections: [{id: main, api_key: k-1}]}}`:                                        1,
		`providers: {github-models: {base_url: "https://models.example/v1", connections: [{id: main, api_key: k-1}]}}`: 0,
	} {
		_, warnings, err := Parse("test.yaml", []byte(text), environment(nil))
		if err != nil || len(warnings) != want || want > 0 && !strings.Contains(warnings[0].Message, "2026-07-30") {
			t.Errorf("%s: %v, %v", text, warnings, err)
		}
	}
}

// TestEveryProviderWorksFromTheEnvironment sets each known variable alone.
func TestEveryProviderWorksFromTheEnvironment(t *testing.T) {
	t.Parallel()
	for _, p := range catalog.All() {
		if p.Retired != "" {
			continue
		}
		for _, variable := range p.KeyVariables {
			vars := map[string]string{variable: "k-1"}
			if p.BaseURLVariable != "" {
				vars[p.BaseURLVariable] = "https://acme.example"
			}
			c, warnings, err := FromEnvironment(environment(vars))
			if err != nil || len(warnings) > 0 || len(c.Providers) != 1 || c.Providers[0].ID != p.ID || c.Providers[0].Connections[0].Key.Reveal() != "k-1" {
				t.Errorf("%s: %v, %v", variable, warnings, err)
				continue
			}
			dialect := catalog.OpenAI
			if _, ok := p.Endpoint(dialect); !ok {
				dialect = p.Endpoints[0].Dialect
			}
			if r, err := c.ResolveFor(dialect, "any-model"); err != nil || r.Combo.Targets[0].Provider.ID != p.ID {
				t.Errorf("%s: a bare name does not reach the only provider: %v", variable, err)
			}
		}
	}
}

func TestInit(t *testing.T) {
	t.Parallel()
	for _, vars := range []map[string]string{
		nil,
		{"OPENAI_API_KEY": "sk-secret-1", "OPENAI_API_KEY_2": "sk-secret-2", "OMNIROUTE_ADMIN_TOKEN": "at-secret-1"},
		{"AZURE_OPENAI_API_KEY": "az-secret-1", "AZURE_OPENAI_ENDPOINT": "https://it's.example/${x}", "ANTHROPIC_API_KEY": "sk-secret-3", "GROQ_API_KEY": "sk-secret-4", "XAI_API_KEY": "sk-secret-5", "OMNIROUTE_CLIENT_KEY": "ck-secret-1"},
	} {
		env := environment(vars)
		text := string(Init(env))
		first, _, _ := strings.Cut(text, "\n")
		if first != "# yaml-language-server: $schema=omniroute.schema.json" {
			t.Errorf("the first line is %q", first)
		}
		if strings.Contains(text, "secret") {
			t.Errorf("a secret was written:\n%s", text)
		}
		c, warnings, err := Parse("omniroute.yaml", []byte(text), env)
		if err != nil {
			t.Errorf("%v\n%s", err, text)
			continue
		}
		if len(vars) > 0 && len(warnings) > 0 {
			t.Errorf("warnings %v", warnings)
		}
		if len(vars) > 0 && len(c.Providers) == 0 {
			t.Error("no provider was found")
		}
		// The settings behind a bare # must work once it is taken away.
		bare := regexp.MustCompile(`(?m)^#([a-z]|  )`)
		used := bare.ReplaceAllString(text, "$1")
		withKeys := func(name string) (string, bool) {
			if v, ok := env(name); ok {
				return v, ok
			}
			return "k-12345678", strings.HasPrefix(name, "OMNIROUTE_")
		}
		if _, _, err := Parse("omniroute.yaml", []byte(used), withKeys); err != nil {
			t.Errorf("taken into use: %v\n%s", err, used)
		}
		if n := len(bare.FindAllString(text, -1)); n < 20 {
			t.Errorf("only %d settings are offered", n)
		}
	}
}
