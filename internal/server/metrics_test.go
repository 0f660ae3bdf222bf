package server

import (
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestMetricsAreServed: without a token, with what the gateway has done, and under the names of
// the configuration in force.
func TestMetricsAreServed(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "omniroute.yaml")
	write := func(provider string) {
		t.Helper()
		text := "listen: 127.0.0.1:0\nstore: \"memory:\"\nadmin_token: secret\nproviders:\n  " + provider +
			":\n    dialect: openai\n    base_url: http://127.0.0.1:1/v1\n    models: [large]\n    connections: [{id: k1, api_key: x}]\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("acme")
	m := New(Options{Source: Find(file), Version: "v1", Logger: slog.New(slog.DiscardHandler)})
	if err := m.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := m.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if status, _ := fetch(t, m.URL()+"/v1/nothing"); status != http.StatusNotFound {
		t.Fatalf("an unknown path gave %d", status)
	}
	status, text := fetch(t, m.URL()+"/metrics")
	if status != http.StatusOK {
		t.Fatalf("/metrics: %d", status)
	}
	for _, want := range []string{
		`omniroute_requests_total{route="(none)",status="404"} 1`,
		`omniroute_provider_available{provider="acme"} 1`,
		`omniroute_persistence_state{state="off"} 1`,
		`omniroute_waiting_requests 0`, `omniroute_panics_total 0`,
		`version="v1"`, "go_goroutines ", "process_cpu_seconds_total ",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics has no %s", want)
		}
	}
	write("beta")
	if err := m.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, text := fetch(t, m.URL()+"/metrics"); strings.Contains(text, "acme") || !strings.Contains(text, `provider="beta"`) {
		t.Error("/metrics shows the providers of the old configuration")
	}
}

func fetch(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	tr := &http.Transport{DisableKeepAlives: true}
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}
