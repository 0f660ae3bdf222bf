package gateway_test

import (
	"net/http"
	"strings"
	"testing"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// TestPagesSpendNothing: without client keys only programs on this machine get an answer. A web page
// that a browser here shows must not spend what the upstream accounts have.
func TestPagesSpendNothing(t *testing.T) {
	t.Parallel()
	type headers map[string]string
	cases := []struct {
		name, host string
		headers    headers
		refused    bool
	}{
		{"a program", "", nil, false},
		{"by the name", "localhost:20128", nil, false},
		{"by an address of this machine", "192.0.2.7:20128", nil, false},
		{"over IPv6", "[::1]:20128", nil, false},
		{"a page of this origin", "localhost:20128", headers{"Origin": "http://localhost:20128", "Sec-Fetch-Site": "same-origin"}, false},
		{"typed into a browser", "localhost:20128", headers{"Sec-Fetch-Site": "none"}, false},
		{"a name that was pointed here", "evil.example:20128", nil, true},
		{"its own page under that name", "evil.example", headers{"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"}, true},
		{"a name that looks local", "localhost.evil.example", nil, true},
		{"a form of another page", "localhost:20128", headers{"Origin": "https://evil.example", "Content-Type": "text/plain"}, true},
		{"a page in a sandbox", "localhost:20128", headers{"Origin": "null"}, true},
		{"a page on another port", "localhost:20128", headers{"Origin": "http://localhost:3000"}, true},
		{"an image of another page", "localhost:20128", headers{"Sec-Fetch-Site": "cross-site"}, true},
	}
	for name, keys := range map[string]string{"without keys": "", "with keys": "client_keys: [client-key-1]\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: "store: \"memory:\"\n" + keys + "providers: {p: {base_url: $p, connections: [{id: k1, api_key: x}], models: [m]}}\n",
				Providers: []lab.Options{{Name: "p"}}})
			for _, c := range cases {
				for _, call := range []string{"POST /v1/chat/completions", "GET /v1/models"} {
					method, path, _ := strings.Cut(call, " ")
					req, _ := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
					req.Header.Set("Authorization", "Bearer client-key-1")
					if req.Host = c.host; c.host == "" {
						req.Host = req.URL.Host
					}
					for k, v := range c.headers {
						req.Header.Set(k, v)
					}
					before := w.Providers["p"].Total()
					a := w.Do(req)
					refused := c.refused && keys == ""
					if got := a.Status == http.StatusForbidden && strings.Contains(a.Body, "client_keys"); got != refused || !refused && a.Status != 200 {
						t.Errorf("%s: %s: %d %s", c.name, call, a.Status, a.Body)
					}
					if refused && w.Providers["p"].Total() != before {
						t.Errorf("%s: %s: it went to the upstream", c.name, call)
					}
					if a.Header.Get("Access-Control-Allow-Origin") != "" {
						t.Errorf("%s: %s: a page may read it", c.name, call)
					}
				}
			}
		})
	}
}
