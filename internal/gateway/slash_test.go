package gateway_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
)

// TestRepeatedSlashes: a base URL with a slash too many leads where the one without does, and never to a redirect, which a
// client that streams its body cannot follow.
func TestRepeatedSlashes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := &upstream{answers: []answer{{kind: "application/json", body: `{"choices":[{"message":{"content":"Hi"},"finish_reason":"stop"}],"flagged":false}`}}}
		w := gatewaytest.Start(t, gatewaytest.Setup{Config: `{store: "memory:", providers: {p: {base_url: "$p", models: [m], connections: [{id: a, api_key: k}]}}}`,
			Handlers: map[string]http.Handler{"p": p}})
		for path, want := range map[string]string{"/v1//chat/completions": "/v1/chat/completions", "//v1/chat/completions": "/v1/chat/completions",
			"/v1//moderations": "/v1/moderations", "/v1///x//y": "/v1/x/y"} {
			if a := w.Post(t.Context(), path, `{"model":"m","messages":[]}`); a.Status != 200 || p.last(t).path != want {
				t.Errorf("%s: %d, the upstream was asked for %s: %s", path, a.Status, p.last(t).path, a.Body)
			}
		}
		for path, status := range map[string]int{"//v1/models": 200, "/v1/models/": 200, "/v1beta/models/": 200, "/v1//models//m": 200, "//": 404, "//admin//v1/status": 404, "/v1//../admin": 400} {
			req, err := http.NewRequestWithContext(t.Context(), "GET", w.URL+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			if a := w.Do(req); a.Status != status || status != 200 && !strings.HasPrefix(a.Body, `{"error":`) {
				t.Errorf("%s: %d %s", path, a.Status, a.Body)
			}
		}
	})
}
