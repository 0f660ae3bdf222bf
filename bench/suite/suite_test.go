package suite

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"omniroute/bench/load"
	"omniroute/bench/upstream"
	"omniroute/internal/config"
)

// TestConfigurationsAreTaken: the names that the rows ask for exist in what the gateway is given.
func TestConfigurationsAreTaken(t *testing.T) {
	t.Parallel()
	at := upstream.Addresses{Primary: "http://127.0.0.1:1", Fallback: "http://127.0.0.1:2"}
	for text, names := range map[string][]string{
		leanConfig("http://127.0.0.1:3"): {"bench-fast", "bench-paced", "bench-brief", "bench-held", "bench-turn"},
		faultConfig(at):                  {"bench", "healthy"},
	} {
		// Warnings are no matter: breakers that never open are what some rows are about.
		cfg, _, err := config.Parse("omniroute.yaml", []byte(text), func(string) (string, bool) { return "", false })
		if err != nil {
			t.Error(err)
			continue
		}
		for _, name := range names {
			if cfg.Combo(name) == nil {
				t.Errorf("there is no combo %q", name)
			}
		}
	}
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := Report{Machine: Machine{CPU: "Some CPU", Cores: 2, Memory: "24 GiB", Kernel: "linux 6.1", Go: "go1.26", Load: [2]string{"0 0 0", "1 1 1"}}, Rows: []Row{
		{ID: "a", What: "a ratio", Ours: "120 µs", Reference: "100 µs", Value: 1.2, Unit: "x", Bound: 1.25, Raw: []int{1}},
		{ID: "b", What: "too much", Ours: "3 ms", Value: 3.456, Unit: "ms", Bound: 2},
		{ID: "c", What: "shown only", Ours: "5 µs", Value: 9, Unit: "x", Info: true},
		{ID: "d", What: "worthless", Ours: "0", Unit: "calls", Bound: 3, Failed: "a | b"},
	}}
	want := `| what | ours | reference | measured | at most | holds |
|---|---|---|---|---|---|
| a ratio | 120 µs | 100 µs | 1.20x | 1.25x | yes |
| too much | 3 ms | – | 3.46 ms | 2 ms | **no** |
| shown only | 5 µs | – | 9.00x |  |  |
| worthless | 0 | – | 0 calls | 3 calls | no: a / b |
`
	if diff := cmp.Diff(want, r.Table()); diff != "" {
		t.Errorf("table (-want +got):\n%s", diff)
	}
	if r.Holds() {
		t.Error("a report with rows over their bounds holds")
	}
	r.Rows = r.Rows[:1]
	if !r.Holds() {
		t.Error("a report within its bounds does not hold")
	}
	dir := filepath.Join(t.TempDir(), "out")
	if err := r.Write(dir); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "raw-a.json"))
	if err != nil || string(raw) != "[1]" {
		t.Errorf("raw data %q, %v", raw, err)
	}
	var back Report
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err == nil {
		err = json.Unmarshal(text, &back)
	}
	if err != nil || len(back.Rows) != 1 || back.Rows[0].Raw != nil || back.Rows[0].Value != 1.2 {
		t.Errorf("report.json has %+v, %v", back.Rows, err)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		v    float64
		unit string
		want string
	}{{1.234, "x", "1.23x"}, {3, "calls", "3 calls"}, {1.5, "ms", "1.50 ms"}, {48.26, "KiB", "48.3 KiB"}, {238.4, "ms", "238 ms"}, {0, "", "0"}} {
		if got := number(c.v, c.unit); got != c.want {
			t.Errorf("%v %s is printed as %q, want %q", c.v, c.unit, got, c.want)
		}
	}
	if got := micros(25 * time.Millisecond); got != "25 ms" {
		t.Errorf("25ms is printed as %q", got)
	}
}

// TestFaultsAreJudged: a row must not pass because nothing happened, nor by its one number alone.
func TestFaultsAreJudged(t *testing.T) {
	t.Parallel()
	hang := faultCases[2]
	if !hang.recover {
		t.Fatal("the third case is not the one that recovers")
	}
	good := faultResult{Requests: 1200, OnFault: 9, Delayed: 20, Longest: 1200, Healthy: 30, BackAfter: 3000}
	for name, c := range map[string]struct {
		with func(*faultResult)
		want string
	}{
		"good":           {func(*faultResult) {}, ""},
		"no call":        {func(r *faultResult) { r.OnFault = 0 }, "nothing reached"},
		"a long delay":   {func(r *faultResult) { r.Longest = 2500 }, "was delayed"},
		"late back":      {func(r *faultResult) { r.BackAfter = 16000 }, "only after 16 s"},
		"what was wrong": {func(r *faultResult) { r.Wrong, r.Longest = "client errors", 9999 }, "client errors"},
	} {
		r := good
		c.with(&r)
		r.judge(hang)
		if r.Wrong != c.want && (c.want == "" || !strings.Contains(r.Wrong, c.want)) {
			t.Errorf("%s: %q, want %q", name, r.Wrong, c.want)
		}
		if row := hang.row(r); row.Holds() != (c.want == "") {
			t.Errorf("%s: holds %v with %q", name, row.Holds(), row.Failed)
		}
	}
	over := good
	over.Delayed = 41
	if hang.row(over).Holds() {
		t.Error("41 delayed requests hold")
	}
}

func TestFaultsAreSummed(t *testing.T) {
	t.Parallel()
	r := faultResult{Healthy: 30}
	r.sum(&load.Run{Samples: []load.Sample{
		{Status: 200, First: 30 * time.Millisecond}, {Status: 200, First: 279 * time.Millisecond},
		{Status: 200, First: 281 * time.Millisecond}, {Status: 503, Err: "503: out"},
	}})
	if r.Requests != 4 || r.Errors != 1 || r.Delayed != 1 || r.Longest != 281 || !strings.Contains(r.Wrong, "503") {
		t.Errorf("%+v", r)
	}
}

func TestEveryRowHasItsOwnName(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	b := bench{Options: Options{Rows: regexp.MustCompile("^cpu-")}}
	wanted := 0
	for _, r := range rows() {
		for _, id := range r.ids {
			if seen[id] {
				t.Errorf("two rows are called %s", id)
			}
			seen[id] = true
			if b.wanted([]string{id}) {
				wanted++
			}
		}
	}
	if wanted != len(cpuCases) {
		t.Errorf("%d rows begin with cpu-, want %d", wanted, len(cpuCases))
	}
	for _, c := range cpuCases {
		if !seen[c.id] {
			t.Errorf("the case %s is no row", c.id)
		}
	}
	for _, c := range faultCases {
		if !seen[c.id] {
			t.Errorf("the case %s is no row", c.id)
		}
	}
}

func TestMachineNamesNoMachine(t *testing.T) {
	t.Parallel()
	m := machine()
	if m.Cores < 1 || m.CPU == "" || m.Go == "" {
		t.Errorf("%+v", m)
	}
	if host, err := os.Hostname(); err == nil && len(host) > 2 && strings.Contains(m.String(), host) {
		t.Errorf("%s names this machine", m)
	}
}
