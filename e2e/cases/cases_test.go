package cases

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"omniroute/e2e/harness"
)

const (
	// caseDir is beside the project's folder.
	caseDir = "../../../shared/dialects"
	// runTime bounds the whole run, which takes about a minute.
	runTime = 10 * time.Minute
)

// caseResult is what the runner says about one case.
type caseResult struct {
	ID   string  `json:"id"`
	OK   bool    `json:"ok"`
	Must [][]any `json:"must"`
	Ms   int     `json:"ms"`
}

var listenLine = regexp.MustCompile(`(?m)^listen:.*\n`)

// mockAddr is where the cases' configuration expects their upstream.
const mockAddr = "127.0.0.1:9100"

// TestDialectCases fails for every case that does not hold and is not disputed, and for every
// disputed case that does hold.
func TestDialectCases(t *testing.T) {
	runner, err := filepath.Abs(filepath.Join(caseDir, "run_cases.py"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(runner); errors.Is(err, os.ErrNotExist) {
		t.Skipf("there are no dialect cases in %s", caseDir)
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		if os.Getenv("CI") != "" {
			t.Fatalf("the dialect cases need Python: %v", err)
		}
		t.Skipf("python3 is not installed: %v", err)
	}
	config, err := os.ReadFile(filepath.Join(filepath.Dir(runner), "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	binary := harness.Binary(t)
	upstream := harness.FreeAddr(t)
	_, port, err := net.SplitHostPort(upstream)
	if err != nil {
		t.Fatal(err)
	}
	// The harness has its own address, and other runs on this machine may have the usual one.
	text := strings.ReplaceAll(listenLine.ReplaceAllString(string(config), ""), mockAddr, upstream)
	g := harness.Start(t, harness.Options{Binary: binary, Config: text})

	out := filepath.Join(t.TempDir(), "out.json")
	ctx, cancel := context.WithTimeout(t.Context(), runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, python, "-B", runner, "--gateway", g.URL, "--upstream-port", port,
		"--reset", g.URL+"/admin/v1/reset", "--json", out)
	var printed bytes.Buffer
	cmd.Stdout, cmd.Stderr = &printed, &printed
	// Its status says whether a case failed, which the results say in detail.
	runErr := cmd.Run()
	data, err := os.ReadFile(out)
	if err != nil {
		t.Fatalf("the runner left no results: %v\n%s", errors.Join(err, runErr), printed.String())
	}
	var results []caseResult
	if err := json.Unmarshal(data, &results); err != nil || len(results) == 0 {
		t.Fatalf("the runner's results cannot be read: %v\n%s", err, data)
	}
	judge(t, results)
}

// judge compares the results with the list of disputed cases.
func judge(t testing.TB, results []caseResult) {
	t.Helper()
	held, known := 0, map[string]bool{}
	for _, r := range results {
		known[r.ID] = true
		reason := disputed[r.ID]
		switch {
		case r.OK && reason != "":
			t.Errorf("%s holds now: take it off the list of disputed cases", r.ID)
		case r.OK:
			held++
		case reason != "":
			t.Logf("%s is disputed: %s", r.ID, reason)
		default:
			for _, m := range r.Must {
				t.Errorf("%s: %v", r.ID, m)
			}
		}
	}
	for id := range disputed {
		if !known[id] {
			t.Errorf("%s is disputed, but there is no such case", id)
		}
	}
	t.Logf("%d of %d cases hold", held, len(results))
}

// TestJudge: each kind of surprise fails, and what is expected does not.
func TestJudge(t *testing.T) {
	t.Parallel()
	expected := func() []caseResult {
		all := []caseResult{{ID: "other", OK: true}}
		for id := range disputed {
			all = append(all, caseResult{ID: id, Must: [][]any{{"status eq", 1, 2}}})
		}
		return all
	}
	for _, c := range []struct {
		name   string
		change func([]caseResult) []caseResult
		fails  bool
	}{
		{"as expected", func(r []caseResult) []caseResult { return r }, false},
		{"a case fails", func(r []caseResult) []caseResult {
			r[0] = caseResult{ID: "other", Must: [][]any{{"text eq", "a", "b"}}}
			return r
		}, true},
		{"a disputed case holds", func(r []caseResult) []caseResult { r[1].OK = true; return r }, true},
		{"a disputed case is gone", func(r []caseResult) []caseResult { return r[:len(r)-1] }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := &recorder{TB: t}
			judge(r, c.change(expected()))
			if r.failed != c.fails {
				t.Errorf("failed: %v, want %v", r.failed, c.fails)
			}
		})
	}
}

// recorder notes failures instead of being failed.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Errorf(string, ...any) { r.failed = true }
func (r *recorder) Logf(string, ...any)   {}
