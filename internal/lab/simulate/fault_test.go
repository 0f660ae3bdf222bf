package simulate

import (
	"testing"
	"time"

	"omniroute/internal/catalog"
	"omniroute/internal/config"
	"omniroute/internal/route"
)

// However a 429 says when to come back, it says the same on every day and at every time of the run.
func TestHintsOfFaults(t *testing.T) {
	t.Parallel()
	f, err := Parse("test.yaml", []byte("config: |"+two+"length: 1m\ntraffic: [{model: chat, rate: 1}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err := route.Classifier(f.cfg)
	if err != nil {
		t.Fatal(err)
	}
	known := &faults{rules: rules, known: map[faultKey]*effect{}}
	up := &route.Upstream{Provider: &config.Provider{ID: "primary"}, Dialect: catalog.OpenAI, Model: "m"}
	for _, name := range []string{"429:7s", "429-date:7s", "429-ms:7s", "429-resets:7s", "429-reset:7s", "429-prose:7s", "429-retryinfo:7s", "503:7s"} {
		e := known.of(name, up, true)
		if v := e.failure; v == nil || v.RetryAfter != 7*time.Second || !v.Until.IsZero() {
			t.Errorf("%s: %+v, want a wait of 7s", name, v)
		}
	}
}
