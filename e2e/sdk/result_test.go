// Package sdk talks to the real binary with the official OpenAI clients for Go and JavaScript.
package sdk

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"omniroute/e2e/upstream"
)

// call is one job for a client.
type call struct {
	baseURL, key, model string
	n, concurrency      int
	stream              bool
}

// result is what one call came to. npm/chat.mjs prints the same as JSON.
type result struct {
	I          int    `json:"i"`
	OK         bool   `json:"ok"`
	Text       string `json:"text"`
	Chunks     int    `json:"chunks"`
	Finish     string `json:"finish"`
	Status     int    `json:"status"`
	Code       string `json:"code"`
	Error      string `json:"error"`
	Ms         int64  `json:"ms"`
	Provider   string `json:"provider"`
	Connection string `json:"connection"`
	Attempts   string `json:"attempts"`
}

// client makes n calls, never repeating one by itself, and returns a result for each.
type client struct {
	name string
	run  func(t *testing.T, c call) []result
}

var clients = []client{{"go", runGo}, {"npm", runNPM}}

func kindOfCall(stream bool) string {
	if stream {
		return "stream"
	}
	return "plain"
}

// wantAllGood fails the test for every call that was not answered well and whole.
func wantAllGood(t *testing.T, c call, results []result) {
	t.Helper()
	if len(results) != c.n {
		t.Errorf("%d results of %d calls", len(results), c.n)
	}
	for _, r := range results {
		switch {
		case !r.OK:
			t.Errorf("call %d failed after %d ms: status %d, code %q: %s", r.I, r.Ms, r.Status, r.Code, r.Error)
		case r.Text != upstream.Text || r.Finish != "stop":
			t.Errorf("call %d: answer %q, finish %q", r.I, r.Text, r.Finish)
		case c.stream && r.Chunks != len(strings.Fields(upstream.Text)):
			t.Errorf("call %d: %d chunks with content, want %d", r.I, r.Chunks, len(strings.Fields(upstream.Text)))
		}
	}
}

// summary tells which connections answered, and how long the slowest call took.
func summary(results []result) string {
	by := map[string]int{}
	var slowest time.Duration
	for _, r := range results {
		by[r.Provider+"/"+r.Connection]++
		slowest = max(slowest, time.Duration(r.Ms)*time.Millisecond)
	}
	return fmt.Sprintf("answered by %v, slowest call %v", by, slowest)
}

func slowest(results []result) time.Duration {
	var d time.Duration
	for _, r := range results {
		d = max(d, time.Duration(r.Ms)*time.Millisecond)
	}
	return d
}
