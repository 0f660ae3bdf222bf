package livecheck

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"omniroute/classify"
	"omniroute/internal/config"
	"omniroute/internal/lab"
)

const secret = "upstream-secret-key-1"

func parse(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("omniroute.yaml", []byte(text), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func run(t *testing.T, cfg *config.Config, o Options) []Result {
	t.Helper()
	rules, err := classify.New()
	if err != nil {
		t.Fatal(err)
	}
	results := Run(t.Context(), cfg, rules, o)
	var table strings.Builder
	if err := Write(&table, results); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table.String(), secret) || strings.Contains(fmt.Sprint(results), secret) {
		t.Errorf("the key is shown:\n%s", table.String())
	}
	return results
}

// TestWords has one kind of trouble each, as its owner reads of it.
func TestWords(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		fault lab.Fault
		want  string
	}{
		"well":      {lab.Fault{}, "ok"},
		"key":       {lab.Unauthorized(), "401: the key is not accepted"},
		"revoked":   {lab.KeyRevoked(), "401: the key is not accepted"},
		"credit":    {lab.QuotaExhausted(), "429: the account lacks credit, or its billing is not in order"},
		"limit":     {lab.RateLimited(lab.RetryAfter(30 * time.Second)), "429: too many requests just now, although the key is accepted; it asks to come back in 30s"},
		"model":     {lab.ModelNotFound(), `404: "large" does not exist here, or not for this key`},
		"access":    {lab.Forbidden(), `403: this key may not use "large"`},
		"page":      {lab.HTML200(), "200: this is no answer of an API; look at base_url"},
		"broken":    {lab.ServerError(), "500: the service fails"},
		"full":      {lab.ModelOverloaded(lab.Hint{}), `503: "large" has no capacity just now`},
		"empty":     {lab.NoContent(), "200: the answer is empty"},
		"no API":    {lab.Status(404, "text/plain", "404 page not found", nil), "404: there is no such call; look at base_url and dialect"},
		"moved":     {lab.Status(301, "text/html", "moved", http.Header{"Location": {"https://elsewhere.example/"}}), "301: there is no such call; look at base_url and dialect"},
		"silent":    {lab.Hang(), "no answer came: 500ms were over"},
		"hangs up":  {lab.ResetBeforeHeaders(), "the service cannot be reached: read tcp"},
		"tells key": {lab.Status(401, "application/json", `{"error":{"message":"Incorrect API key provided: `+secret+`","code":"invalid_api_key"}}`, nil), "401: the key is not accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := lab.New(lab.Options{Keys: map[string]string{secret: "main"}, Models: []string{"large"}, Script: []lab.Phase{lab.Always(tt.fault)}})
			s, err := lab.Listen(p)
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			timeout := 20 * time.Second
			if name == "silent" {
				timeout = 500 * time.Millisecond
			}
			cfg := parse(t, `{store: "memory:", providers: {acme: {dialect: openai, base_url: "`+s.BaseURL()+`", models: [large], connections: [{id: main, api_key: `+secret+`}]}}}`)
			r := run(t, cfg, Options{Timeout: timeout})[0]
			if !strings.HasPrefix(r.Text, tt.want) || r.OK != (tt.want == "ok") || r.Model != "large" || r.From != "listed" || Failed([]Result{r}) == 1 != !r.OK {
				t.Errorf("got %+v, want %q", r, tt.want)
			}
			if n := len(p.Calls()); n != 1 && name != "silent" {
				t.Errorf("%d calls were made, want one", n)
			}
		})
	}
}

func TestNothingListens(t *testing.T) {
	t.Parallel()
	cfg := parse(t, `{store: "memory:", providers: {acme: {dialect: openai, base_url: "http://127.0.0.1:1/v1", connections: [{id: main, api_key: `+secret+`}]}}}`)
	if r := run(t, cfg, Options{})[0]; r.OK || !strings.HasPrefix(r.Text, "the service cannot be reached: dial tcp 127.0.0.1:1") {
		t.Errorf("%+v", r)
	}
}

// TestDialects shows what each dialect is asked, and where the model comes from.
func TestDialects(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.Method+" "+r.URL.Path)
		mu.Unlock()
		if !strings.Contains(fmt.Sprint(r.Header), secret) {
			w.WriteHeader(401)
			return
		}
		answers := map[string]string{
			"/o/models":           `{"data":[{"id":"text-embedding-9"},{"id":"chatty"}]}`,
			"/o/chat/completions": `{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`,
			"/a/messages":         `{"type":"message","role":"assistant","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn"}`,
			"/n/models":           `{"data":[]}`,
			"/p/models":           `<html>Sign in</html>`,
		}
		answer, ok := answers[r.URL.Path]
		if !ok {
			w.WriteHeader(404)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, answer)
	}))
	defer upstream.Close()
	at := func(path string) string { return upstream.URL + path }
	cfg := parse(t, `
store: "memory:"
providers:
  o: {dialect: openai, base_url: `+at("/o")+`, connections: [{id: main, api_key: `+secret+`}]}
  a: {dialect: anthropic, base_url: `+at("/a")+`, connections: [{id: main, api_key: `+secret+`}]}
  n: {dialect: openai, base_url: `+at("/n")+`, connections: [{id: main, api_key: `+secret+`}]}
  p: {dialect: openai, base_url: `+at("/p")+`, connections: [{id: main, api_key: `+secret+`}]}
combos:
  chat: {targets: [a/thinker]}
`)
	var got []string
	for _, r := range run(t, cfg, Options{Concurrency: 1}) {
		got = append(got, fmt.Sprintf("%s %s %s: %s", r.Provider, r.Model, r.From, r.Text))
	}
	want := []string{
		"o chatty offered: ok",
		"a thinker combo: ok",
		"n  : the key is accepted, but no model is known to ask; list one under models",
		"p  : 200: this is no answer of an API; look at base_url",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	if calls := fmt.Sprint(asked); calls != "[GET /o/models POST /o/chat/completions POST /a/messages GET /n/models GET /p/models]" {
		t.Errorf("asked %s", calls)
	}
}

// TestBounded shows that no more connections are asked at once than may be.
func TestBounded(t *testing.T) {
	t.Parallel()
	var now, most atomic.Int32
	both := make(chan struct{}, 8)
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
		}
		both <- struct{}{}
		if n == 1 { // wait for company, which there is room for
			for len(both) < 2 {
				time.Sleep(time.Millisecond) // no signal tells a handler that a request is on its way
			}
		}
		fmt.Fprint(w, `{"choices":[{"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
	}))
	defer upstream.Close()
	var connections []string
	for i := range 8 {
		connections = append(connections, fmt.Sprintf("{id: c%d, api_key: %s-%d}", i, secret, i))
	}
	cfg := parse(t, `{store: "memory:", providers: {acme: {dialect: openai, base_url: "`+upstream.URL+`", models: [m], connections: [`+strings.Join(connections, ", ")+`]}}}`)
	results := run(t, cfg, Options{Concurrency: 2})
	if Failed(results) != 0 || len(results) != 8 || most.Load() != 2 {
		t.Errorf("%d at once, %+v", most.Load(), results)
	}
}
