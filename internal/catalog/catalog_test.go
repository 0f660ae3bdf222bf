package catalog

import (
	"net/url"
	"regexp"
	"strings"
	"testing"
)

func TestProvidersAreComplete(t *testing.T) {
	t.Parallel()
	if n := len(All()); n < 25 {
		t.Errorf("%d providers, want 25 or more", n)
	}
	name := regexp.MustCompile(`^[a-z0-9][a-z0-9.-]*$`)
	variable := regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	seen, variables := map[string]bool{}, map[string]string{}
	for _, p := range All() {
		for _, id := range append([]string{p.ID}, p.Aliases...) {
			if !name.MatchString(id) || seen[id] {
				t.Errorf("%s: the name %q is malformed or taken", p.ID, id)
			}
			seen[id] = true
			if Lookup(id) != p {
				t.Errorf("%s is not found as %q", p.ID, id)
			}
		}
		if p.Title == "" || len(p.Endpoints) == 0 {
			t.Errorf("%s lacks a title or an endpoint", p.ID)
		}
		_, chat := p.Endpoint(OpenAI)
		if _, responses := p.Endpoint(Responses); !chat && !responses {
			t.Errorf("%s speaks no API of OpenAI's", p.ID)
		}
		dialects := map[Dialect]bool{}
		for _, e := range p.Endpoints {
			if dialects[e.Dialect] {
				t.Errorf("%s has two endpoints for %s", p.ID, e.Dialect)
			}
			dialects[e.Dialect] = true
			if e.BaseURL == "" {
				if p.BaseURLVariable == "" || p.BaseURLPath == "" || p.BaseURLExample == "" {
					t.Errorf("%s has neither an address nor says where to get one", p.ID)
				}
				continue
			}
			u, err := url.Parse(e.BaseURL)
			if err != nil || strings.HasSuffix(e.BaseURL, "/") || u.Host == "" {
				t.Errorf("%s: address %q", p.ID, e.BaseURL)
			}
			if (u.Scheme == "http") != p.Local() || p.Local() != (u.Hostname() == "127.0.0.1") {
				t.Errorf("%s: only what runs on this machine is called without TLS and a key: %s", p.ID, e.BaseURL)
			}
		}
		for _, v := range p.KeyVariables {
			if !variable.MatchString(v) || variables[v] != "" {
				t.Errorf("%s: the variable %s is malformed or also %s's", p.ID, v, variables[v])
			}
			variables[v] = p.ID
		}
		for _, timeout := range p.Timeouts {
			if timeout.Models == "" || timeout.FirstToken == 0 && timeout.Answer == 0 {
				t.Errorf("%s has a timeout that does nothing", p.ID)
			}
		}
	}
}

func TestOwners(t *testing.T) {
	t.Parallel()
	for model, want := range map[string]string{
		"gpt-5.2": "openai", "o1": "openai", "o3-mini": "openai", "O4-mini": "openai", "claude-sonnet-5": "anthropic", "gemini-3-pro": "gemini",
		"deepseek-chat": "deepseek", "grok-4": "xai", "mistral-large": "mistral", "sonar": "", "qwen3-max": "dashscope",
		"kimi-k2": "moonshot", "MiniMax-M2": "minimax", "command-a": "cohere",
		"olmo-2": "", "open-llama": "", "llama-3.3-70b": "", "o": "", "my-gpt-5": "",
	} {
		var owners []string
		for _, p := range All() {
			if _, ok := p.Owns(model); ok {
				owners = append(owners, p.ID)
			}
		}
		if got := strings.Join(owners, " "); got != want {
			t.Errorf("%s belongs to %q, want %q", model, got, want)
		}
	}
}

func TestTimeoutOf(t *testing.T) {
	t.Parallel()
	openai := Lookup("openai")
	if got := openai.TimeoutOf("gpt-5.2"); got.FirstToken != 0 {
		t.Errorf("gpt-5.2 is no slow thinker: %+v", got)
	}
	if got := openai.TimeoutOf("o3-deep-research"); got.FirstToken != research {
		t.Errorf("the first match does not count: %+v", got)
	}
	if got := openai.TimeoutOf("o3"); got.FirstToken != thinking || got.Answer != wholeSlow {
		t.Errorf("o3 got %+v", got)
	}
}

