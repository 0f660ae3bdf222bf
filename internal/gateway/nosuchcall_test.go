package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/resilience"
)

// TestCallsThatAnUpstreamLacks: a call that one upstream does not have goes on to another provider, and nobody is
// blamed for it, however a router's 404 looks: whoever asks for what is not there must not take chat away from others.
func TestCallsThatAnUpstreamLacks(t *testing.T) {
	t.Parallel()
	for name, lacks := range map[string]struct {
		status int
		body   string
	}{
		"text": {404, "404 page not found"}, "nothing": {404, ""}, "page": {404, "<html><body>Not Found</body></html>"}, "method": {405, ""},
		"JSON": {404, `{"error":{"message":"Unknown request URL: POST /v1/embeddings.","type":"invalid_request_error","code":"unknown_url"}}`},
		"none": {501, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const said = `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`
				chatOnly := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path == "/v1/chat/completions" {
						w.Header().Set("Content-Type", "application/json")
						io.WriteString(w, said)
						return
					}
					w.WriteHeader(lacks.status)
					io.WriteString(w, lacks.body)
				})
				all := &upstream{answers: []answer{{kind: "application/json", body: `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"choices":[{"index":0,"text":"Hi","message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`}}}
				w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"p": chatOnly, "q": all}, Config: `
store: "memory:"
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}]}
  q: {base_url: "$q", connections: [{id: k2, api_key: secret-q2}]}
combos: {c: {targets: [p/m, q/m]}}
`})
				for range 6 {
					for _, path := range []string{"/v1/embeddings", "/v1/completions", "/v1/moderations", "/v1/v1/chat/completions"} {
						if a := w.Post(t.Context(), path, `{"model":"c","input":"x","prompt":"x","messages":[]}`); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "q" {
							t.Errorf("%s: %+v", path, a)
						}
						if a := w.Post(t.Context(), path, `{"model":"p/m","input":"x","prompt":"x","messages":[]}`); a.Status != 404 || !strings.HasPrefix(a.Body, `{"error":{"message":"`) {
							t.Errorf("%s: %+v", path, a)
						}
					}
				}
				if a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"c","messages":[]}`); a.Header.Get("X-Omniroute-Provider") != "p" {
					t.Errorf("chat: %+v", a)
				}
				for _, p := range w.Engine.Status().Providers {
					if p.Breaker.State != resilience.Closed || p.Connections[0].State != resilience.Ready {
						t.Errorf("%s is blamed: %+v %+v", p.ID, p.Breaker, p.Connections[0])
					}
				}
			})
		})
	}
}

// TestUnknownThing: a question that one account refuses, since it does not know something in it, another may answer, and nobody
// is blamed; where nobody can, the client hears what the first one said.
func TestUnknownThing(t *testing.T) {
	t.Parallel()
	for _, body := range []string{`{"error":{"message":"No such file object: file-1"}}`, `{"Output":{"__type":"com.amazon.coral.service#UnknownOperationException"},"Version":"1.0"}`, `{}`} {
		shaped(t, labelled(404, body, "Content-Type", "application/json"), func(t *testing.T, w *gatewaytest.World) {
			if a := w.Chat(t.Context(), "m", false); a.Status != 200 || a.Text != "All of it." || a.Header.Get("X-Omniroute-Provider") != "v" {
				t.Errorf("%s: %+v", body, a)
			}
			if a := w.Chat(t.Context(), "u/m", false); a.Status != 404 || strings.Contains(body, "file-1") && !strings.Contains(a.Body, "No such file object: file-1") {
				t.Errorf("%s: %+v", body, a)
			}
			if p := w.Engine.Status().Providers[0]; p.Breaker.Failures != 0 || p.Connections[0].State != resilience.Ready {
				t.Errorf("%s: blamed: %+v", body, p)
			}
		})
	}
	shaped(t, labelled(405, `{"detail":"Method Not Allowed"}`, "Content-Type", "application/json"), func(t *testing.T, w *gatewaytest.World) {
		if a := w.Chat(t.Context(), "m", false); a.Status != 200 || a.Header.Get("X-Omniroute-Provider") != "v" {
			t.Errorf("405: %+v", a)
		}
	})
}

// TestWrongAddress: where not even chat is found the address is wrong, and others are asked from then on.
func TestWrongAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &upstream{answers: []answer{{kind: "application/json", body: `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`}}}
		p := &upstream{answers: []answer{{status: 404, kind: "text/plain", body: "404 page not found"}}}
		w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"p": p, "q": q}, Config: `
store: "memory:"
providers:
  p: {base_url: "$p/wrong", connections: [{id: k1, api_key: secret-p1}]}
  q: {base_url: "$q", connections: [{id: k2, api_key: secret-q2}]}
combos: {c: {targets: [p/m, q/m]}}
`})
		for range 5 {
			if a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"c","messages":[]}`); a.Status != 200 {
				t.Errorf("%+v", a)
			}
		}
		if n := p.total(); n != 1 {
			t.Errorf("asked %d times at an address where nothing is", n)
		}
	})
}
