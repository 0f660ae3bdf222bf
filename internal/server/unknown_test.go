package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"omniroute/internal/admin"
	"omniroute/internal/lab"
)

// An answer that no rule knows is counted and shown with its shape, before and after a reload, and
// never with a key that the upstream repeats in it.
func TestUnknownErrorsAreShown(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	unknown := func() (u admin.UnknownErrors) {
		t.Helper()
		code, text := g.call("GET", "/admin/v1/unknown-errors", "")
		if err := json.Unmarshal([]byte(text), &u); err != nil || code != 200 {
			t.Fatalf("%d %s: %v", code, text, err)
		}
		for _, secret := range []string{key1, key2, clientKey, token, key1[:12]} {
			if strings.Contains(text, secret) {
				t.Errorf("%q is shown: %s", secret, text)
			}
		}
		return u
	}
	if u := unknown(); len(u.Counts) != 0 || u.Samples == nil || len(u.Samples) != 0 {
		t.Errorf("before anything happened: %+v", u)
	}
	p.SetFault(lab.RateLimited(lab.Hint{})) // a rule knows it
	g.chat("acme/large")
	g.call("POST", "/admin/v1/reset", `{"scope": "all"}`)
	strange := func(n int) {
		p.SetFault(lab.Status(418, "application/json", fmt.Sprintf(`{"oops": %d, "was": %q, "pad": %q, "again": %q}`, n, key1, strings.Repeat("word ", 395), key2), http.Header{}))
		g.chat("acme/large")
		g.call("POST", "/admin/v1/reset", `{"scope": "all"}`)
	}
	strange(1)
	u := unknown()
	if len(u.Samples) != 1 {
		t.Fatalf("%+v", u)
	}
	s := u.Samples[0]
	if s.Status != 418 || s.Provider != "acme" || s.Model != "large" || s.Count < 1 || s.At.IsZero() || u.Counts[s.Rule] != uint64(s.Count) ||
		!strings.HasPrefix(s.Rule, "default.") || !strings.Contains(s.Body, "oops") || len(u.Counts) != 1 {
		t.Errorf("%+v", u)
	}
	write(t, g.file, yaml(base, "max_body: 1MiB"))
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	strange(2)
	if u := unknown(); len(u.Samples) != 1 || u.Samples[0].Count <= s.Count {
		t.Errorf("a reload forgets, or stops taking notes: %+v", u)
	}
}
