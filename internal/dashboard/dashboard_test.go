package dashboard

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"omniroute/failover"
	"omniroute/internal/admin"
	"omniroute/internal/config"
	"omniroute/internal/route"
	"omniroute/resilience"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const token = "admin-token-that-nobody-may-see"

const world = `
store: "memory:"
admin_token: "` + token + `"
providers:
  acme:
    dialect: openai
    base_url: https://llm.acme.example/v1
    models: [large, small]
    connections: [{id: main, api_key: upstream-key-1}, {id: spare, api_key: upstream-key-2}]
combos:
  coding: {targets: [acme/large]}
`

// bench is a Dashboard with all that it shows.
type bench struct {
	*Dashboard
	engine *resilience.Engine
	admin  *admin.Admin
	cfg    atomic.Pointer[config.Config]
	log    strings.Builder
	t      testing.TB
}

func parse(t testing.TB, text string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("omniroute.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func newBench(t testing.TB, text string) *bench { return newBenchOn(t, text, nil) }

// newBenchOn returns a dashboard with a trail, which several may have.
func newBenchOn(t testing.TB, text string, trail resilience.Auditor) *bench {
	t.Helper()
	b := &bench{t: t}
	cfg := parse(t, text)
	b.cfg.Store(cfg)
	var err error
	if b.engine, err = resilience.New(resilience.Options{Config: route.EngineConfig(cfg)}); err != nil {
		t.Fatal(err)
	}
	router, err := route.New(cfg, b.engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	runner := failover.NewRunner(b.engine)
	log := slog.New(slog.NewTextHandler(&b.log, nil))
	a := admin.New(admin.Options{Version: "1.2.3", Router: func() *route.Router { return router }, Runner: runner, Trail: trail, Logger: log})
	b.admin = a
	b.Dashboard = New(Options{Admin: a, Config: b.cfg.Load, Logger: log})
	t.Cleanup(func() { b.Close(); a.Close(); a.CloseTrail(); runner.Close() })
	return b
}

// ask sends a request from this machine; change alters it first.
func (b *bench) ask(method, path, body string, change ...func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	r.RemoteAddr, r.Host = "127.0.0.1:4711", "127.0.0.1:20128"
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func form(r *http.Request) { r.Header.Set("Content-Type", "application/x-www-form-urlencoded") }

func with(header, value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set(header, value) }
}

// signIn returns the cookie of a session, and its CSRF token as the page has it.
func (b *bench) signIn() (cookie func(*http.Request), csrf string) {
	b.t.Helper()
	w := b.ask("POST", "/dashboard/sign-in", url.Values{"token": {token}}.Encode(), form)
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/dashboard" {
		b.t.Fatalf("%d %s", w.Code, w.Body)
	}
	c := w.Result().Cookies()[0]
	cookie = func(r *http.Request) { r.AddCookie(&http.Cookie{Name: c.Name, Value: c.Value}) }
	page := b.ask("GET", "/dashboard", "", cookie).Body.String()
	_, rest, ok := strings.Cut(page, `<meta name="csrf" content="`)
	if !ok {
		b.t.Fatalf("no token in the page: %s", page)
	}
	csrf, _, _ = strings.Cut(rest, `"`)
	return cookie, csrf
}

func TestSignIn(t *testing.T) {
	t.Parallel()
	b := newBench(t, world)
	if w := b.ask("GET", "/dashboard", ""); w.Code != 200 || !strings.Contains(w.Body.String(), `action="/dashboard/sign-in"`) || strings.Contains(w.Body.String(), "main.js") {
		t.Errorf("a stranger gets %d %s", w.Code, w.Body)
	}
	w := b.ask("POST", "/dashboard/sign-in", url.Values{"token": {"wrong"}}.Encode(), form)
	if w.Code != 401 || len(w.Result().Cookies()) != 0 || !strings.Contains(w.Body.String(), "not the admin token") {
		t.Errorf("a wrong token: %d %s", w.Code, w.Body)
	}
	w = b.ask("POST", "/dashboard/sign-in", url.Values{"token": {" " + token + "\n"}}.Encode(), form)
	c := w.Result().Cookies()[0]
	if w.Code != 303 || !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/dashboard" || c.Secure || time.Until(c.Expires) < 11*time.Hour || time.Until(c.Expires) > 12*time.Hour {
		t.Errorf("%d %+v", w.Code, c)
	}
	w = b.ask("POST", "/dashboard/sign-in", url.Values{"token": {token}}.Encode(), form, with("X-Forwarded-Proto", "https"))
	if c := w.Result().Cookies()[0]; !c.Secure {
		t.Error("over TLS the cookie is not for TLS alone")
	}
	w = b.ask("POST", "/dashboard/sign-in", url.Values{"token": {token}}.Encode(), form, with("Origin", "https://evil.example"))
	if w.Code != 403 || len(w.Result().Cookies()) != 0 {
		t.Errorf("another site's form: %d", w.Code)
	}
	if strings.Contains(b.log.String(), token) || !strings.Contains(b.log.String(), "wrong admin token") || !strings.Contains(b.log.String(), "has signed in") {
		t.Error(b.log.String())
	}
}

func TestSignOut(t *testing.T) {
	t.Parallel()
	b := newBench(t, world)
	cookie, csrf := b.signIn()
	if w := b.ask("POST", "/dashboard/sign-out", "csrf=guess", form, cookie); w.Code != 403 {
		t.Errorf("signed out by another site: %d", w.Code)
	}
	w := b.ask("POST", "/dashboard/sign-out", url.Values{"csrf": {csrf}}.Encode(), form, cookie)
	if c := w.Result().Cookies()[0]; w.Code != 303 || c.Value != "" || c.Expires.After(time.Now()) {
		t.Errorf("%d %+v", w.Code, c)
	}
	if w := b.ask("GET", "/dashboard/api/status", "", cookie); w.Code != 401 {
		t.Errorf("a cookie that was kept is good after the sign-out: %d", w.Code)
	}
}

// shelf keeps a trail, as a store does.
type shelf struct {
	mu   sync.Mutex
	kept []resilience.Audit
}

func (s *shelf) Record(_ context.Context, a resilience.Audit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept = append(s.kept, a)
	return nil
}

func (s *shelf) Audits(_ context.Context, limit int) ([]resilience.Audit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.Clone(s.kept)
	slices.Reverse(all)
	return all[:min(limit, len(all))], nil
}

// TestSignOutOutlivesTheProcess: a cookie that was kept is no good at the next process either, and others are.
func TestSignOutOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	var trail shelf
	before := newBenchOn(t, world, &trail)
	cookie, csrf := before.signIn()
	stays, _ := before.signIn()
	if w := before.ask("POST", "/dashboard/sign-out", url.Values{"csrf": {csrf}}.Encode(), form, cookie); w.Code != 303 {
		t.Fatal(w.Code)
	}
	before.admin.CloseTrail() // as at the end of a process
	after := newBenchOn(t, world, &trail)
	if w := after.ask("GET", "/dashboard/api/status", "", stays); w.Code != 200 {
		t.Errorf("a session that nobody ended: %d", w.Code)
	}
	if w := after.ask("GET", "/dashboard/api/status", "", cookie); w.Code != 401 {
		t.Errorf("a session that was signed out of: %d", w.Code)
	}
}

