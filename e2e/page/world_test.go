package page

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"omniroute/e2e/harness"
	"omniroute/internal/admin"
	_ "omniroute/internal/dashboard" // so that a change of the page makes a cached result of these tests stale
	"omniroute/internal/lab"
)

const token = "the-admin-token-of-the-tests"

// world is a gateway with simulated providers, which are well until they are asked for a fault.
type world struct {
	*harness.Gateway
	config string
	t      *testing.T
}

// usual has a provider for each way to fail, so that they do not disturb each other.
const usual = `
admin_token: ` + token + `
store: sqlite:state.db
relay: {max_wait: 0s, patience: 0s}
providers:
  northwind:
    {base_url: %[1]q, dialect: openai, models: [aurora, borealis], connections: [{id: alpha, api_key: northwind-alpha}, {id: beta, api_key: northwind-beta}]}
  contoso:
    {base_url: %[1]q, dialect: openai, models: [comet], connections: [{id: gamma, api_key: contoso-gamma, max_concurrent: 4}]}
  fabrikam:
    {base_url: %[1]q, dialect: openai, models: [fern], connections: [{id: main, api_key: fabrikam-main}, {id: spare, api_key: fabrikam-spare}]}
  tailspin:
    {base_url: %[1]q, dialect: openai, models: [toys], connections: [{id: old-key, api_key: tailspin-old}]}
combos:
  coding: {strategy: priority, targets: [northwind/aurora, contoso/comet]}
`

func newWorld(t *testing.T, config string) *world {
	t.Helper()
	s, err := lab.Listen(lab.New(lab.Options{Latency: lab.Latency{FirstContent: lab.Delay{Median: 20 * time.Millisecond}}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	if strings.Contains(config, "%[1]") {
		config = fmt.Sprintf(config, s.BaseURL())
	}
	return &world{harness.Start(t, harness.Options{Config: config}), config, t}
}

// client keeps no connections, so that a gateway can stop.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}

// send sends a body and returns the status and the answer.
func (w *world) send(method, path, body string) (int, string) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(context.Background(), method, w.URL+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	resp, err := client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// ask asks a model n times, and returns the id of the last request.
func (w *world) ask(model string, n int) (id string) {
	w.t.Helper()
	body, err := json.Marshal(map[string]any{"model": model, "stream": true, "messages": []map[string]string{{"role": "user", "content": "Hello"}}})
	if err != nil {
		w.t.Fatal(err)
	}
	for range n {
		resp, err := client.Post(w.URL+"/v1/chat/completions", "application/json", bytes.NewReader(body))
		if err != nil {
			w.t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		id = resp.Header.Get("X-Request-Id")
	}
	return id
}

// status is what the admin API says.
func (w *world) status() (s admin.Status) {
	w.t.Helper()
	code, text := w.send("GET", "/admin/v1/status", "")
	if err := json.Unmarshal([]byte(text), &s); err != nil || code != 200 {
		w.t.Fatalf("%d %s: %v", code, text, err)
	}
	return s
}

// breakThings makes every kind of exclusion.
func (w *world) breakThings() {
	w.t.Helper()
	w.ask("coding", 8)
	for i := range 6 { // from two models, or it would be one model's trouble
		w.ask("fabrikam/fault/500", 1)
		w.ask("fabrikam/fault/503", i%2)
	}
	w.ask("contoso/fault/404", 1)
	w.ask("northwind/fault/429:10m", 1)
	w.ask("tailspin/fault/key-revoked", 1)
	w.ask("coding", 4)
	w.ask("northwind/fault/cut", 1)
}

// signedIn opens the dashboard as an operator.
func (w *world) signedIn(s screen) *tab {
	w.t.Helper()
	p := open(w.t, s)
	w.signIn(p)
	return p
}

func (w *world) signIn(p *tab) {
	w.t.Helper()
	p.visit(w.URL + "/dashboard")
	p.wait("document.activeElement.id === 'token'")
	p.press(token + "\r")
	p.wait("document.body.dataset.link === 'live'")
}

// exclude sets an operator's exclusion, or with a kind a failure's.
func (w *world) exclude(fields url.Values) {
	w.t.Helper()
	q := map[string]string{}
	for k := range fields {
		q[k] = fields.Get(k)
	}
	body, err := json.Marshal(q)
	if err != nil {
		w.t.Fatal(err)
	}
	if code, text := w.send("POST", "/admin/v1/exclude", string(body)); code != 200 {
		w.t.Fatalf("%d %s", code, text)
	}
}
