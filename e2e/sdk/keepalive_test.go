package sdk

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"
	"time"

	"omniroute/e2e/harness"
	"omniroute/e2e/upstream"
)

// TestKeepalive: official clients pass over what a gateway sends to keep them while no answer has
// begun, read the answer that follows, and see the failure of one that never comes.
func TestKeepalive(t *testing.T) {
	t.Parallel()
	const limited = "limited" // refused with a status, which comes too late to be the answer's
	scenes := []string{"text", "tools", limited, "broken"}
	for _, a := range agents {
		t.Run(a.name, func(t *testing.T) {
			t.Parallel()
			base := newSlowGateway(t, a.dialect, scenes)
			var jobs []job
			for _, scene := range scenes {
				jobs = append(jobs, job{Model: modelName(a.dialect, scene), Scene: scene, Stream: true})
			}
			for i, got := range a.run(t, base, jobs) {
				j := jobs[i]
				wrong := a.check(j, got)
				if j.Scene == limited {
					if wrong = ""; got.Error == "" || got.Text != "" || !strings.Contains(got.Error, "rate limited") {
						wrong = fmt.Sprintf("error %q, text %q: want what failed", got.Error, got.Text)
					}
				}
				if wrong != "" {
					t.Errorf("%s: %s", j.Scene, wrong)
				}
			}
		})
	}
}

// newSlowGateway runs a gateway before a vendor that takes longer to answer than the client is
// left without a sign of life.
func newSlowGateway(t *testing.T, dialect string, scenes []string) string {
	t.Helper()
	v := upstream.NewVendor(t, dialect, vendorKey)
	to, err := url.Parse(v.Root)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(1300 * time.Millisecond)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(slow.Close)
	var config strings.Builder
	fmt.Fprintf(&config, "client_keys: [%q]\nstore: \"memory:\"\nproviders:\n", clientKey)
	for _, scene := range scenes {
		fmt.Fprintf(&config, "  %s: {dialect: %s, base_url: %q, connections: [{id: a, api_key: %s}]}\n",
			scene, dialect, slow.URL+strings.TrimPrefix(v.URL, v.Root), vendorKey)
	}
	config.WriteString("combos:\n")
	for _, scene := range scenes {
		name := modelName(dialect, scene)
		fmt.Fprintf(&config, "  %s: {targets: [%s/%s], keepalive: 1s, patience: 0s, max_wait: 0s}\n", name, scene, name)
	}
	return harness.Start(t, harness.Options{Binary: harness.Binary(t), Config: config.String()}).URL
}
