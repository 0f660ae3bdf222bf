package config

import (
	"strings"
	"testing"
)

func TestRuleOfADialectThatNobodySpeaks(t *testing.T) {
	t.Parallel()
	const conf = `
providers:
  acme: {dialect: openai, base_url: "http://acme.example/v1", connections: [{id: a, api_key: k}]}
  other: {dialect: anthropic, base_url: "http://other.example/v1", connections: [{id: a, api_key: k}]}
error_rules:
  - {RULE, status: 403, scope: connection, kind: auth}
`
	for rule, want := range map[string]string{
		`provider: acme, dialect: anthropic`:            "anthropic is not spoken with acme",
		`provider: [acme, other], dialect: gemini`:      "gemini is not spoken with acme, other",
		`dialect: [openai, gemini]`:                     "gemini is not spoken with any provider here",
		`provider: acme, dialect: openai`:               "",
		`provider: [acme, other], dialect: [anthropic]`: "",
		`dialect: anthropic`:                            "",
	} {
		_, _, err := Parse("t.yaml", []byte(strings.Replace(conf, "RULE", rule, 1)), func(string) (string, bool) { return "", false })
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", rule, err, want)
		}
	}
}
