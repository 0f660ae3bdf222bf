package config

import "testing"

func TestHide(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
admin_token: operators-word
client_keys: [a-clients-key]
providers:
  acme:
    base_url: https://acme.example/v1
    proxy: http://user:proxy-word@127.0.0.1:8080
    headers: {x-team: team-word, x-level: two}
    connections: [{id: k1, api_key: first-key}, {id: k2, api_key: first-key-and-more}]
  beta:
    base_url: https://beta.example/v1
    connections: [{id: k1, api_key: other-key}]
`)
	for text, want := range map[string]string{
		"":                                    "",
		"nothing of it":                       "nothing of it",
		"first-key first-key-and-more":        "[redacted] [redacted]",
		"(other-key)operators-word team-word": "([redacted])[redacted] [redacted]",
		"via proxy-word":                      "via [redacted]",
		"two words":                           "two words", // too short to be a secret
	} {
		if got := c.Hide(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}
