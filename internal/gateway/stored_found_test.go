package gateway_test

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/resilience"
)

// shelves is an upstream of the Responses API that keeps each account's responses for that account.
type shelves struct {
	mu   sync.Mutex
	has  map[string][]string // ids by key
	seen []string            // "METHOD key"
}

// ServeHTTP answers a call about a stored response, or one that goes on from one.
func (s *shelves) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.seen = append(s.seen, r.Method+" "+key)
	id := strings.TrimPrefix(r.URL.Path, "/v1/responses/")
	_, goesOn, _ := strings.Cut(string(body), `"previous_response_id":"`)
	goesOn, _, _ = strings.Cut(goesOn, `"`)
	w.Header().Set("Content-Type", "application/json")
	switch {
	case r.Method == http.MethodPost && !slices.Contains(s.has[key], goesOn):
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"Previous response with id '%s' not found.","type":"invalid_request_error","param":"previous_response_id","code":"previous_response_not_found"}}`, goesOn)
	case r.Method != http.MethodPost && !slices.Contains(s.has[key], id):
		w.WriteHeader(http.StatusNotFound) // without a word, as some proxies before an upstream say it
	case r.Method == http.MethodPost:
		io.WriteString(w, `{"id":"resp_c","object":"response","model":"m","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]}]}`)
	default:
		fmt.Fprintf(w, `{"id":%q,"object":"response","model":"m","status":"failed","error":{"code":"server_error","message":"It broke."},"output":[]}`, id)
		if r.Method == http.MethodDelete {
			s.has[key] = nil
		}
	}
}

func (s *shelves) calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	defer func() { s.seen = nil }()
	return s.seen
}

// TestStoredResponsesAreFound: a gateway that does not know who has made a response, since it has been restarted or
// another one has relayed it, asks from connection to connection, and blames none that does not have it.
func TestStoredResponsesAreFound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &shelves{has: map[string][]string{"secret-k3": {"resp_a", "resp_b"}}}
		w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"p": p, "q": &shelves{}}, Config: `
store: "memory:"
client_keys: [everything-key, {key: narrow-key, targets: ["p/*"]}]
providers:
  other: {dialect: openai, base_url: "$q", models: [m], connections: [{id: k9, api_key: secret-k9}]}
  p:
    dialect: responses
    base_url: "$p"
    models: [m]
    connections: [{id: k1, api_key: secret-k1}, {id: k2, api_key: secret-k2}, {id: k3, api_key: secret-k3}]
`})
		ask := func(method, path, key, body string) gatewaytest.Answer {
			t.Helper()
			req, err := http.NewRequestWithContext(t.Context(), method, w.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
			return w.Do(req)
		}
		got := ask("GET", "/v1/responses/resp_a", "everything-key", "")
		if calls := p.calls(); got.Status != 200 || !strings.Contains(got.Body, `"resp_a"`) || got.Header.Get("X-Omniroute-Connection") != "k3" || len(calls) > 3 {
			t.Errorf("%+v after %v", got, calls)
		}
		got = ask("GET", "/v1/responses/resp_a", "everything-key", "")
		if calls := p.calls(); got.Status != 200 || len(calls) != 1 {
			t.Errorf("what was found is not remembered: %+v after %v", got, calls)
		}
		got = ask("POST", "/v1/responses", "everything-key", `{"model":"m","input":"go on","previous_response_id":"resp_b"}`)
		if calls := p.calls(); got.Status != 200 || got.ID != "resp_c" || calls[len(calls)-1] != "POST secret-k3" {
			t.Errorf("%+v after %v", got, calls)
		}
		got = ask("GET", "/v1/responses/resp_x", "everything-key", "")
		if calls := p.calls(); got.Status != 404 || len(calls) != 3 {
			t.Errorf("nobody has it: %+v after %v", got, calls)
		}
		got = ask("POST", "/v1/responses", "everything-key", `{"model":"m","input":"go on","previous_response_id":"resp_x"}`)
		if calls := p.calls(); got.Status != 400 || !strings.Contains(got.Body, "previous_response_not_found") || len(calls) != 3 {
			t.Errorf("nobody can go on: %+v after %v", got, calls)
		}
		got = ask("GET", "/v1/responses/resp_b", "narrow-key", "")
		if calls := p.calls(); got.Status != 404 || len(calls) != 0 {
			t.Errorf("a key that may not have everything: %+v after %v", got, calls)
		}
		for _, s := range w.Engine.Status().Providers {
			for _, c := range s.Connections {
				if c.State != resilience.Ready {
					t.Errorf("%s is blamed: %+v", c.ID, c)
				}
			}
		}
	})
}

// TestNobodyStoresResponses: where no upstream speaks the API that stores responses, none is asked for one.
func TestNobodyStoresResponses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &shelves{}
		w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"p": p}, Config: `
store: "memory:"
providers: {p: {dialect: openai, base_url: "$p", models: [m], connections: [{id: k1, api_key: secret-k1}]}}
`})
		req, err := http.NewRequestWithContext(t.Context(), "GET", w.URL+"/v1/responses/resp_a", nil)
		if err != nil {
			t.Fatal(err)
		}
		if a := w.Do(req); a.Status != 404 || !strings.Contains(a.Body, "No response resp_a is known") || len(p.calls()) != 0 {
			t.Errorf("%+v", a)
		}
	})
}
