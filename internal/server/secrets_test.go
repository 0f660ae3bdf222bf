package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniroute/internal/lab"
	"omniroute/resilience"
)

const (
	headerSecret = "team-token-secret"
	proxySecret  = "proxy-password-secret"
	strangerKey  = "somebody-elses-secret"
	hookSecret   = "address-of-a-hook-secret"
	signSecret   = "signature-secret"
	spanSecret   = "collector-secret"
	prompt       = "the-words-of-the-prompt"
)

// parrot is an upstream that repeats the key and the prompt which it was given in every way it can.
func parrot(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Authorization") + " " + r.Header.Get("X-Team")
	for _, name := range []string{"X-Echo", "Location", "Retry-After", "X-Request-Id", "X-Ratelimit-Key"} {
		w.Header().Set(name, key)
	}
	say := func(status int, kind, text string) {
		w.Header().Set("Content-Type", kind)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
	const piece = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hi"},"finish_reason":null}]}` + "\n\n"
	switch way := r.Header.Get("X-Way"); way {
	case "400", "401", "403", "404", "418", "429", "500":
		var status int
		_, _ = fmt.Sscan(way, &status)
		say(status, "application/json", fmt.Sprintf(`{"error":{"message":"cannot do it with %s","code":"%[1]s","type":"t","param":null,"input":{"was":[%[2]q]}},"prompt":%[2]q}`, key, prompt))
	case "page":
		say(502, "text/html", "<html>"+key)
	case "in the stream":
		say(200, "text/event-stream", piece+`data: {"error":{"message":"lost with `+key+`","input":"`+prompt+`","type":"t"}}`+"\n\n")
	case "cut":
		say(200, "text/event-stream", piece)
	case "no JSON":
		say(200, "application/json", key)
	case "stream":
		say(200, "text/event-stream", piece+`data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`+"\n\ndata: [DONE]\n\n")
	default:
		say(200, "application/json", `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}
}

// TestNoSecretComesOut runs a gateway through every kind of end that a request can have and then looks
// for every secret in all that came out of it: answers with their headers, the log at its lowest
// level, errors, metrics, every call of the admin API, stories, the events, alerts, traces, the trail, the engine's own view, the
// configuration as it is printed, the store's file and the recorded outcomes. What clients asked is in none of these but
// their own answers.
func TestNoSecretComesOut(t *testing.T) {
	t.Parallel()
	echo := httptest.NewServer(http.HandlerFunc(parrot))
	t.Cleanup(echo.Close)
	p := lab.New(lab.Options{Name: "faulty", Keys: map[string]string{key2: "spare"}, Faulty: true})
	s, err := lab.Listen(p)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	var alerts logs // what the receiver of alerts gets, but for its own address
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintln(&alerts, r.Header, string(body), err)
	}))
	t.Cleanup(hook.Close)
	var traces logs // what the collector gets
	spans := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		fmt.Fprintln(&traces, string(body), err)
	}))
	t.Cleanup(spans.Close)
	dir := t.TempDir()
	g := prepare(t, dir, fmt.Sprintf(`
client_keys: [%q]
admin_token: %q
alerts: [{url: %q, secret: %q}]
tracing: {otlp: %q, headers: {x-token: %q}}
store: sqlite:state.db
record: {file: outcomes.jsonl}
providers:
  parrot: {base_url: %q, connections: [{id: main, api_key: %q}], headers: {x-team: %q}, models: [m]}
  faulty: {base_url: %q, connections: [{id: spare, api_key: %q}], first_token_timeout: 150ms, answer_timeout: 150ms}
  behind: {base_url: "http://127.0.0.1:1/v1", proxy: "http://user:%s@127.0.0.1:1", connections: [{id: main, api_key: %[8]q}], models: [b]}
relay: {max_wait: 0s, patience: 0s, idle_timeout: 900ms, max_attempts: 2}
`, clientKey, token, hook.URL+"/"+hookSecret, signSecret, spans.URL, spanSecret, echo.URL+"/v1", key1, headerSecret, s.BaseURL(), key2, proxySecret))
	g.Main = New(Options{Source: Find(g.file), Logger: slog.New(slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})), times: patient})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	events, err := g.request("GET", "/admin/v1/events", "")
	if err != nil {
		t.Fatal(err)
	}
	var answers, inside strings.Builder // what clients see, and what operators see
	ask := func(path, key, model, way string, stream bool) {
		t.Helper()
		g.call("POST", "/admin/v1/reset", `{"scope": "all"}`) // so that this one reaches its upstream too
		body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":%q}]}`, model, stream, prompt)
		r, err := http.NewRequestWithContext(t.Context(), "POST", g.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		r.Header.Set("X-Way", way)
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		fmt.Fprintln(&answers, resp.Status, resp.Header, string(text), err)
		_, story := g.call("GET", "/admin/v1/requests/"+resp.Header.Get("X-Request-Id"), "")
		inside.WriteString(story)
	}
	const chat = "/v1/chat/completions"
	for _, way := range []string{"400", "401", "403", "404", "418", "429", "500", "page", "in the stream", "cut", "no JSON", "stream", "whole"} {
		ask(chat, clientKey, "parrot/m", way, false)
		ask(chat, clientKey, "parrot/m", way, true)
	}
	for _, f := range lab.Faults() {
		name := f.Name
		if strings.HasPrefix(name, "slow-") {
			name += ":60ms"
		}
		ask(chat, clientKey, "faulty/"+name, "", false)
		ask(chat, clientKey, "faulty/"+name, "", true)
	}
	ask(chat, clientKey, "behind/b", "", false)
	ask(chat, strangerKey, "parrot/m", "", false)
	ask(chat+"?key="+clientKey, clientKey, "parrot/m", "whole", false)
	ask("/v1/nothing", clientKey, "nobody/x", "", false)
	if n := strings.Count(answers.String(), "[redacted]"); n < 26 {
		t.Errorf("only %d places of the answers would have shown a key; the upstream was not asked", n)
	}

	ask(chat, clientKey, "parrot/m", "401", false) // something to see in the views
	g.Engine().RecordFailure(resilience.Key{Provider: "parrot", Connection: "main"}, resilience.Verdict{
		Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true, Evidence: g.Config().Hide(key1)})
	for _, call := range [][3]string{
		{"GET", "/admin/v1/status"}, {"POST", "/admin/v1/explain", `{"model": "parrot/m"}`}, {"GET", "/admin/v1/attempts?limit=1000"},
		{"GET", "/admin/v1/series"}, {"GET", "/admin/v1/unknown-errors"}, {"GET", "/metrics"}, {"GET", "/healthz"}, {"GET", "/readyz"},
		{"POST", "/admin/v1/exclude", `{"provider": "faulty", "for": "1m", "reason": "maintenance"}`}, {"GET", "/admin/v1/nothing"}, {"GET", "/admin/v1/audit"},
	} {
		code, text := g.call(call[0], call[1], call[2])
		if code != 200 && !strings.HasSuffix(call[1], "nothing") {
			t.Errorf("%v: %d %s", call, code, text)
		}
		inside.WriteString(text)
	}
	write(t, g.file, "admin_token: [${}"+key1) // a file that is refused is shown with its place
	_ = g.Reload()
	cfg := g.Config()
	asJSON, err := json.Marshal(cfg)
	fmt.Fprintf(&inside, "%v %+v %#v %s %v", cfg, cfg, cfg, asJSON, err)
	for _, c := range cfg.Providers {
		fmt.Fprintf(&inside, "%v %+v %#v", c, c, c)
		for _, one := range c.Connections {
			fmt.Fprintf(&inside, "%v %+v %#v", one, one, one)
		}
	}
	fmt.Fprintf(&inside, "%+v %+v", g.Engine().Status(), g.Engine().Events(1000))
	if err := g.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	told, err := io.ReadAll(events.Body) // it ends with the gateway
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	events.Body.Close()
	inside.Write(told)
	inside.WriteString(g.log.String())
	inside.WriteString(alerts.String())
	inside.WriteString(traces.String())
	files, err := filepath.Glob(filepath.Join(dir, "state.db*"))
	if err != nil || len(files) == 0 {
		t.Errorf("no store: %v", err)
	}
	files = append(files, filepath.Join(dir, "outcomes.jsonl"))
	for _, file := range files {
		bytes, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
		}
		inside.Write(bytes)
	}
	for _, part := range []string{"event: ", "request_id", "omniroute_attempts_total", `"type":"quarantine.began"`, `"action":"exclude"`, `"omniroute.verdict.kind"`, "level=", `"attempts":[{`, "SQLite format", `"retry_elsewhere":true`, "quarantin"} {
		if !strings.Contains(inside.String(), part) {
			t.Errorf("what was looked through has no %q", part)
		}
	}
	look := func(where, text string, secrets ...string) {
		for _, secret := range secrets {
			if i := strings.Index(text, secret); i >= 0 {
				t.Errorf("%s came out in %s: …%s…", secret, where, text[max(0, i-300):min(len(text), i+100)])
			}
		}
	}
	secrets := []string{clientKey, token, key1, key2, headerSecret, proxySecret, strangerKey, hookSecret, signSecret, spanSecret}
	look("an answer", answers.String(), secrets...)
	look("what operators see", inside.String(), append(secrets, prompt)...)
}
