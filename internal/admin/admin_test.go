package admin

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	apiKey = "upstream-key-that-nobody-may-see"
	token  = "admin-token-that-nobody-may-see"
)

const world = `
store: "memory:"
providers:
  acme:
    dialect: openai
    base_url: https://llm.acme.example/v1
    models: [large, small]
    connections:
      - {id: main, api_key: "` + apiKey + `"}
      - {id: spare, api_key: "` + apiKey + `-2"}
      - {id: unset, api_key: "${NOWHERE:-}"}
  beta:
    dialect: openai
    base_url: https://beta.example/v1
    connections:
      - {id: only, api_key: "` + apiKey + `-3"}
combos:
  coding: {targets: [acme/large, beta/other]}
`

// bench is an Admin with all that it works on.
type bench struct {
	*Admin
	engine *resilience.Engine
	log    strings.Builder
	t      *testing.T
}

func newBench(t *testing.T, text string, change func(*Options)) *bench {
	t.Helper()
	cfg, _, err := config.Parse("omniroute.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t}
	stopped := time.Now() // a short cooldown is not over before a slow machine has looked
	if b.engine, err = resilience.New(resilience.Options{Config: route.EngineConfig(cfg), Now: func() time.Time { return stopped }}); err != nil {
		t.Fatal(err)
	}
	router, err := route.New(cfg, b.engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	runner := failover.NewRunner(b.engine)
	o := Options{Version: "1.2.3", Router: func() *route.Router { return router }, Runner: runner, Logger: slog.New(slog.NewTextHandler(&b.log, nil))}
	if change != nil {
		change(&o)
	}
	b.Admin = New(o)
	t.Cleanup(func() { b.Close(); runner.Close() })
	return b
}

// ask sends a request from this machine.
func (b *bench) ask(method, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "127.0.0.1:20128"
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

// want asks and decodes an answer with that status.
func want[T any](b *bench, status int, method, path, body string) T {
	b.t.Helper()
	w := b.ask(method, path, body)
	if w.Code != status {
		b.t.Fatalf("%s %s %s: %d, want %d: %s", method, path, body, w.Code, status, w.Body)
	}
	var v T
	d := json.NewDecoder(w.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		b.t.Fatalf("%s %s: %v", method, path, err)
	}
	return v
}

func (b *bench) fail(provider, connection, model string, v resilience.Verdict) {
	b.engine.RecordFailure(resilience.Key{Provider: provider, Connection: connection, Model: model}, v)
}

var (
	limited = resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute}
	gone    = resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true}
	broken  = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError}
)

func TestStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	b.fail("acme", "main", "large", limited)
	b.fail("acme", "spare", "large", gone)
	var raw map[string]any
	if err := json.Unmarshal(b.ask("GET", "/admin/v1/status", "").Body.Bytes(), &raw); err != nil {
		t.Fatal(err)
	}
	for key, value := range map[string]any{"version": "1.2.3", "cluster": "single", "panic": false, "waiting": 0.0, "persistence": "off", "local_outage": false} {
		if raw[key] != value {
			t.Errorf("%s: %v, want %v", key, raw[key], value)
		}
	}
	s := want[Status](b, 200, "GET", "/admin/v1/status", "")
	if len(s.Providers) != 2 || s.Providers[0].ID != "acme" || !s.Providers[0].Available || s.Providers[0].Breaker.State != resilience.Closed {
		t.Fatalf("providers %+v", s.Providers)
	}
	if c := s.Providers[0].Connections[0]; c.State != resilience.Cooling || *c.Kind != resilience.KindRateLimit || c.BackoffLevel != 1 || c.CooldownMs != 60_000 {
		t.Errorf("main: %+v", c)
	}
	if len(s.Lockouts) != 1 || s.Lockouts[0].Connection != "spare" || s.Lockouts[0].Model != "large" {
		t.Errorf("lockouts %+v", s.Lockouts)
	}
}

