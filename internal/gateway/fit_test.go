package gateway_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/resilience"
)

// windowed is an upstream whose models take prompts of so many bytes; the others it refuses, and
// says how many tokens it takes.
type windowed struct {
	bytes map[string]int
	asked map[string]int
}

func (u *windowed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	_, model, _ := strings.Cut(string(body), `"model":"`)
	model, _, _ = strings.Cut(model, `"`)
	u.asked[model]++
	w.Header().Set("Content-Type", "application/json")
	switch limit := u.bytes[model]; {
	case limit < 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"error":{"message":"down"}}`)
	case len(body) > limit:
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprintf(w, `{"error":{"message":"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, limit/4, len(body)/4)
	default:
		fmt.Fprint(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}
}

const windows = `
store: "memory:"
providers:
  p:
    base_url: "$p"
    connections: [{id: k, api_key: x}]
    models:
      - {id: down, context: 200000}
      - {id: small, context: 32000}
      - {id: large, context: 200000}
      - {id: blind, images: false, max_output: 1000, tools: false, json_schema: false}
      - unknown
combos:
  chain: {targets: [p/down, p/small, p/large]}
  smalls: {targets: [p/small, p/blind]}
  sight: {targets: [p/blind, p/large]}
  learns: {targets: [p/unknown, p/large]}
`

func windowedWorld(t *testing.T, f func(t *testing.T, w *gatewaytest.World, u *windowed)) {
	t.Helper()
	t.Parallel()
	u := &windowed{bytes: map[string]int{"down": -1, "small": 128_000, "large": 800_000, "blind": 128_000, "unknown": 64_000}, asked: map[string]int{}}
	synctest.Test(t, func(t *testing.T) {
		f(t, gatewaytest.Start(t, gatewaytest.Setup{Config: windows, Handlers: map[string]http.Handler{"p": u}}), u)
	})
}

func long(ctx context.Context, w *gatewaytest.World, model string, bytes int) gatewaytest.Answer {
	return w.Post(ctx, "/v1/chat/completions", fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":%q}]}`, model, strings.Repeat("word ", bytes/5)))
}

// TestTooSmallModelsAreSkipped: a prompt of 150,000 tokens goes from a primary that is down past the
// model that is too small to the one that is large enough, and the story says why.
func TestTooSmallModelsAreSkipped(t *testing.T) {
	windowedWorld(t, func(t *testing.T, w *gatewaytest.World, u *windowed) {
		a := long(t.Context(), w, "chain", 600_000)
		if a.Status != 200 || a.Header.Get("X-Omniroute-Model") != "large" || u.asked["small"] != 0 {
			t.Fatalf("%+v, asked %v", a, u.asked)
		}
		s := w.Stories()[0].Skipped
		if len(s) != 1 || s[0].Key.Model != "small" || s[0].Layer != resilience.LayerFit || !strings.Contains(s[0].Reason, "window 32000") {
			t.Errorf("the story skips %+v", s)
		}
		if a := long(t.Context(), w, "chain", 2000); a.Header.Get("X-Omniroute-Model") != "small" {
			t.Errorf("a short prompt: %+v", a)
		}
	})
}

// TestNothingIsRefusedByAnEstimate: when nothing fits, the nearest is asked, and its own refusal is
// what the client sees.
func TestNothingIsRefusedByAnEstimate(t *testing.T) {
	windowedWorld(t, func(t *testing.T, w *gatewaytest.World, u *windowed) {
		a := long(t.Context(), w, "p/small", 600_000)
		if a.Status != 400 || a.Error != "context_length_exceeded" || u.asked["small"] != 1 {
			t.Errorf("%+v, asked %v", a, u.asked)
		}
	})
}

// TestAbilities: images, tools, a schema and long answers go past a model without them.
func TestAbilities(t *testing.T) {
	windowedWorld(t, func(t *testing.T, w *gatewaytest.World, _ *windowed) {
		for more, want := range map[string]string{
			``: "blind",
			`,"tools":[{"type":"function","function":{"name":"f"}}]`:               "large",
			`,"response_format":{"type":"json_schema","json_schema":{"name":"x"}}`: "large",
			`,"max_tokens":1001`: "large",
			`,"max_tokens":1000`: "blind",
			`,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"x"}}]}]`: "large",
			`,"messages":[{"role":"user","content":"say {\"type\": \"image_url\"}, \"tools\": []"}]`: "blind",
		} {
			a := w.Post(t.Context(), "/v1/chat/completions", `{"model":"sight"`+more+`}`)
			if got := a.Header.Get("X-Omniroute-Model"); a.Status != 200 || got != want {
				t.Errorf("%s: served by %q, want %q: %+v", more, got, want, a)
			}
		}
	})
}

// TestARefusalForLengthIsLearned: what a model has refused once it is not asked again.
func TestARefusalForLengthIsLearned(t *testing.T) {
	windowedWorld(t, func(t *testing.T, w *gatewaytest.World, u *windowed) {
		for range 3 {
			if a := long(t.Context(), w, "learns", 200_000); a.Status != 200 || a.Header.Get("X-Omniroute-Model") != "large" {
				t.Fatalf("%+v", a)
			}
		}
		if u.asked["unknown"] != 1 {
			t.Errorf("the model that refused was asked %d times", u.asked["unknown"])
		}
		if a := long(t.Context(), w, "learns", 40_000); a.Header.Get("X-Omniroute-Model") != "unknown" {
			t.Errorf("a shorter prompt: %+v", a)
		}
	})
}
