package config

import (
	"os"
	"strings"
	"testing"
	"time"

	"omniroute/internal/catalog"
	"omniroute/resilience"

	"github.com/google/go-cmp/cmp"
)

// variables is the environment of most tests.
func variables(name string) (string, bool) {
	v, ok := map[string]string{
		"OPENAI_API_KEY": "sk-live-openai-0001", "OMNIROUTE_CLIENT_KEY": "ck-live-client-01", "OMNIROUTE_ADMIN_TOKEN": "at-live-admin-0001",
		"EMPTY": "", "FIVE": "5", "SOON": "7s",
	}[name]
	return v, ok
}

// files is the file system of most tests.
func files(path string) ([]byte, error) {
	if text, ok := map[string]string{"conf/key.txt": "sk-file-00000001\n", "conf/empty.txt": "\n", "conf/text.pem": "no certificate"}[path]; ok {
		return []byte(text), nil
	}
	return nil, &os.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
}

func parseText(src string) (*Config, []Warning, error) {
	return parse("conf/omniroute.yaml", []byte(src), variables, files)
}

func mustParse(t *testing.T, src string) *Config {
	t.Helper()
	c, _, err := parseText(src)
	if err != nil {
		t.Fatalf("Parse: %v", err)
	}
	return c
}

func TestParseFull(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile("testdata/full.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, warnings, err := parseText(string(src))
	if err != nil {
		t.Fatal(err)
	}
	if len(warnings) != 2 || warnings[0].Line == 0 || !strings.Contains(warnings[1].Message, "knows no weights") {
		t.Errorf("warnings %v, want one about the connection spare and one about a weight without effect", warnings)
	}

	if got := c.Provider("openai"); got.Connection("spare") != nil || !cmp.Equal(got.LeftOut, []string{"spare"}) {
		t.Errorf("spare has no key and was not left out: %v", got.LeftOut)
	}
	if got := c.Provider("openai").Connection("main").Key.Reveal(); got != "sk-live-openai-0001" {
		t.Errorf("key %q", got)
	}
	acme := c.Provider("acme")
	if got := acme.Policy.Breaker.ResetTimeout; got != 10*time.Second {
		t.Errorf("acme reset_timeout %v, want its own 10s", got)
	}
	if got := acme.Policy.Cooldown; !cmp.Equal(got, c.Resilience.Cooldown) {
		t.Errorf("acme cooldown differs from the general one: %s", cmp.Diff(c.Resilience.Cooldown, got))
	}
	if diff := cmp.Diff(resilience.Policy{}.Defaults(), c.Resilience); diff != "" {
		t.Errorf("the written defaults differ from the defaults (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(defaultRelay(), c.Relay); diff != "" {
		t.Errorf("the written defaults differ from the defaults (-want +got):\n%s", diff)
	}
	k1 := acme.Connection("k1")
	if !k1.OwnDomain() || k1.BaseURL(catalog.OpenAI) != "https://eu.acme.example/v1" || k1.Weight != 2 {
		t.Errorf("k1 is %+v", k1)
	}
	var names []string
	for _, target := range c.Combo("coding").Targets {
		names = append(names, target.Name())
	}
	if diff := cmp.Diff([]string{"anthropic/claude-sonnet-5", "openai/gpt-5.2", "acme/acme-large"}, names); diff != "" {
		t.Error(diff)
	}
	if rule := c.ErrorRules[0]; rule.At().Line == 0 || rule.Kind != resilience.KindQuotaExhausted || rule.Constant || !cmp.Equal(rule.Status, []string{"403"}) {
		t.Errorf("rule %+v", rule)
	}
	if !c.ClientAllowed("ck-live-client-01") || c.ClientAllowed("") || c.ClientAllowed("ck-live-client-02") {
		t.Error("client keys are not checked")
	}
}