func TestReset(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		body string
		want resilience.ResetCount
	}{
		{`{"scope": "all"}`, resilience.ResetCount{Breakers: 1, Connections: 2, Lockouts: 2}},
		{`{"scope": "provider", "provider": "acme"}`, resilience.ResetCount{Connections: 2, Lockouts: 2}},
		{`{"scope": "provider", "provider": "beta"}`, resilience.ResetCount{Breakers: 1}},
		{`{"scope": "connection", "provider": "acme", "connection": "main"}`, resilience.ResetCount{Connections: 1, Lockouts: 1}},
		{`{"scope": "model", "provider": "acme", "model": "large"}`, resilience.ResetCount{Lockouts: 2}},
		{`{"scope": "model", "provider": "acme", "connection": "spare", "model": "large"}`, resilience.ResetCount{Lockouts: 1}},
		{`{"scope": "model", "provider": "acme", "model": "never-seen"}`, resilience.ResetCount{}},
	} {
		b := newBench(t, world, nil)
		for _, connection := range []string{"main", "spare"} {
			b.fail("acme", connection, "small", limited)
			b.fail("acme", connection, "large", gone)
		}
		for range 5 {
			b.fail("beta", "only", "other", broken)
			b.fail("beta", "only", "another", broken)
		}
		before := b.engine.Status()
		got := want[resilience.ResetCount](b, 200, "POST", "/admin/v1/reset", c.body)
		if c.want.Breakers > 0 {
			got.Connections = c.want.Connections // how much cools beside an open breaker is the engine's affair
		}
		if got != c.want {
			t.Errorf("%s: %+v, want %+v of %+v", c.body, got, c.want, before)
		}
		if again := want[resilience.ResetCount](b, 200, "POST", "/admin/v1/reset", c.body); again != (resilience.ResetCount{}) {
			t.Errorf("%s a second time: %+v", c.body, again)
		}
		if ev := b.engine.Events(1); len(ev) != 1 || ev[0].Type != resilience.EventReset {
			t.Errorf("%s: no audit event: %+v", c.body, ev)
		}
		if !strings.Contains(b.log.String(), "an operator has reset") || !strings.Contains(b.log.String(), "127.0.0.1:4711") {
			t.Errorf("%s: not in the log: %s", c.body, b.log.String())
		}
	}
}

func TestExclude(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	got := want[ExcludeAnswer](b, 200, "POST", "/admin/v1/exclude", `{"provider": "acme", "connection": "main", "for": "10m", "reason": "maintenance"}`)
	if !got.Excluded || *got.Layer != resilience.LayerOperator || got.Kind != nil || got.RetryAfterMs < 599_000 || got.RetryAfterMs > 600_000 {
		t.Errorf("%+v", got)
	}
	s := want[Status](b, 200, "GET", "/admin/v1/status", "")
	if len(s.Operator) != 1 || s.Operator[0].Reason != "maintenance" || s.Providers[0].Connections[0].State != resilience.Excluded {
		t.Errorf("%+v", s.Operator)
	}
	// A reset leaves an operator's word alone, unless it is told otherwise.
	want[resilience.ResetCount](b, 200, "POST", "/admin/v1/reset", `{"scope": "all"}`)
	if n := len(b.engine.Status().Operator); n != 1 {
		t.Error("the reset has ended it")
	}
	want[resilience.ResetCount](b, 200, "POST", "/admin/v1/reset", `{"scope": "all", "include_operator": true}`)
	if n := len(b.engine.Status().Operator); n != 0 {
		t.Error("include_operator has not ended it")
	}

	// Without an end it stands until it is deleted.
	got = want[ExcludeAnswer](b, 200, "POST", "/admin/v1/exclude", `{"provider": "acme", "model": "large"}`)
	if !got.Excluded || !got.Until.IsZero() || got.RetryAfterMs != 0 {
		t.Errorf("%+v", got)
	}
	got = want[ExcludeAnswer](b, 200, "DELETE", "/admin/v1/exclude", `{"provider": "acme", "model": "large"}`)
	if got.Excluded || len(b.engine.Status().Operator) != 0 {
		t.Errorf("%+v", got)
	}
	w := b.ask("DELETE", "/admin/v1/exclude", `{"provider": "acme", "model": "large"}`)
	if w.Code != 404 || !strings.Contains(w.Body.String(), "none does") {
		t.Errorf("%d %s", w.Code, w.Body)
	}

	// A kind is what a failure of that kind does, ladder included.
	for i, seconds := range []int64{1, 1} {
		got = want[ExcludeAnswer](b, 200, "POST", "/admin/v1/exclude", `{"provider": "acme", "connection": "spare", "kind": "rate_limit", "reason": "seen it"}`)
		if !got.Excluded || *got.Layer != resilience.LayerConnection || *got.Kind != resilience.KindRateLimit || got.RetryAfterMs > seconds*1000 {
			t.Errorf("report %d: %+v", i, got)
		}
	}
	if c := b.engine.Status().Providers[0].Connections[1]; c.BackoffLevel != 1 {
		t.Errorf("one exclusion raises the level once: %+v", c)
	}
}

