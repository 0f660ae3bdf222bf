package lab_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"omniroute/internal/lab"
)

// FuzzRequests shows that no body breaks the provider: it always answers, and with JSON where it
// says so.
func FuzzRequests(f *testing.F) {
	f.Add("/v1/chat/completions", `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"a"},"b",3]}],"stream":true}`)
	f.Add("/v1/chat/completions", `{"model":"m","messages":[{}],"tools":[{"function":{"name":"f","parameters":{"properties":{"a":{"items":{"type":["array"]}}}}}}]}`)
	f.Add("/v1/chat/completions", `{"model":"m","messages":[{"role":"assistant","content":"x"}],"max_tokens":-1,"tool_choice":{"function":{"name":7}}}`)
	f.Add("/completions", `{"model":"m","prompt":[1,2],"max_tokens":1}`)
	f.Add("/v1/embeddings", `{"model":"m","input":[],"dimensions":99999999}`)
	f.Add("/v1/models/a", ``)
	f.Fuzz(func(t *testing.T, path, body string) {
		// A model that hangs or dies is not what this is about.
		if strings.Contains(body, "fault") || strings.Contains(body, `\u`) || !strings.HasPrefix(path, "/") {
			t.Skip()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", "http://lab.example", strings.NewReader(body))
		if err != nil {
			t.Skip()
		}
		req.URL.Path = path
		w := httptest.NewRecorder()
		lab.New(lab.Options{}).ServeHTTP(w, req)
		if w.Header().Get("Content-Type") == "application/json" && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%d with broken JSON: %s", w.Code, w.Body)
		}
	})
}

// TestNestedSchemas shows that a schema without an end ends anyway.
func TestNestedSchemas(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"type":"object","properties":{"a":`, 50) + "true" + strings.Repeat("}}", 50)
	h := onSocket(t, lab.Options{})
	r := h.ask(t.Context(), "m", false, `,"tools":[{"function":{"name":"f","parameters":`+deep+`}}]`)
	if r.Status != 200 || !json.Valid([]byte(r.Body)) || !strings.Contains(r.Body, `\"a\":null`) {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

// TestHTTP2 shows that a cut reaches the client where the connection cannot be taken over.
func TestHTTP2(t *testing.T) {
	t.Parallel()
	p := lab.New(lab.Options{})
	s := httptest.NewUnstartedServer(p)
	s.EnableHTTP2 = true
	s.StartTLS()
	t.Cleanup(s.Close)
	h := &harness{t: t, p: p, base: s.URL + "/v1", client: s.Client(), key: "k"}
	r := h.ask(t.Context(), "fault/cut", true)
	if r.Err == nil || r.Pieces != 3 || r.Done {
		t.Errorf("got %+v", r)
	}
	if r := h.ask(t.Context(), "m", true); r.Err != nil || !r.Done {
		t.Errorf("the next stream: %+v", r)
	}
	if n := p.InFlight(); n != 0 {
		t.Errorf("%d still in flight", n)
	}
}

func TestManyModelsAreBounded(t *testing.T) {
	t.Parallel()
	p := lab.New(lab.Options{KeepCalls: -1, KeepRequests: -1})
	for i := range 10_010 {
		body := fmt.Sprintf(`{"model":"m%d","prompt":"a"}`, i)
		w := httptest.NewRecorder()
		p.ServeHTTP(w, httptest.NewRequest("POST", "/v1/completions", strings.NewReader(body)))
		if w.Code != 200 {
			t.Fatalf("got %d", w.Code)
		}
	}
	if n := p.Count("other", "other"); n != 10 || p.Total() != 10_010 {
		t.Errorf("%d of %d under other", n, p.Total())
	}
	if len(p.Calls()) != 0 || len(p.Requests()) != 0 {
		t.Error("records were kept")
	}
}
