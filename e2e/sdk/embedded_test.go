package sdk

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"omniroute/e2e/upstream"
	"omniroute/resilience"
	"omniroute/transport"
)

// embedded are the official Go clients, each with where it would go by itself.
var embedded = []struct {
	name, base string
	dial       func(*testing.T, string, *http.Client) talk
}{
	{"go chat", "https://api.openai.com", newGoChat},
	{"go responses", "https://api.openai.com", newGoResponses},
	{"go messages", "https://api.anthropic.com", newGoMessages},
	{"go genai", "https://generativelanguage.googleapis.com", newGoGenai},
}

func agentNamed(t *testing.T, name string) agent {
	for _, a := range agents {
		if a.name == name {
			return a
		}
	}
	t.Fatalf("there is no client %q", name)
	return agent{}
}

// TestEmbedded gives the official Go clients the transport as their HTTP client and nothing else:
// the first account is refused, the second provider is overloaded inside a 200, the third answers,
// in any dialect. Clients, tools, streams and errors are as they are through the gateway.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	for _, cl := range embedded {
		a := agentNamed(t, cl.name)
		for _, vendor := range upstream.Dialects {
			t.Run(cl.name+" over "+vendor, func(t *testing.T) {
				t.Parallel()
				var refused, overloadedCalls atomic.Int32
				limited := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					refused.Add(1)
					w.Header().Set("Content-Type", "application/json")
					w.Header().Set("Retry-After", "60")
					w.WriteHeader(http.StatusTooManyRequests)
					_, _ = io.WriteString(w, `{"error":{"type":"rate_limit_error","message":"Slow down."}}`)
				}))
				t.Cleanup(limited.Close)
				busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					overloadedCalls.Add(1)
					w.Header().Set("Content-Type", "text/event-stream")
					_, _ = io.WriteString(w, overloaded)
				}))
				t.Cleanup(busy.Close)
				good := upstream.NewVendor(t, vendor, vendorKey)

				tr, err := transport.New(t.Context(), transport.Options{Upstreams: []transport.Upstream{
					{Provider: "limited", Dialect: "openai", BaseURL: limited.URL + "/v1", APIKey: "a"},
					{Provider: "busy", Dialect: "anthropic", BaseURL: busy.URL + "/v1", APIKey: "b"},
					{Provider: "good", Dialect: vendor, BaseURL: good.URL, APIKey: vendorKey},
				}})
				if err != nil {
					t.Fatal(err)
				}
				defer func() {
					if err := tr.Close(context.WithoutCancel(t.Context())); err != nil {
						t.Error(err)
					}
				}()
				hc := tr.Client()
				hc.Timeout = callTime
				play := cl.dial(t, cl.base, hc)
				for _, scene := range []string{"text", "parallel", "image", "schema", "broken"} {
					for _, stream := range []bool{false, true} {
						j := job{Model: "m-" + scene, Scene: scene, Stream: stream}
						if scene == "broken" && !stream {
							continue
						}
						if wrong := a.check(j, play(t, j)); wrong != "" {
							t.Errorf("%s, %s: %s", scene, kindOfCall(stream), wrong)
						}
					}
				}
				if refused.Load() != 1 || overloadedCalls.Load() == 0 {
					t.Errorf("the limited account was asked %d times, want once, and the overloaded provider %d times", refused.Load(), overloadedCalls.Load())
				}
				limitedKey := resilience.Key{Provider: "limited", Connection: "1"}
				if tr.Engine().IsReady(limitedKey) {
					t.Errorf("%v is ready after a 429 that asks for a minute", limitedKey)
				}
			})
		}
	}
}