// TestRefusals shows that what is wrong is refused with what to do, and changes nothing.
func TestRefusals(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"POST", "reset", ``, 400, `the body is empty; send an object such as {\"scope\"`},
		{"POST", "reset", `[]`, 400, `the body is a array; send an object such as`},
		{"POST", "reset", `{`, 400, `the body is not JSON`},
		{"POST", "reset", `{"scope": "all"} {}`, 400, `there is something behind the object`},
		{"POST", "reset", `{"scope": "all", "provder": "x"}`, 400, `unknown field \"provder\"; the fields are scope, provider`},
		{"POST", "reset", `{"scope": 7}`, 400, `scope must be a string, not a number`},
		{"POST", "reset", `{}`, 400, `scope is missing; it is provider, connection, model or all`},
		{"POST", "reset", `{"scope": "mode"}`, 400, `scope \"mode\" is none`},
		{"POST", "reset", `{"scope": "provider"}`, 400, `provider is missing: scope provider needs provider`},
		{"POST", "reset", `{"scope": "connection", "provider": "acme"}`, 400, `connection is missing: scope connection needs provider and connection`},
		{"POST", "reset", `{"scope": "model", "provider": "acme"}`, 400, `model is missing`},
		{"POST", "reset", `{"scope": "all", "provider": "acme"}`, 400, `scope all takes no provider; leave it out, or use scope provider`},
		{"POST", "reset", `{"scope": "provider", "provider": "acme", "model": "m"}`, 400, `use scope model`},
		{"POST", "reset", `{"scope": "provider", "provider": "acne"}`, 404, `there is no provider \"acne\"; did you mean acme?`},
		{"POST", "reset", `{"scope": "provider", "provider": "somebody"}`, 404, `there are acme, beta`},
		{"POST", "reset", `{"scope": "connection", "provider": "acme", "connection": "sapre"}`, 404, `acme has no connection \"sapre\"; did you mean spare?`},
		{"POST", "reset", `{"scope": "connection", "provider": "acme", "connection": "unset"}`, 404, `was left out, since its key is not set`},
		{"POST", "reset", `{"scope": "` + strings.Repeat("x", maxRequest) + `"}`, 413, `larger than`},
		{"POST", "exclude", `{"connection": "main"}`, 400, `provider is missing`},
		{"POST", "exclude", `{"provider": "acme", "for": "10m", "kind": "auth"}`, 400, `for and kind exclude each other`},
		{"POST", "exclude", `{"provider": "acme", "for": "soon"}`, 400, `is no duration up to a year`},
		{"POST", "exclude", `{"provider": "acme", "for": "-1m"}`, 400, `is no duration up to a year`},
		{"POST", "exclude", `{"provider": "acme", "for": "9999h"}`, 400, `is no duration up to a year`},
		{"POST", "exclude", `{"provider": "acme", "kind": "auth"}`, 400, `add the connection`},
		{"POST", "exclude", `{"provider": "acme", "connection": "main", "kind": "model_not_found"}`, 400, `add the model`},
		{"POST", "exclude", `{"provider": "acme", "connection": "main", "kind": "content_policy"}`, 400, `takes nothing out of service; use one of rate_limit`},
		{"POST", "exclude", `{"provider": "acme", "connection": "main", "kind": "nonsense"}`, 400, `takes nothing out of service`},
		{"POST", "exclude", `{"provider": "acme", "reason": "` + strings.Repeat("x", maxReason+1) + `"}`, 400, `the reason is longer`},
		{"POST", "exclude", `{"provider": "bета"}`, 404, `there is no provider`},
		{"DELETE", "exclude", `{"provider": "acme", "for": "1m"}`, 400, `unknown field \"for\"`},
		{"DELETE", "exclude", `{}`, 400, `provider is missing`},
		{"POST", "explain", `{}`, 400, `model is missing`},
		{"POST", "explain", `{"model": "coding", "sesion": "s"}`, 400, `unknown field \"sesion\"`},
		{"POST", "explain", `{"model": "nonsense-that-nobody-has"}`, 404, `no combo, model or provider/model is named`},
		{"GET", "attempts?limit=0", ``, 400, `limit \"0\" is no number from 1 to 10000`},
		{"GET", "attempts?limit=x", ``, 400, `is no number`},
		{"GET", "attempts?offset=1", ``, 400, `unknown parameter \"offset\"`},
		{"GET", "requests/nope", ``, 404, `no request \"nope\" is remembered`},
		{"GET", "events?since=yesterday", ``, 400, `is neither an event's id nor a time`},
		{"GET", "events?form=1", ``, 400, `unknown parameter \"form\"`},
		{"GET", "reset", ``, 405, `does not take GET; send POST`},
		{"PUT", "exclude", ``, 405, `send DELETE, POST`},
		{"GET", "stats", ``, 404, `the calls are GET /admin/v1/status`},
	} {
		w := b.ask(c.method, "/admin/v1/"+c.path, c.body)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
			t.Errorf("%s %s %.80s: %d %s, want %d with %s", c.method, c.path, c.body, w.Code, w.Body, c.status, c.says)
		}
		var answer struct{ Error Problem }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Error.Code == "" || answer.Error.Message == "" {
			t.Errorf("%s %s: no error in JSON: %v %s", c.method, c.path, err, w.Body)
		}
		if c.status == 405 && w.Header().Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	if ev := b.engine.Events(0); len(ev) > 0 {
		t.Errorf("a refused request has changed something: %+v", ev)
	}
}

