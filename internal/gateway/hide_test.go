package gateway_test

import (
	"strings"
	"testing"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// TestNoKeyInWhatAnUpstreamSaid: an upstream that repeats a key, be it another connection's or
// another provider's, does not get it through to the client.
func TestNoKeyInWhatAnUpstreamSaid(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		for _, p := range w.Providers {
			p.SetFault(lab.Refuse(lab.Error{Status: 400, Message: "bad keys: secret-p1, secret-p2, secret-q3", Type: "invalid_request_error"}))
		}
		for _, stream := range []bool{false, true} {
			a := w.Chat(t.Context(), "c", stream)
			if a.Status != 400 || strings.Contains(a.Body, "secret-") || !strings.Contains(a.Body, "[redacted]") {
				t.Errorf("stream %v: %d %s", stream, a.Status, a.Body)
			}
		}
		if strings.Contains(w.Logged(), "secret-") {
			t.Error("the log has a key")
		}
	})
}
