package admin

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
)

// shelf is a store that keeps audits, or fails.
type shelf struct {
	mu   sync.Mutex
	kept []resilience.Audit
	down bool
}

func (s *shelf) Record(_ context.Context, a resilience.Audit) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return errors.New("away")
	}
	s.kept = append(s.kept, a)
	return nil
}

func (s *shelf) Audits(_ context.Context, limit int) ([]resilience.Audit, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down {
		return nil, errors.New("away")
	}
	all := slices.Clone(s.kept)
	slices.Reverse(all)
	return all[:min(limit, len(all))], nil
}

func (s *shelf) fail(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
}

func actions(all []resilience.Audit) string {
	var names []string
	for _, a := range all {
		names = append(names, a.Action)
	}
	return strings.Join(names, " ")
}

// TestTrailOutlivesItsStore: what was done while the store was away is shown, and saved once it is back, in order and once.
func TestTrailOutlivesItsStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &shelf{}
		tr := newTrail(s, slog.New(slog.DiscardHandler))
		do := func(action string) {
			tr.add(resilience.Audit{Action: action})
			synctest.Wait()
		}
		want := func(limit int, names string, partial bool) {
			t.Helper()
			if got, p := tr.list(t.Context(), limit); actions(got) != names || p != partial {
				t.Errorf("the trail is %q, partial %v; want %q, %v", actions(got), p, names, partial)
			}
		}
		do("a")
		s.fail(true)
		do("b")
		do("c")
		want(10, "c b a", true)
		want(2, "c b", true)
		s.fail(false)
		want(10, "c b a", false)
		time.Sleep(2 * retryAudit)
		synctest.Wait()
		if got := actions(s.kept); got != "a b c" {
			t.Errorf("saved %q", got)
		}
		want(10, "c b a", false)
		s.fail(true)
		do("d")
		s.fail(false)
		tr.close()
		if got := actions(s.kept); got != "a b c d" {
			t.Errorf("saved %q at the end", got)
		}
		tr.close()
	})
}

// TestEveryChangeIsNoted with who, from where and what; reading is not, and what is refused is not either.
func TestEveryChangeIsNoted(t *testing.T) {
	t.Parallel()
	b := newBench(t, "admin_token: "+token+world, nil)
	do := func(h http.Handler, method, path, body string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, path, strings.NewReader(body))
		r.Header.Set("Authorization", "Bearer "+token)
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, c := range [][3]string{
		{"POST", "/admin/v1/exclude", `{"provider": "acme", "connection": "main", "for": "10m", "reason": "maintenance"}`},
		{"POST", "/admin/v1/exclude", `{"provider": "acme", "connection": "spare", "kind": "rate_limit"}`},
		{"DELETE", "/admin/v1/exclude", `{"provider": "acme", "connection": "main"}`},
		{"DELETE", "/admin/v1/exclude", `{"provider": "acme", "connection": "main"}`}, // refused: there is none
		{"GET", "/admin/v1/status", ""},
		{"POST", "/admin/v1/explain", `{"model": "coding"}`},
		{"POST", "/admin/v1/reset", `{"scope": "nothing"}`}, // refused
	} {
		do(b.Admin, c[0], c[1], c[2])
	}
	do(b.Open(), "POST", "/admin/v1/reset", `{"scope": "provider", "provider": "acme"}`)
	w := do(b.Admin, "GET", "/admin/v1/audit", "")
	var got Audits
	if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || got.Partial {
		t.Fatalf("%v %s", err, w.Body)
	}
	var lines []string
	for _, a := range got.Audits {
		lines = append(lines, strings.Join([]string{a.Actor, a.Peer, a.Action, a.Key.String(), a.Detail}, "|"))
	}
	want := []string{
		"dashboard|192.0.2.1:1234|reset|acme|provider: 0 breakers, 1 connections, 0 lockouts",
		"token|192.0.2.1:1234|end_exclusion|acme/main|",
		"token|192.0.2.1:1234|report_failure|acme/spare|rate_limit",
		"token|192.0.2.1:1234|exclude|acme/main|for 10m: maintenance",
	}
	if !slices.Equal(lines, want) {
		t.Errorf("noted\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
	}
	if w := do(b.Admin, "GET", "/admin/v1/audit?limit=1", ""); strings.Count(w.Body.String(), `"action"`) != 1 {
		t.Errorf("limit 1: %s", w.Body)
	}
	if w := do(b.Admin, "GET", "/admin/v1/audit?limit=0", ""); w.Code != http.StatusBadRequest {
		t.Errorf("limit 0: %d", w.Code)
	}
}
