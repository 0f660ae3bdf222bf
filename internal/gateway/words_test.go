package gateway_test

import (
	"strings"
	"testing"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/resilience"
)

// TestOperatorsExclusionInAnError: what an operator took out has not failed, so no kind is named for
// it; and one attempt is one attempt.
func TestOperatorsExclusionInAnError(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		if err := w.Engine.Exclude(resilience.Key{Provider: "p"}, time.Hour, "moving"); err != nil {
			t.Fatal(err)
		}
		w.Providers["q"].SetFault(lab.Unauthorized())
		a := w.Chat(t.Context(), "c", false)
		if a.Status != 503 || strings.Count(a.Body, `"layer":"operator","kind":null`) != 2 || !strings.Contains(a.Body, "1 attempt failed, 2 targets are out.") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		if err := w.Engine.Exclude(resilience.Key{Provider: "q"}, time.Hour, "moving"); err != nil {
			t.Fatal(err)
		}
		if a := w.Chat(t.Context(), "q/m", false); a.Status != 503 || !strings.Contains(a.Body, "0 attempts failed, 1 target is out.") {
			t.Errorf("%d %s", a.Status, a.Body)
		}
	})
}
