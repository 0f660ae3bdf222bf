package gateway_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

const clientConfig = `
store: "memory:"
client_keys:
  - everything-key
  - {key: coding-key, name: coders, models: [coding]}
  - {key: provider-key, name: p-only, models: ["p/*"]}
  - {key: narrow-key, name: narrow, targets: ["q/*"]}
providers:
  p: {base_url: "$p", models: [m, large], connections: [{id: k1, api_key: secret-p1}]}
  q: {base_url: "$q", models: [m], connections: [{id: k2, api_key: secret-q2}]}
combos:
  coding: {targets: [p/m, q/m]}
  large: {targets: [p/large]}
`

// TestClientKeys: a key's callers reach and see what it may have, and the rest does not exist for them.
func TestClientKeys(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := gatewaytest.New(t, clientConfig, lab.Options{Name: "p", Keys: map[string]string{"secret-p1": "k1"}}, lab.Options{Name: "q", Keys: map[string]string{"secret-q2": "k2"}})
		ask := func(method, path, key, model string) gatewaytest.Answer {
			req, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(`{"model": "`+model+`", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
			return w.Do(req)
		}
		for _, c := range []struct{ key, model, provider string }{
			{"everything-key", "coding", "p"},
			{"everything-key", "q/m", "q"},
			{"coding-key", "coding", "p"},
			{"coding-key", "p/m", ""},
			{"coding-key", "m", ""},
			{"coding-key", "large", ""},
			{"provider-key", "coding", ""},
			{"provider-key", "p/m", "p"},
			{"provider-key", "p/unlisted", "p"},
			{"provider-key", "m", "p"},
			{"provider-key", "q/m", ""},
			{"narrow-key", "coding", "q"},
			{"narrow-key", "m", "q"},
			{"narrow-key", "p/m", ""},
			{"narrow-key", "large", ""},
		} {
			a := ask("POST", "/v1/chat/completions", c.key, c.model)
			if got := a.Header.Get("X-Omniroute-Provider"); got != c.provider {
				t.Errorf("%s asks for %s: went to %q, want %q: %s", c.key, c.model, got, c.provider, a.Body)
			}
			if c.provider == "" && (a.Status != 404 || a.Error != "model_not_found") {
				t.Errorf("%s asks for %s: %d %s", c.key, c.model, a.Status, a.Body)
			}
			if a := ask("GET", "/v1/models/"+c.model, c.key, ""); (a.Status == 200) != (c.provider != "") {
				t.Errorf("%s looks at %s: %d", c.key, c.model, a.Status)
			}
		}
		// What may have been meant is told from what the key may have.
		if a := ask("POST", "/v1/chat/completions", "coding-key", "larg"); strings.Contains(a.Body, `large`) {
			t.Errorf("a name that is not for this key: %s", a.Body)
		}
		if a := ask("POST", "/v1/messages", "coding-key", "large"); a.Status != 404 || gjson.Get(a.Body, "error.type").String() != "not_found_error" {
			t.Errorf("in another dialect: %d %s", a.Status, a.Body)
		}
		for key, want := range map[string][]string{
			"everything-key": {"coding", "large", "m", "p/m", "p/large", "q/m"},
			"coding-key":     {"coding"},
			"provider-key":   {"m", "p/m", "large", "p/large"},
			"narrow-key":     {"coding", "m", "q/m"},
		} {
			var got []string
			for _, id := range gjson.Get(ask("GET", "/v1/models", key, "").Body, "data.#.id").Array() {
				got = append(got, id.String())
			}
			slices.Sort(got)
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("%s sees %v, want %v", key, got, want)
			}
		}
		// One of the two targets is not for the key, so that there is nowhere to go on to.
		w.Providers["q"].SetFault(lab.ServerError())
		if a := ask("POST", "/v1/chat/completions", "narrow-key", "coding"); a.Status != 503 || strings.Contains(a.Body, `"p"`) {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}

// TestRates: a key's requests are counted together and it is told when there is room again, in its own dialect; other
// keys, lists of models and gates do not notice.
func TestRates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := gatewaytest.New(t, `
store: "memory:"
client_keys: [free-key, {key: slow-key, rate: {requests: 3, per: 30s}}, {key: other-key, rate: {requests: 1}}]
providers:
  p: {base_url: "$p", models: [m], connections: [{id: k1, api_key: secret-p1}]}
`, lab.Options{Name: "p", Keys: map[string]string{"secret-p1": "k1"}})
		ask := func(method, path, key string) gatewaytest.Answer {
			req, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(`{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}`))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("X-Api-Key", key)
			return w.Do(req)
		}
		const chat, messages = "/v1/chat/completions", "/v1/messages"
		for i, c := range []struct {
			method, path, key string
			sleep             time.Duration
			status            int
			retry             string
		}{
			{"POST", chat, "slow-key", 0, 200, ""}, {"POST", messages, "slow-key", 0, 200, ""}, {"POST", chat, "slow-key", 0, 200, ""},
			{"POST", chat, "slow-key", 0, 429, "10"}, {"POST", messages, "slow-key", 500 * time.Millisecond, 429, "10"},
			{"GET", "/v1/models", "slow-key", 0, 200, ""}, {"POST", chat, "free-key", 0, 200, ""}, {"POST", chat, "other-key", 0, 200, ""},
			{"POST", chat, "other-key", 0, 429, "60"}, {"POST", chat, "slow-key", 9500 * time.Millisecond, 200, ""}, {"POST", chat, "slow-key", 0, 429, "10"},
			{"POST", chat, "slow-key", time.Hour, 200, ""}, {"POST", chat, "slow-key", 0, 200, ""}, {"POST", chat, "slow-key", 0, 200, ""}, {"POST", chat, "slow-key", 0, 429, "10"},
		} {
			time.Sleep(c.sleep)
			a := ask(c.method, c.path, c.key)
			if a.Status != c.status || a.Header.Get("Retry-After") != c.retry {
				t.Errorf("%d: %s with %s: %d, Retry-After %q; want %d and %q", i, c.path, c.key, a.Status, a.Header.Get("Retry-After"), c.status, c.retry)
			}
			if c.status != 429 {
				continue
			}
			kind, code := gjson.Get(a.Body, "error.type").String(), gjson.Get(a.Body, "error.code").String()
			if kind != "rate_limit_error" || code != "client_rate_limited" || c.path == messages && gjson.Get(a.Body, "type").String() != "error" {
				t.Errorf("%d: %s", i, a.Body)
			}
		}
		for _, p := range w.Engine.Status().Providers {
			if !p.Available || p.Breaker.Failures != 0 || p.Connections[0].BackoffLevel != 0 {
				t.Errorf("a client's rate has left its mark: %+v", p)
			}
		}
	})
}
