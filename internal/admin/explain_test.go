package admin

import (
	"strings"
	"testing"

	"omniroute/internal/route"
	"omniroute/resilience"
)

func TestExplain(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	b.fail("acme", "main", "large", limited)
	for range 3 { // reading changes nothing, not even whose turn it is
		x := want[Explanation](b, 200, "POST", "/admin/v1/explain", `{"model": "coding"}`)
		if x.Route != "coding" || len(x.Candidates) != 3 {
			t.Fatalf("%+v", x)
		}
		// The one that is out comes after its sibling.
		first := x.Candidates[1]
		if first.Connection != "main" || first.Eligible || *first.Layer != resilience.LayerConnection || *first.Kind != resilience.KindRateLimit ||
			first.RetryAfterMs < 59_000 || first.RetryAfterMs > 60_000 || first.Until.IsZero() {
			t.Errorf("%+v", first)
		}
		if second := x.Candidates[0]; !second.Eligible || second.Layer != nil || second.Kind != nil || !second.Until.IsZero() || second.Reason == "" {
			t.Errorf("%+v", second)
		}
	}
	if r := want[Explanation](b, 200, "POST", "/admin/v1/explain", `{"model": "coding"}`).Candidates[1].Reason; strings.Contains(r, "only this model") {
		t.Errorf("the whole connection is out: %s", r)
	}
	w := b.ask("POST", "/admin/v1/explain", `{"model": "codign"}`)
	if w.Code != 404 || !strings.Contains(w.Body.String(), `coding`) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestExplainAsFor: an explanation is of a request as it would be: of a session, with a key.
func TestExplainAsFor(t *testing.T) {
	t.Parallel()
	b := newBench(t, world+`client_keys: [{key: some-client-key, name: outsiders, targets: ["beta/*"]}, {key: another-client-key, name: coders, models: [nothing-else]}]
`, nil)
	if x := want[Explanation](b, 200, "POST", "/admin/v1/explain", `{"model": "coding", "client": "outsiders"}`); len(x.Candidates) != 1 || x.Candidates[0].Provider != "beta" {
		t.Errorf("%+v", x)
	}
	if x := want[Explanation](b, 200, "POST", "/admin/v1/explain", `{"model": "coding", "session": "s", "stream": true, "prompt_tokens": 9000, "max_output": 100, "tools": true, "images": true, "schema": true}`); len(x.Candidates) != 3 || x.Session != "new" {
		t.Errorf("%+v", x)
	}
	for body, says := range map[string]string{
		`{"model": "coding", "client": "nobody"}`:          "no client key has the name",
		`{"model": "coding", "client": "coders"}`:          "is not for the client coders",
		`{"model": "coding", "client": "some-client-key"}`: "no client key has the name",
	} {
		if w := b.ask("POST", "/admin/v1/explain", body); w.Code != 404 || !strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", body, w.Code, w.Body)
		}
	}
	if w := b.ask("POST", "/admin/v1/explain", `{"model": "coding", "prompt_tokens": -1}`); w.Code != 400 {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestExplainBody: what a target's dialect cannot express of a request is told, and its size is the request's own.
func TestExplainBody(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	ask := func(body string) []route.Candidate {
		return want[Explanation](b, 200, "POST", "/admin/v1/explain", body).Candidates
	}
	for _, c := range ask(`{"model": "coding", "body": {"model": "coding", "messages": [{"role": "user", "content": "q"}], "n": 2}}`) {
		if !c.Eligible { // the client's own dialect
			t.Errorf("%+v", c)
		}
	}
	for _, c := range ask(`{"model": "coding", "path": "/v1/messages", "body": {"model": "coding", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}]}}`) {
		if !c.Eligible {
			t.Errorf("%+v", c)
		}
	}
	for _, c := range ask(`{"model": "coding", "path": "/v1/messages", "body": {"model": "coding", "max_tokens": 9, "messages": [{"role": "user", "content": "q"}], "container": "c"}}`) {
		if c.Eligible || c.Layer == nil || *c.Layer != resilience.LayerFit || !strings.Contains(c.Reason, "container") || c.Kind != nil {
			t.Errorf("%+v", c)
		}
	}
	for _, c := range ask(`{"model": "coding", "path": "/v1/messages", "body": {"model": "coding", "max_tokens": 9, "messages": [{"role": "nobody", "content": "q"}]}}`) {
		if c.Eligible || !strings.Contains(c.Reason, "messages.0.role") {
			t.Errorf("%+v", c)
		}
	}
	if w := b.ask("POST", "/admin/v1/explain", `{"model": "coding", "body": [1]}`); w.Code != 400 || !strings.Contains(w.Body.String(), "no request to /v1/chat/completions") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// TestExplainOneModel shows that a cooldown of one model alone is not told as the connection's.
func TestExplainOneModel(t *testing.T) {
	t.Parallel()
	b := newBench(t, world, nil)
	for range 2 {
		b.fail("acme", "main", "large", resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
	}
	if c := b.engine.Status().Providers[0].Connections[0]; len(c.Models) != 1 {
		t.Fatalf("%+v", c)
	}
	for _, c := range want[Explanation](b, 200, "POST", "/admin/v1/explain", `{"model": "acme/large"}`).Candidates {
		if c.Connection == "main" && !strings.HasPrefix(c.Reason, "only this model is out: ") {
			t.Errorf("%+v", c)
		}
	}
}