// TestGuessesAreFew: the sixth wrong token in a row has to wait, and so has the right one.
func TestGuessesAreFew(t *testing.T) {
	t.Parallel()
	b := newBench(t, world)
	try := func(token string, change ...func(*http.Request)) *httptest.ResponseRecorder {
		return b.ask("POST", "/dashboard/sign-in", url.Values{"token": {token}}.Encode(), append(change, form)...)
	}
	for range 3 {
		try(token) // costs nothing
	}
	for i := range 5 {
		if w := try(fmt.Sprint("wrong", i)); w.Code != 401 {
			t.Fatalf("guess %d: %d", i+1, w.Code)
		}
	}
	if w := try(token); w.Code != 429 || w.Header().Get("Retry-After") == "" || len(w.Result().Cookies()) != 0 {
		t.Errorf("the sixth: %d", w.Code)
	}
	if w := try(token, func(r *http.Request) { r.RemoteAddr = "192.0.2.7:99" }); w.Code != 303 {
		t.Errorf("another machine pays for it: %d", w.Code)
	}
}

// TestChangesNeedTheToken: with the cookie alone, which a browser adds by itself, nothing changes.
func TestChangesNeedTheToken(t *testing.T) {
	t.Parallel()
	b := newBench(t, world)
	cookie, csrf := b.signIn()
	other, _ := newBench(t, world).signIn()
	const body = `{"provider": "acme", "for": "1m"}`
	good := with(csrfHeader, csrf)
	for name, c := range map[string]struct {
		want   int
		change []func(*http.Request)
	}{
		"nothing":         {401, nil},
		"bearer":          {401, []func(*http.Request){with("Authorization", "Bearer "+token), good}},
		"no cookie":       {401, []func(*http.Request){good}},
		"no token":        {403, []func(*http.Request){cookie}},
		"wrong token":     {403, []func(*http.Request){cookie, with(csrfHeader, csrf+"x")}},
		"other's session": {403, []func(*http.Request){other, good}},
		"a form":          {403, []func(*http.Request){cookie, good, form}},
		"other site":      {403, []func(*http.Request){cookie, good, with("Origin", "https://evil.example")}},
		"other port":      {403, []func(*http.Request){cookie, good, with("Sec-Fetch-Site", "same-site")}},
		"our page":        {200, []func(*http.Request){cookie, good, with("Origin", "http://127.0.0.1:20128"), with("Sec-Fetch-Site", "same-origin")}},
	} {
		if w := b.ask("POST", "/dashboard/api/exclude", body, c.change...); w.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
		if out := len(b.engine.Status().Operator) > 0; out != (c.want == 200) {
			t.Errorf("%s: excluded %v", name, out)
		}
		b.engine.Reset(resilience.Key{}, true)
	}
	if w := b.ask("GET", "/dashboard/api/status", "", cookie); w.Code != 200 {
		t.Errorf("reading: %d", w.Code)
	}
	for _, path := range []string{"/dashboard/api/../../admin/v1/status", "/dashboard/api/%2e%2e/healthz", "/dashboard/api/nothing"} {
		if w := b.ask("GET", path, "", cookie); w.Code == 200 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
}

// TestWithoutAToken: this machine's own browser needs no sign-in, and nobody else gets in.
func TestWithoutAToken(t *testing.T) {
	t.Parallel()
	b := newBench(t, strings.Replace(world, `admin_token: "`+token+`"`, "", 1))
	if w := b.ask("GET", "/dashboard", ""); w.Code != 200 || !strings.Contains(w.Body.String(), "main.js") || strings.Contains(w.Body.String(), "Sign out") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := b.ask("POST", "/dashboard/api/reset", `{"scope": "all"}`, with("Origin", "http://127.0.0.1:20128")); w.Code != 200 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	for name, change := range map[string]func(*http.Request){
		"another machine": func(r *http.Request) { r.RemoteAddr = "192.0.2.7:99" },
		"a proxy":         with("X-Forwarded-For", "192.0.2.7"),
		"a rebound name":  func(r *http.Request) { r.Host = "evil.example" },
		"another page":    with("Origin", "http://127.0.0.1:8080"),
	} {
		for method, path := range map[string]string{"GET": "/dashboard", "POST": "/dashboard/api/reset"} {
			w := b.ask(method, path, `{"scope": "all"}`, change)
			if w.Code != 403 {
				t.Errorf("%s: %s %d", name, path, w.Code)
			}
			if method == "GET" && !strings.Contains(w.Body.String(), "admin_token") {
				t.Errorf("%s: the page does not say what to do: %s", name, w.Body)
			}
		}
		if w := b.ask("GET", "/dashboard/stream", "", change); w.Code != 403 {
			t.Errorf("%s: stream %d", name, w.Code)
		}
	}
}

// TestHeaders: every answer tells the browser to load nothing else, to be in no frame and to keep nothing.
func TestHeaders(t *testing.T) {
	t.Parallel()
	b := newBench(t, world)
	cookie, _ := b.signIn()
	for _, path := range []string{"/dashboard", "/dashboard/", "/dashboard/nothing", "/dashboard/api/status", "/dashboard/sign-in", assetsPath + "/page.css"} {
		w := b.ask("GET", path, "", cookie)
		h := w.Header()
		if csp := h.Get("Content-Security-Policy"); !strings.HasPrefix(csp, "default-src 'none'") || strings.Contains(csp, "unsafe") || !strings.Contains(csp, "frame-ancestors 'none'") {
			t.Errorf("%s: %q", path, csp)
		}
		for name, want := range map[string]string{"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "same-origin", "Access-Control-Allow-Origin": ""} {
			if got := h.Get(name); got != want {
				t.Errorf("%s: %s: %q, want %q", path, name, got, want)
			}
		}
		kept := strings.HasPrefix(path, "/dashboard/assets/")
		if got := h.Get("Cache-Control"); (got == "no-store") == kept {
			t.Errorf("%s: Cache-Control: %s", path, got)
		}
	}
	for _, path := range []string{assetsPath + "/dashboard.html", assetsPath + "/nothing.js", assetsPath + "/..%2fassets.go"} {
		if w := b.ask("GET", path, ""); w.Code != 404 {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	if w := b.ask("GET", "/dashboard/assets/older/main.js", ""); w.Code != 200 || w.Header().Get("Cache-Control") != "no-store" || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/javascript") {
		t.Errorf("a page from before an upgrade: %d %v", w.Code, w.Header())
	}
}

// TestNothingInline: the policy forbids inline scripts and styles, and the assets bring none.
func TestNothingInline(t *testing.T) {
	t.Parallel()
	entries, err := files.ReadDir("assets")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		f, err := files.Open("assets/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(f)
		f.Close()
		for _, bad := range map[string][]string{
			".html": {"<script>", "<style", " style=", " onclick=", " onload=", "//cdn", "https://"},
			".js":   {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"},
			".css":  {"@import", "url("},
		}[ext(e.Name())] {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s has %q", e.Name(), bad)
			}
		}
	}
}

func ext(name string) string { return name[strings.LastIndexByte(name, '.'):] }
