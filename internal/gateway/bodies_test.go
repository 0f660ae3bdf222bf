package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/gateway/gatewaytest"
)

// TestBodiesAreBounded: one client sends more than the gateway holds at once. What does not fit is told to come back,
// another client does not feel it, and when the answers have begun there is room again.
func TestBodiesAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		goOn := make(chan struct{})
		p := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if len(body) > 1000 {
				<-goOn
			}
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}]}`)
		})
		w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"p": p}, Config: `
store: "memory:"
max_body: 1MiB
max_bodies: 4MiB
client_keys: [greedy-key, modest-key]
providers: {p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}]}}
`})
		ask := func(key string, size int) gatewaytest.Answer {
			req, err := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions",
				strings.NewReader(`{"model":"p/m","messages":[{"role":"user","content":"`+strings.Repeat("x", size)+`"}]}`))
			if err != nil {
				t.Error(err)
				return gatewaytest.Answer{}
			}
			req.Header.Set("Content-Type", "application/json")
			req.Header.Set("Authorization", "Bearer "+key)
			return w.Do(req)
		}
		const size = 1<<20 - 100
		answers := make(chan gatewaytest.Answer, 50)
		for range 50 {
			go func() { answers <- ask("greedy-key", size) }()
		}
		synctest.Wait()
		if n := len(answers); n != 48 {
			t.Errorf("%d of 50 were sent away, want all but half of what is held", n)
		}
		for range len(answers) {
			if a := <-answers; a.Status != 503 || a.Header.Get("Retry-After") != "1" || !strings.Contains(a.Body, `"code":"queue_full"`) {
				t.Errorf("%+v", a)
			}
		}
		if a := ask("modest-key", 100); a.Status != 200 {
			t.Errorf("another client: %+v", a)
		}
		close(goOn)
		for range 2 {
			if a := <-answers; a.Status != 200 {
				t.Errorf("%+v", a)
			}
		}
		synctest.Wait()
		if a := ask("greedy-key", size); a.Status != 200 {
			t.Errorf("there is room again: %+v", a)
		}
		time.Sleep(time.Second) // on the bubble's clock: the server lingers over connections that it cuts
	})
}
