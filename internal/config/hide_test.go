package config

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

func TestHideEchoes(t *testing.T) {
	t.Parallel()
	c := mustParse(t, `
providers:
  acme:
    base_url: https://acme.example/v1
    headers: {x-team: team-word, x-region: eu}
    connections: [{id: k1, api_key: first-key}, {id: k2, api_key: second-key}]
`)
	h := http.Header{
		"X-Was": {"Bearer first-key", "eu", ""}, "Location": {"https://acme.example/?key=first-key&team=team-word"},
		"X-Other": {"second-key"}, // not sent on this connection
	}
	c.Provider("acme").Connection("k1").HideEchoes(h)
	want := http.Header{
		"X-Was": {"Bearer [redacted]", "eu", ""}, "Location": {"https://acme.example/?key=[redacted]&team=[redacted]"},
		"X-Other": {"second-key"},
	}
	if diff := cmp.Diff(want, h); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
