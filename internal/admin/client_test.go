package admin

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"omniroute/internal/config"
	"omniroute/resilience"
)

func TestClient(t *testing.T) {
	t.Parallel()
	b := newBench(t, world+"admin_token: "+token+"\n", nil)
	srv := httptest.NewServer(b)
	defer srv.Close()
	at := config.Address{Network: "tcp", Address: strings.TrimPrefix(srv.URL, "http://")}
	byAddress, err := NewClient(at, nil, config.NewSecret(token))
	if err != nil {
		t.Fatal(err)
	}
	byURL, err := NewClientURL(srv.URL+"/", config.NewSecret(token))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []*Client{byAddress, byURL} {
		t.Cleanup(c.Close)
		if c.Address() != srv.URL {
			t.Errorf("address %s, want %s", c.Address(), srv.URL)
		}
		b.fail("acme", "main", "large", limited)
		s, raw, err := c.Status(t.Context())
		if err != nil || s.Version != "1.2.3" || !strings.Contains(string(raw), `"cluster":"single"`) {
			t.Errorf("%+v %v", s, err)
		}
		x, _, err := c.Explain(t.Context(), ExplainRequest{Model: "coding"})
		if err != nil || len(x.Candidates) != 3 {
			t.Errorf("%+v %v", x, err)
		}
		n, err := c.Reset(t.Context(), ResetRequest{Scope: "provider", Provider: "acme"})
		if err != nil || n != (resilience.ResetCount{Connections: 1}) {
			t.Errorf("%+v %v", n, err)
		}
		var p *Problem
		if _, _, err := c.Explain(t.Context(), ExplainRequest{Model: "nonsense-that-nobody-has"}); !errors.As(err, &p) || p.Status != 404 {
			t.Errorf("%v", err)
		}
	}
}

func TestClientErrors(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer other.Close()
	refusing := httptest.NewServer(http.NotFoundHandler())
	defer refusing.Close()
	locked := httptest.NewServer(newBench(t, world+"admin_token: "+token+"\n", nil))
	defer locked.Close()
	for url, says := range map[string]string{
		closed.URL:   "no server answers at " + closed.URL + "; start one with `omniroute serve`",
		other.URL:    "is no omniroute",
		refusing.URL: "is no omniroute: it says 404",
		locked.URL:   "OMNIROUTE_ADMIN_TOKEN",
	} {
		c, err := NewClientURL(url, config.NewSecret("a wrong token"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		if _, _, err = c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "a wrong token") {
			t.Errorf("%s: %v, want %q", url, err, says)
		}
	}
	for _, url := range []string{"", "127.0.0.1:20128", "ftp://x", "http://", "http://user:pw@host", "http://host?x=1"} {
		if _, err := NewClientURL(url, config.Secret{}); err == nil {
			t.Errorf("%q was taken", url)
		}
	}
}

func TestClientAddresses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"127.0.0.1:20128": "http://127.0.0.1:20128", "0.0.0.0:80": "http://127.0.0.1:80", ":80": "http://127.0.0.1:80",
		"[::]:80": "http://[::1]:80", "gateway.example:80": "http://gateway.example:80",
	} {
		c, err := NewClient(config.Address{Network: "tcp", Address: address}, nil, config.Secret{})
		if err != nil || c.Address() != want {
			t.Errorf("%s: %v %v, want %s", address, c, err, want)
		}
	}
	if _, err := NewClient(config.Address{Network: "tcp", Address: "127.0.0.1:0"}, nil, config.Secret{}); err == nil || !strings.Contains(err.Error(), "--url") {
		t.Errorf("port 0: %v", err)
	}
}

func TestClientOnSocket(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	c, err := NewClient(config.Address{Network: "unix", Address: path}, nil, config.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _, err := c.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "no server answers at unix:"+path) {
		t.Errorf("%v", err)
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: newBench(t, world, nil)}}
	srv.Start()
	defer srv.Close()
	if s, _, err := c.Status(t.Context()); err != nil || s.Version != "1.2.3" {
		t.Errorf("%+v %v", s, err)
	}
}
