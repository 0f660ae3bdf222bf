package sdk

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"omniroute/e2e/harness"
	"omniroute/e2e/upstream"
)

// overloaded is a Messages stream that fails before its first word, as Anthropic's do in an outage.
const overloaded = `event: message_start
data: {"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":12,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: error
data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}

`

// TestFailoverAcrossVendors sends a Messages client to a combo whose first target is an overloaded
// Anthropic and whose second speaks Chat Completions. The client reads one valid stream, with the
// second one's parallel calls, and the second one gets its calls back with their results.
func TestFailoverAcrossVendors(t *testing.T) {
	t.Parallel()
	for _, a := range agents {
		if a.dialect != "anthropic" {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			binary := harness.Binary(t)
			var asked atomic.Int32
			first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				asked.Add(1)
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, overloaded)
			}))
			t.Cleanup(first.Close)
			second := upstream.NewVendor(t, "openai", vendorKey)
			g := harness.Start(t, harness.Options{Binary: binary, Config: fmt.Sprintf(`
client_keys: [%q]
store: "memory:"
providers:
  first: {dialect: anthropic, base_url: "%s/v1", models: [m], connections: [{id: a, api_key: k}]}
  second: {dialect: openai, base_url: %q, models: [m-parallel], connections: [{id: a, api_key: %s}]}
combos:
  agent: {strategy: priority, targets: [first/m, second/m-parallel]}
`, clientKey, first.URL, second.URL, vendorKey)})

			j := job{Model: "agent", Scene: "parallel", Stream: true}
			outcomes := a.run(t, g.URL, []job{j})
			if wrong := a.check(j, outcomes[0]); wrong != "" {
				t.Error(wrong)
			}
			if asked.Load() == 0 {
				t.Error("the first target was never asked")
			}
		})
	}
}
