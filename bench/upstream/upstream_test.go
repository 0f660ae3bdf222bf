package upstream

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"omniroute/bench/load"
)

// running starts an upstream, as the suite does, for the time of a test.
func running(t *testing.T) Addresses {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, "127.0.0.1", 0, w) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		t.Fatal(err)
	}
	var a Addresses
	if err := json.Unmarshal(line, &a); err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLeanAnswersTheGenerator(t *testing.T) {
	t.Parallel()
	a := running(t)
	c := load.NewClient(a.Lean, "any")
	t.Cleanup(c.Close)
	for _, q := range []struct {
		model  string
		shape  load.Shape
		pieces int
	}{{Fast, load.Chat, 0}, {Fast, load.Stream, Pieces}, {Brief, load.Stream, BriefPieces}, {"unknown", load.Agent, 0}} {
		run := load.Plan{Client: c, Shape: load.Only(q.shape), Model: q.model, Rate: 1000, Count: 3}.Go(t.Context())
		for _, s := range run.Samples {
			if !s.Good() || s.Pieces != q.pieces {
				t.Errorf("%s, %s: %d pieces, error %q; want %d", q.model, q.shape.Name, s.Pieces, s.Err, q.pieces)
			}
		}
	}
	end, err := c.Open(t.Context(), load.Stream.Body(Held))
	if err != nil {
		t.Fatal(err)
	}
	end()
}

// TestTurnsAreTakenByRequest: only the call that follows a failure of the same request counts.
func TestTurnsAreTakenByRequest(t *testing.T) {
	t.Parallel()
	l := NewLean()
	ask := func(id, model string) int {
		r := httptest.NewRequest("POST", "/v1/chat/completions", bytes.NewReader(load.Chat.Body(model)))
		r.Header.Set("X-Request-Id", id)
		w := httptest.NewRecorder()
		l.ServeHTTP(w, r)
		return w.Code
	}
	if code := ask("a", Broken); code != http.StatusInternalServerError {
		t.Errorf("the broken model answers %d", code)
	}
	ask("b", Fast)
	if n := len(l.Turns()); n != 0 {
		t.Errorf("%d turns before the request came again", n)
	}
	ask("a", Broken)
	ask("a", Fast)
	ask("a", Fast)
	if turns := l.Turns(); len(turns) != 1 || turns[0] <= 0 {
		t.Errorf("turns %v, want one", turns)
	}
}

func TestAsked(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		model  string
		stream bool
	}{
		`{"model":"a","stream":true}`:       {"a", true},
		`{"stream": true, "model" : "b"}`:   {"b", true},
		`{"model":"c","stream":false}`:      {"c", false},
		`{"model":"d"}`:                     {"d", false},
		`{"model":`:                         {"", false},
		`{"model":"e`:                       {"", false},
		``:                                  {"", false},
		`{"stream_options":{},"model":"f"}`: {"f", false},
	} {
		if model, stream := asked([]byte(body)); model != want.model || stream != want.stream {
			t.Errorf("%s: %q, %v; want %q, %v", body, model, stream, want.model, want.stream)
		}
	}
}

func TestControlMakesProvidersFail(t *testing.T) {
	t.Parallel()
	a := running(t)
	control := NewControl(a.Control)
	ask := func(key string) (status int) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), "POST", a.Primary+"/v1/chat/completions", bytes.NewReader(load.Chat.Body("large")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+key)
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		return resp.StatusCode
	}
	if err := control.Fault(t.Context(), "primary", "k1", "429:30s"); err != nil {
		t.Fatal(err)
	}
	if one, two := ask(Key1), ask(Key2); one != 429 || two != 200 {
		t.Errorf("key 1 answers %d and key 2 %d, want 429 and 200", one, two)
	}
	if err := control.Fault(t.Context(), "primary", "", ""); err != nil {
		t.Fatal(err)
	}
	if one := ask(Key1); one != 200 {
		t.Errorf("key 1 answers %d after its recovery", one)
	}
	counts, err := control.Counts(t.Context(), "primary")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, c := range counts {
		got[c.Connection+" "+c.Outcome] += c.N
	}
	if got["k1 429"] != 1 || got["k1 ok"] != 1 || got["k2 ok"] != 1 || len(got) != 3 {
		t.Errorf("counted %v", got)
	}
	for _, bad := range []struct{ provider, fault string }{{"nobody", ""}, {"primary", "no-such-fault"}} {
		if err := control.Fault(t.Context(), bad.provider, "", bad.fault); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("a fault %q of %q: %v, want a refusal", bad.fault, bad.provider, err)
		}
	}
}
