package loopback

import (
	"net/http"
	"testing"
)

func TestPeer(t *testing.T) {
	t.Parallel()
	for peer, here := range map[string]bool{
		"127.0.0.1:5": true, "127.9.9.9:5": true, "[::1]:5": true, "[::ffff:127.0.0.1]:5": true, "": true, "@": true, "/run/x.sock": true,
		"192.0.2.1:5": false, "[2001:db8::1]:5": false, "nonsense": false, "localhost:5": false,
	} {
		if got := Peer(peer); got != here {
			t.Errorf("%q: %v", peer, got)
		}
	}
}

func TestHost(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		host         string
		here, number bool
	}{
		{"localhost", true, false}, {"LOCALHOST:1", true, false}, {"localhost.", true, false}, {"a.localhost:1", true, false},
		{"127.0.0.1:1", true, true}, {"[::1]:1", true, true}, {"[::1]", true, true}, {"::1", true, true}, {"[::ffff:127.0.0.1]", true, true},
		{"192.0.2.1:1", false, true}, {"[2001:db8::1]", false, true},
		{"", false, false}, {"evil.example:1", false, false}, {"localhost.evil.example", false, false}, {"127.0.0.1.evil.example", false, false},
		{"notlocalhost", false, false}, {"2130706433", false, false}, {"127.1", false, false},
	} {
		if a, b := Host(c.host), Address(c.host); a != c.here || b != c.number {
			t.Errorf("%q: %v %v", c.host, a, b)
		}
	}
}

func TestForeignPage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		header  http.Header
		foreign bool
	}{
		{http.Header{}, false},
		{http.Header{"Origin": {"http://localhost:1"}}, false},
		{http.Header{"Origin": {"http://LOCALHOST:1"}, "Sec-Fetch-Site": {"same-origin"}}, false},
		{http.Header{"Sec-Fetch-Site": {"none"}}, false},
		{http.Header{"Sec-Fetch-Site": {"same-site"}}, true},
		{http.Header{"Sec-Fetch-Site": {"cross-site"}}, true},
		{http.Header{"Origin": {"http://localhost:2"}}, true},
		{http.Header{"Origin": {"https://evil.example"}}, true},
		{http.Header{"Origin": {"null"}}, true},
		{http.Header{"Origin": {""}}, true},
		{http.Header{"Origin": {"http://localhost:1", "https://evil.example"}}, true},
		{http.Header{"Origin": {"://"}}, true},
	} {
		if got := ForeignPage(&http.Request{Host: "localhost:1", Header: c.header}); got != c.foreign {
			t.Errorf("%v: %v", c.header, got)
		}
	}
}
