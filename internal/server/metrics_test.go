package server

import (
	"context"
	"io"
	"log/slog"
	"net"
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
	m := New(Options{Source: Find(file), Version: "v1", Logger: slog.New(slog.DiscardHandler), times: patient})
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

// TestMetricsApart gives /metrics an address of its own: it is there without a token and alone, not
// where clients are any more, and it can be read until the last request has ended.
func TestMetricsApart(t *testing.T) {
	t.Parallel()
	base, end := held(t)
	g := start(t, t.TempDir(), "metrics_listen: 127.0.0.1:0\n"+yaml(base, ""))
	s := g.open("chat")
	at := g.MetricsURL()
	if at == g.URL() {
		t.Fatal("it is where clients connect")
	}
	if status, text := fetch(t, at+"/metrics"); status != http.StatusOK || !strings.Contains(text, "omniroute_build_info") {
		t.Errorf("its own address: %d %s", status, text)
	}
	if status, text := fetch(t, g.URL()+"/metrics"); status != http.StatusNotFound || !strings.Contains(text, "metrics_listen") {
		t.Errorf("the clients' address: %d %s", status, text)
	}
	for _, path := range []string{"/", "/healthz", "/readyz", "/v1/models", "/admin/v1/status", "/dashboard", "/metrics/x"} {
		if status, _ := fetch(t, at+path); status != http.StatusNotFound {
			t.Errorf("%s is answered there too: %d", path, status)
		}
	}
	if status, _ := g.call("GET", "/readyz", ""); status != http.StatusOK {
		t.Errorf("readyz on the clients' address: %d", status)
	}
	write(t, g.file, yaml(base, ""))
	g.log.wait(t, "after a restart only\" key=metrics_listen", 1)
	if status, _ := fetch(t, at+"/metrics"); status != http.StatusOK {
		t.Errorf("after the reload: %d", status)
	}

	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop(context.Background()) }()
	g.log.wait(t, "waiting for requests to finish", 1)
	if status, _ := fetch(t, at+"/metrics"); status != http.StatusOK {
		t.Errorf("while it drains: %d", status)
	}
	end()
	if whole, err := s.rest(); !whole || err != nil {
		t.Errorf("the stream was cut: %v %v", whole, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if c, err := net.Dial("tcp", strings.TrimPrefix(at, "http://")); err == nil {
		c.Close()
		t.Error("it still listens")
	}
}

// TestMetricsAddressInUse does not start, says which key is wrong, and leaves nothing behind.
func TestMetricsAddressInUse(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	g := prepare(t, t.TempDir(), "metrics_listen: "+taken.Addr().String()+"\n"+yaml("http://127.0.0.1:1/v1", ""))
	if err := g.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "`metrics_listen`") {
		t.Errorf("%v", err)
	}
	if _, err := net.Dial("tcp", g.Addr().String()); err == nil {
		t.Error("the clients' listener is open")
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
