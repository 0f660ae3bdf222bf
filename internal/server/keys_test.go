package server

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"omniroute/internal/lab"
	"omniroute/resilience"
)

// TestKeyFromACommand: a connection whose command fails is out, and asks nobody; the first key that the command gives
// takes it back into service, the next one ends a quarantine (law V8), and no key is ever logged.
func TestKeyFromACommand(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, nil)
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "key")
	g := start(t, dir, fmt.Sprintf(`
client_keys: [%q]
admin_token: %q
store: "memory:"
providers:
  acme:
    base_url: %s
    models: [large]
    connections: [{id: main, api_key_command: {run: [cat, key], refresh: 1s}}]
relay: {max_wait: 0s, patience: 0s}
`, clientKey, token, base))
	if code, text := g.chat("large"); code != 503 || p.Total() != 0 {
		t.Fatalf("without a key: %d %s, %d calls", code, text, p.Total())
	}
	if c := g.status().Providers[0].Connections[0]; c.State != resilience.Cooling || *c.Kind != resilience.KindAuth {
		t.Errorf("without a key: %+v", c)
	}
	if err := os.WriteFile(keyFile, []byte(key1+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	g.log.wait(t, "a command has given a new key", 1)
	ready := func(what string) {
		t.Helper()
		for g.status().Providers[0].Connections[0].State != resilience.Ready { // the line comes just before it
			runtime.Gosched()
		}
		if code, text := g.chat("large"); code != 200 {
			t.Errorf("%s: %d %s", what, code, text)
		}
	}
	ready("with a key")
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.KeyRevoked()})
	g.chat("large")
	if c := g.status().Providers[0].Connections[0]; c.State != resilience.Quarantined {
		t.Fatalf("with a revoked key: %+v", c)
	}
	if err := os.WriteFile(keyFile, []byte(`{"api_key": "`+key2+`", "expires_at": "2999-01-01T00:00:00Z"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	g.log.wait(t, "a command has given a new key", 2)
	ready("with another key")
	if n := p.Count("spare", "large"); n == 0 {
		t.Error("the new key is not used")
	}
	if strings.Contains(g.log.String(), "upstream-secret") {
		t.Error("the log shows a key")
	}
}
