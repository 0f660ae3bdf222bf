package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"omniroute/internal/admin"
	"omniroute/internal/lab"
)

// serveFile names the configuration that a child process serves: tests of signals and of kill -9
// run this test binary again.
const serveFile = "OMNIROUTE_TEST_SERVE"

// impatientServe makes a child process that does not wait for its clients for minutes.
const impatientServe = "OMNIROUTE_TEST_IMPATIENT"

// patience is for how long tests wait for what comes at once, unless the machine is busy with something else.
const patience = time.Minute

// patient are limits that no machine is too slow for.
var patient = times{header: patience, idle: 2 * patience, cut: patience, lastWords: patience, flush: patience, alert: patience}

func TestMain(m *testing.M) {
	if file := os.Getenv(serveFile); file != "" {
		log := slog.New(slog.NewTextHandler(os.Stderr, nil))
		o := Options{Source: Find(file), Logger: log, times: patient}
		if os.Getenv(impatientServe) != "" {
			// As long as a client that is served may be held up by its machine between two steps.
			o.times.header, o.times.idle = 10*time.Second, 10*time.Second
		}
		err := Run(context.Background(), o, func(m *Main) { fmt.Println(m.URL()) })
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// The secrets of the tests' configurations. None may be in any output.
const (
	key1      = "upstream-secret-1"
	key2      = "upstream-secret-2"
	clientKey = "client-secret"
	token     = "admin-secret"
)

// upstream is a simulated provider with two keys.
func upstream(t *testing.T, change func(*lab.Options)) (*lab.Provider, string) {
	t.Helper()
	o := lab.Options{Name: "acme", Keys: map[string]string{key1: "main", key2: "spare"}, Models: []string{"large"}}
	if change != nil {
		change(&o)
	}
	p := lab.New(o)
	s, err := lab.Listen(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return p, s.BaseURL()
}

// held is an upstream whose streams begin at once and end when the test says so.
func held(t *testing.T) (base string, end func()) {
	t.Helper()
	ended := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}`+"\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-ended:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	}))
	t.Cleanup(s.Close)
	end = sync.OnceFunc(func() { close(ended) })
	t.Cleanup(end)
	return s.URL + "/v1", end
}

func yaml(base, more string) string {
	return fmt.Sprintf(`
client_keys: [%q]
admin_token: %q
store: sqlite:state.db
providers:
  acme:
    dialect: openai
    base_url: %s
    models: [large]
    connections:
      - {id: main, api_key: %q}
      - {id: spare, api_key: %q}
combos:
  chat: {targets: [{target: acme/large, connection: main}, {target: acme/large, connection: spare}]}
%s`, clientKey, token, base, key1, key2, more)
}

// logs keeps what is logged, and lets tests wait for a line.
type logs struct {
	mu      sync.Mutex
	text    strings.Builder
	changed chan struct{}
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(p)
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
	return len(p), nil
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// wait returns when the log has the text n times.
func (l *logs) wait(t *testing.T, text string, n int) {
	t.Helper()
	timeout := time.After(patience)
	for {
		l.mu.Lock()
		if strings.Count(l.text.String(), text) >= n {
			l.mu.Unlock()
			return
		}
		if l.changed == nil {
			l.changed = make(chan struct{})
		}
		changed := l.changed
		l.mu.Unlock()
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("the log does not have %q %d times:\n%s", text, n, l)
		}
	}
}

// gate is a gateway under test.
type gate struct {
	*Main
	log    *logs
	file   string
	at     string // the URL of one in another process
	client *http.Client
	t      *testing.T
}

func write(t testing.TB, file, text string) {
	t.Helper()
	if !regexp.MustCompile(`(?m)^#?listen:`).MatchString(text) {
		text = "listen: 127.0.0.1:0\n" + text
	}
	if err := os.WriteFile(file+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
}

// prepare returns a gateway that is not started.
func prepare(t *testing.T, dir, text string) *gate {
	t.Helper()
	g := &gate{log: &logs{}, file: filepath.Join(dir, "omniroute.yaml"), t: t, client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	write(t, g.file, text)
	g.Main = New(Options{Source: Find(g.file), Version: "1.2.3", Logger: slog.New(slog.NewTextHandler(g.log, nil)), times: patient})
	t.Cleanup(func() {
		g.client.CloseIdleConnections()
		for _, secret := range []string{key1, key2, clientKey, token} {
			if strings.Contains(g.log.String(), secret) {
				t.Errorf("the log shows %q:\n%s", secret, g.log)
			}
		}
	})
	return g
}

func start(t *testing.T, dir, text string) *gate {
	t.Helper()
	g := prepare(t, dir, text)
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !g.draining.Load() {
			if err := g.Stop(context.Background()); err != nil {
				t.Errorf("stop: %v", err)
			}
		}
	})
	return g
}

// request sends one with the right key for the path.
func (g *gate) request(method, path, body string) (*http.Response, error) {
	base := g.at
	if base == "" {
		base = g.URL()
	}
	r, err := http.NewRequest(method, base+path, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	secret := clientKey
	if strings.HasPrefix(path, "/admin") {
		secret = token
	}
	r.Header.Set("Authorization", "Bearer "+secret)
	r.Header.Set("Content-Type", "application/json")
	return g.client.Do(r)
}

// call sends a request and reads the whole answer.
func (g *gate) call(method, path, body string) (int, string) {
	g.t.Helper()
	resp, err := g.request(method, path, body)
	if err != nil {
		g.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		g.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

func chatBody(model string, stream bool) string {
	return fmt.Sprintf(`{"model": %q, "stream": %v, "messages": [{"role": "user", "content": "Hello"}]}`, model, stream)
}

func (g *gate) chat(model string) (int, string) {
	g.t.Helper()
	return g.call("POST", "/v1/chat/completions", chatBody(model, false))
}

func (g *gate) status() admin.Status {
	g.t.Helper()
	code, text := g.call("GET", "/admin/v1/status", "")
	var s admin.Status
	if err := json.Unmarshal([]byte(text), &s); err != nil || code != 200 {
		g.t.Fatalf("%d %s: %v", code, text, err)
	}
	return s
}

// stream is a streamed answer that has begun.
type stream struct {
	resp *http.Response
	body *bufio.Reader
}

// open starts a stream and returns when its first content has come.
func (g *gate) open(model string) *stream {
	g.t.Helper()
	resp, err := g.request("POST", "/v1/chat/completions", chatBody(model, true))
	if err != nil {
		g.t.Fatal(err)
	}
	s := &stream{resp, bufio.NewReader(resp.Body)}
	if line, err := s.body.ReadString('\n'); err != nil || resp.StatusCode != 200 {
		g.t.Fatalf("%d %q %v", resp.StatusCode, line, err)
	}
	return s
}

// rest reads the stream to its end and reports whether that was a good one.
func (s *stream) rest() (whole bool, err error) {
	text, err := io.ReadAll(s.body)
	return strings.Contains(string(text), "data: [DONE]"), errors.Join(err, s.resp.Body.Close())
}
