package server

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/lab"
	"omniroute/internal/route"
	"omniroute/resilience"
)

func TestServe(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	if code, text := g.chat("chat"); code != 200 || !strings.Contains(text, `"finish_reason":"stop"`) {
		t.Errorf("chat: %d %s", code, text)
	}
	if whole, err := g.open("acme/large").rest(); !whole || err != nil {
		t.Errorf("stream: %v %v", whole, err)
	}
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	if code, text := g.chat("chat"); code != 200 {
		t.Errorf("a failing key reaches the client: %d %s", code, text)
	}
	s := g.status()
	if s.Version != "1.2.3" || s.Persistence != "ok" || len(s.Providers) != 1 {
		t.Errorf("status %+v", s)
	}
	if c := s.Providers[0].Connections[0]; c.State != resilience.Cooling || *c.Kind != resilience.KindRateLimit {
		t.Errorf("main: %+v", c)
	}
	_, text := g.call("GET", "/admin/v1/attempts", "")
	if !strings.Contains(text, `"outcome":"failed"`) || !strings.Contains(text, `"kind":"rate_limit"`) {
		t.Errorf("attempts: %s", text)
	}
	for path, status := range map[string]int{"/healthz": 200, "/readyz": 200, "/metrics": 200, "/v1/models": 200, "/v1/nothing": 404, "/admin/v1/nothing": 404} {
		if code, text := g.call("GET", path, ""); code != status {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for _, secret := range []string{key1, key2, clientKey, token} {
		_, status := g.call("GET", "/admin/v1/status", "")
		if strings.Contains(text+status, secret) {
			t.Errorf("%q is shown", secret)
		}
	}
}

// TestBeforeItIsLoaded shows that requests wait for the start and are told nothing wrong.
func TestBeforeItIsLoaded(t *testing.T) {
	t.Parallel()
	m := New(Options{})
	for path, want := range map[string]int{"/healthz": 200, "/readyz": 503} {
		w := httptest.NewRecorder()
		m.ServeHTTP(w, httptest.NewRequest("GET", path, nil))
		if w.Code != want {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	w := &headerWriter{ResponseRecorder: httptest.NewRecorder()}
	r, cancel := requestWithCancel()
	done := make(chan struct{})
	go func() { defer close(done); m.ServeHTTP(w, r) }()
	select {
	case <-done:
		t.Fatal("it did not wait")
	default:
	}
	cancel()
	<-done
	if w.wrote {
		t.Error("it was answered")
	}
}

type headerWriter struct {
	*httptest.ResponseRecorder
	wrote bool
}

func (w *headerWriter) WriteHeader(code int) { w.wrote = true; w.ResponseRecorder.WriteHeader(code) }

func TestPortTaken(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	other := prepare(t, t.TempDir(), "listen: "+g.Addr().String()+"\n"+yaml(base, ""))
	err := other.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "another program listens on "+g.Addr().String()) || !strings.Contains(err.Error(), "`listen`") {
		t.Errorf("%v", err)
	}
}

func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	for more, says := range map[string]string{
		"nonsense: 1\n": `unknown key "nonsense"`,
		"error_rules:\n  - {status: 429, scope: connection, kind: rate_limit}\n  - {status: 429, text: slow, scope: model, kind: rate_limit}\n": "omniroute.yaml:18:5: error_rules[1]",
		"error_rules:\n  - {text: '\"\"', scope: connection, kind: rate_limit}\n":                                                               "can never match",
	} {
		g := prepare(t, t.TempDir(), yaml(base, more))
		err := g.Start(t.Context())
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", more, err, says)
		}
	}
	m := New(Options{Source: Find(filepath.Join(t.TempDir(), "none.yaml"))})
	if err := m.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "omniroute init") {
		t.Errorf("%v", err)
	}
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	text := "listen: unix:s\n" + yaml(base, "")
	// A process that was killed leaves its socket behind.
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()

	g := start(t, dir, text)
	if g.URL() != "unix:"+path {
		t.Errorf("URL %s", g.URL())
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	c := &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return net.Dial("unix", path) }}}
	defer c.CloseIdleConnections()
	resp, err := c.Get("http://localhost/readyz")
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%v %v", resp, err)
	}
	resp.Body.Close()

	otherDir := t.TempDir()
	other := prepare(t, otherDir, "listen: unix:"+path+"\n"+yaml(base, ""))
	if err := other.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "another program listens on unix:") {
		t.Errorf("%v", err)
	}
	file := prepare(t, otherDir, "listen: unix:omniroute.yaml\n"+yaml(base, ""))
	if err := file.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "is there and is no socket") {
		t.Errorf("%v", err)
	}
}

func TestURL(t *testing.T) {
	t.Parallel()
	for listen, host := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": "127.0.0.1", "localhost:0": "127.0.0.1"} {
		_, base := upstream(t, nil)
		g := start(t, t.TempDir(), "listen: "+listen+"\n"+yaml(base, ""))
		if !strings.HasPrefix(g.URL(), "http://"+host+":") {
			t.Errorf("%s: %s", listen, g.URL())
		}
		if code, _ := g.call("GET", "/readyz", ""); code != 200 {
			t.Errorf("%s: %d", listen, code)
		}
	}
}

func TestClassifierOfRules(t *testing.T) {
	t.Parallel()
	cfg, _, err := config.Parse("omniroute.yaml", []byte(yaml("http://127.0.0.1:1/v1", `
error_rules:
  - {provider: acme, status: [403, 5xx], text: credit pool empty, not: refilled, code: x, header: "x-a: b", scope: connection, kind: quota_exhausted, cooldown: 1h, backoff: false}
`)), os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := route.Classifier(cfg); err != nil {
		t.Fatal(err)
	}
}

// TestLook reads a configuration whose secrets are set elsewhere.
func TestLook(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "omniroute.yaml")
	const providers = `
client_keys: ["${NOT_SET_1}", "${NOT_SET_2}"]
providers:
  acme: {base_url: "https://acme.example/v1", connections: [{id: main, api_key: "${NOT_SET_3}"}]}
`
	for text, want := range map[string]struct {
		listen string
		known  bool
	}{
		"listen: 127.0.0.1:4711\nadmin_token: \"${NOT_SET_4}\"" + providers: {"127.0.0.1:4711", false},
		"admin_token: here" + providers:                                     {"127.0.0.1:20128", true},
		providers:                                                           {"127.0.0.1:20128", true},
	} {
		write(t, file, "#listen:\n"+text)
		cfg, known, err := Find(file).Look()
		if err != nil || cfg.Listen.Address != want.listen || known != want.known {
			t.Errorf("%s: %v %v %v", text, cfg, known, err)
		}
		if _, _, err := Find(file).Check(); err == nil {
			t.Errorf("%s: a check must not pass", text)
		}
	}
	write(t, file, "#listen:\nlisen: x"+providers)
	if _, _, err := Find(file).Look(); err == nil || !strings.Contains(err.Error(), "lisen") {
		t.Errorf("%v", err)
	}
}
