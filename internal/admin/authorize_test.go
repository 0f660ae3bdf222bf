package admin

import (
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhoMayCome(t *testing.T) {
	t.Parallel()
	open, locked := newBench(t, world, nil), newBench(t, world+"admin_token: "+token+"\n", nil)
	type headers map[string]string
	for _, c := range []struct {
		name    string
		b       *bench
		peer    string
		host    string
		headers headers
		status  int
	}{
		{"this machine", open, "127.0.0.1:5", "127.0.0.1:20128", nil, 200},
		{"by its name", open, "127.0.0.1:5", "localhost:20128", nil, 200},
		{"by its name without a port", open, "127.0.0.1:5", "LOCALHOST", nil, 200},
		{"a name below localhost", open, "127.0.0.1:5", "omniroute.localhost:20128", nil, 200},
		{"IPv6", open, "[::1]:5", "[::1]:20128", nil, 200},
		{"IPv6 without a port", open, "[::1]:5", "[::1]", nil, 200},
		{"IPv4 in IPv6", open, "[::ffff:127.0.0.1]:5", "127.9.9.9:20128", nil, 200},
		{"a unix socket", open, "@", "anything", nil, 200},
		{"its own page", open, "127.0.0.1:5", "localhost:20128", headers{"Origin": "http://localhost:20128", "Sec-Fetch-Site": "same-origin"}, 200},
		{"typed into a browser", open, "127.0.0.1:5", "localhost:20128", headers{"Sec-Fetch-Site": "none"}, 200},
		{"another machine", open, "192.0.2.1:5", "127.0.0.1:20128", nil, 403},
		{"another machine that says it is here", open, "192.0.2.1:5", "localhost", headers{"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1"}, 403},
		{"another machine with a token that nobody asked for", open, "192.0.2.1:5", "localhost", headers{"Authorization": "Bearer " + token}, 403},
		{"through a proxy", open, "127.0.0.1:5", "localhost", headers{"X-Forwarded-For": "192.0.2.1"}, 403},
		{"through a modern proxy", open, "127.0.0.1:5", "localhost", headers{"Forwarded": "for=192.0.2.1"}, 403},
		{"a name that was pointed here", open, "127.0.0.1:5", "evil.example:20128", nil, 403},
		{"a name that looks local", open, "127.0.0.1:5", "localhost.evil.example", nil, 403},
		{"no name", open, "127.0.0.1:5", "", nil, 403},
		{"another page's request", open, "127.0.0.1:5", "localhost:20128", headers{"Origin": "https://evil.example"}, 403},
		{"a page on another port", open, "127.0.0.1:5", "localhost:20128", headers{"Origin": "http://localhost:3000"}, 403},
		{"a page without an origin", open, "127.0.0.1:5", "localhost:20128", headers{"Origin": "null"}, 403},
		{"another page's image", open, "127.0.0.1:5", "localhost:20128", headers{"Sec-Fetch-Site": "cross-site"}, 403},
		{"no peer that can be read", open, "nonsense", "localhost", nil, 403},

		{"with the token", locked, "192.0.2.1:5", "gateway.example", headers{"Authorization": "Bearer " + token}, 200},
		{"with the token, spelt otherwise", locked, "192.0.2.1:5", "gateway.example", headers{"Authorization": "bearer  " + token}, 200},
		{"from here without it", locked, "127.0.0.1:5", "localhost", nil, 401},
		{"with a wrong one", locked, "127.0.0.1:5", "localhost", headers{"Authorization": "Bearer " + token + "x"}, 401},
		{"with the start of it", locked, "127.0.0.1:5", "localhost", headers{"Authorization": "Bearer " + token[:5]}, 401},
		{"with an empty one", locked, "127.0.0.1:5", "localhost", headers{"Authorization": "Bearer "}, 401},
		{"in another way", locked, "127.0.0.1:5", "localhost", headers{"Authorization": "Basic " + token}, 401},
		{"under another name", locked, "127.0.0.1:5", "localhost", headers{"X-Api-Key": token}, 401},
	} {
		for _, path := range []string{"/admin/v1/status", "/admin/v1/nothing"} {
			r := httptest.NewRequest("GET", path, nil)
			r.RemoteAddr, r.Host = c.peer, c.host
			for k, v := range c.headers {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			c.b.ServeHTTP(w, r)
			status := c.status
			if status == 200 && path == "/admin/v1/nothing" {
				status = 404
			}
			if w.Code != status {
				t.Errorf("%s: %s answers %d, want %d: %s", c.name, path, w.Code, status, w.Body)
			}
			if strings.Contains(w.Body.String(), token) {
				t.Errorf("%s: the token is shown: %s", c.name, w.Body)
			}
		}
	}
}