func ptr[T any](v T) *T { return &v }

func TestHealth(t *testing.T) {
	t.Parallel()
	var notReady error
	b := newBench(t, world+"admin_token: "+token+"\n", func(o *Options) { o.Ready = func() error { return notReady } })
	if got := want[map[string]string](b, 200, "GET", "/healthz", ""); got["status"] != "ok" || got["persistence"] != "off" {
		t.Errorf("%v", got)
	}
	want[map[string]string](b, 200, "GET", "/readyz", "")
	notReady = errors.New("shutting down")
	if got := want[map[string]string](b, 503, "GET", "/readyz", ""); got["status"] != "shutting down" {
		t.Errorf("%v", got)
	}
	want[map[string]string](b, 200, "GET", "/healthz", "")
}

// TestSecrets asks for everything and looks for every secret in what comes.
func TestSecrets(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	b.fail("acme", "main", "large", limited)
	var all strings.Builder
	for _, c := range [][3]string{
		{"GET", "/admin/v1/status"}, {"POST", "/admin/v1/explain", `{"model": "coding"}`}, {"GET", "/admin/v1/attempts"},
		{"POST", "/admin/v1/reset", `{"scope": "all"}`}, {"POST", "/admin/v1/exclude", `{"provider": "acme"}`}, {"GET", "/healthz"},
	} {
		w := b.ask(c[0], c[1], c[2])
		if w.Code != 200 {
			t.Errorf("%v: %d", c, w.Code)
		}
		all.WriteString(w.Body.String())
	}
	if text := all.String() + b.log.String(); strings.Contains(text, apiKey) || len(text) < 500 {
		t.Errorf("a key is shown in %s", text)
	}
	b = newBench(t, world+"admin_token: "+token+"\n", nil)
	if w := b.ask("GET", "/admin/v1/status", ""); w.Code != 401 || strings.Contains(w.Body.String(), token) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func FuzzBodies(f *testing.F) {
	for _, seed := range []string{``, `{}`, `{"scope": "all"}`, `{"provider": "acme", "for": "1m"}`, `{"scope": "provider", "provider": "acme"}`, `{"model": "coding"}`, `null`, `{"for": 1e999}`} {
		f.Add(seed, "10")
	}
	f.Fuzz(func(t *testing.T, body, from string) {
		b := newBench(t, world, nil)
		for _, c := range [][2]string{{"POST", "reset"}, {"POST", "exclude"}, {"DELETE", "exclude"}, {"POST", "explain"}} {
			w := b.ask(c[0], "/admin/v1/"+c[1], body)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Fatalf("%v: %d %s", c, w.Code, w.Body)
			}
		}
		r := httptest.NewRequest("GET", "/admin/v1/events", nil)
		r.Header["Last-Event-Id"] = []string{from}
		if after, err := since(r); err == nil {
			after(numbered{})
		}
	})
}

// lines reads server-sent events as their lines.
func lines(t *testing.T, body io.Reader) (next func() string) {
	s := bufio.NewScanner(body)
	return func() string {
		t.Helper()
		for s.Scan() {
			if s.Text() != "" {
				return s.Text()
			}
		}
		return "the stream has ended"
	}
}