func TestPattern(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pattern Pattern
		name    string
		want    bool
	}{
		{"gpt-*", "gpt-", true}, {"gpt-*", "gpt", false}, {"*", "", true}, {"", "", true}, {"", "a", false},
		{"o#*", "o1", true}, {"o#*", "oo", false}, {"*-pro*", "gpt-5-pro-2026", true}, {"*-pro*", "gpt-5", false},
		{"a*b*c", "aXbYbZc", true}, {"a*b*c", "aXbYbZ", false}, {"a**", "a", true}, {"SONAR", "sonar", true},
	} {
		if got := c.pattern.Match(c.name); got != c.want {
			t.Errorf("%q matches %q: %v, want %v", c.pattern, c.name, got, c.want)
		}
	}
}

// FuzzPattern compares the matcher with the same question put to a regular expression.
func FuzzPattern(f *testing.F) {
	f.Add("a*b#c", "axxb1c")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 40 || len(name) > 200 || strings.ContainsFunc(pattern+name, func(r rune) bool { return r >= 0x80 || r == '\n' }) {
			t.Skip()
		}
		expression := regexp.QuoteMeta(strings.ToLower(pattern))
		expression = strings.ReplaceAll(strings.ReplaceAll(expression, `\*`, `.*`), `#`, `[0-9#]`)
		want := regexp.MustCompile(`^` + expression + `$`).MatchString(strings.ToLower(name))
		if got := Pattern(pattern).Match(name); got != want {
			t.Errorf("%q matches %q: %v, want %v", pattern, name, got, want)
		}
	})
}

func TestHeader(t *testing.T) {
	t.Parallel()
	for auth, want := range map[Auth]string{Bearer: "Authorization: Bearer k", XAPIKey: "X-Api-Key: k", APIKey: "Api-Key: k", GoogAPIKey: "X-Goog-Api-Key: k"} {
		if name, value := auth.Header("k"); name+": "+value != want {
			t.Errorf("%s sends %s: %s, want %s", auth, name, value, want)
		}
	}
	if DefaultAuth(Anthropic) != XAPIKey || DefaultAuth(Gemini) != GoogAPIKey || DefaultAuth(OpenAI) != Bearer || DefaultAuth(Responses) != Bearer {
		t.Error("an unknown service of a dialect gets its key in another header than the dialect's own")
	}
}

// TestAbilities holds that every line of the table can be found and says something that can be.
func TestAbilities(t *testing.T) {
	t.Parallel()
	for i, a := range abilities {
		name := strings.NewReplacer("*", "", "#", "4").Replace(string(a.Models))
		found := -1
		for k, b := range abilities {
			if b.Models.Match(name) {
				found = k
				break
			}
		}
		if found != i {
			t.Errorf("%s is never found: %q comes before it", a.Models, abilities[found].Models)
		}
		if a.Context < 4096 || a.MaxOutput > a.Context {
			t.Errorf("%+v cannot be", a)
		}
	}
	openai, ollama, openrouter := Lookup("openai"), Lookup("ollama"), Lookup("openrouter")
	if a := openai.AbilityOf("gpt-4o-mini"); a.Context != 128000 || a.NoImages {
		t.Errorf("%+v", a)
	}
	if a := openrouter.AbilityOf("openai/gpt-3.5-turbo"); a.Context != 16385 || !a.NoImages {
		t.Errorf("%+v", a)
	}
	if a := ollama.AbilityOf("gpt-4"); a != (Ability{}) {
		t.Errorf("a model on the user's own machine is taken for the vendor's: %+v", a)
	}
	if a := openai.AbilityOf("gpt-9"); a != (Ability{}) {
		t.Errorf("%+v", a)
	}
}
