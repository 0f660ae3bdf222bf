package simulate

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "play every example and write its figures into docs/incidents and BENCHMARKS.md")

const (
	docs    = "../../../docs/incidents"
	figured = "<!-- figures: written by make incidents -->\n"
	ends    = "<!-- end of figures -->\n"
)

// outages are the examples, in the order in which they are listed.
func outages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../../examples/*.yaml")
	if err != nil || len(files) != 8 {
		t.Fatalf("%d examples, %v; want eight", len(files), err)
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(filepath.Base(f), ".yaml")
	}
	return files
}

// soon are the examples that are played in a second or two: their pages must be up to date.
var soon = map[string]bool{"flapping": true, "key-revoked": true, "minute-limits": true, "thundering-herd": true}

// TestIncidentPages finds a page with figures for every example, and with -update writes them.
func TestIncidentPages(t *testing.T) {
	t.Parallel()
	var rows strings.Builder
	for _, name := range outages(t) {
		page := filepath.Join(docs, name+".md")
		if !*update {
			if table := between(t, page); strings.Count(table, "\n") < 8 {
				t.Errorf("%s has no figures; write them with make incidents", page)
			} else if soon[name] && !testing.Short() && !raceEnabled {
				if fresh := figuresOf(both(t, name)); fresh != table {
					t.Errorf("%s is not up to date; run make incidents:\n%s\nhas become\n%s", page, table, fresh)
				}
			}
			continue
		}
		ours, naive := both(t, name)
		write(t, page, figuresOf(ours, naive))
		for _, p := range ours.Phases {
			if p.Name == "before" {
				continue
			}
			q := phaseNamed(naive, p.Name)
			fmt.Fprintf(&rows, "| %s, %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", ours.Title, p.Name, p.Share(), q.Share(),
				perRequest(p), perRequest(q), inMS(p.Added.P99), inMS(q.Added.P99), inMS(p.First.P99), inMS(q.First.P99))
		}
	}
	for _, page := range []string{filepath.Join(docs, "README.md"), "../../../BENCHMARKS.md"} {
		if *update {
			write(t, page, "| incident | answered | naive | attempts a request | naive | time added | naive | first content | naive |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|\n"+rows.String())
		} else if n := strings.Count(between(t, page), "\n"); n < 10 {
			t.Errorf("%s has %d lines of figures; write them with make incidents", page, n)
		}
	}
}

// both plays an example with the gateway and with a proxy that only retries.
func both(t *testing.T, name string) (ours, naive *Report) {
	t.Helper()
	f, err := Load("../../../examples/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	if ours, err = f.Run(); err != nil {
		t.Fatal(err)
	}
	f.Naive = true
	if naive, err = f.Run(); err != nil {
		t.Fatal(err)
	}
	return ours, naive
}

func phaseNamed(r *Report, name string) Phase {
	for _, p := range r.Phases {
		if p.Name == name {
			return p
		}
	}
	return Phase{}
}

func perRequest(p Phase) string { return fmt.Sprintf("%.3f", ratio(p.Attempts, p.Requests)) }

func figuresOf(ours, naive *Report) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s requests | OmniRoute | retries only |\n|---|---:|---:|\n", thousands(ours.Requests))
	for _, x := range figures {
		row := Row{Unit: x.unit}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", x.name, row.show(x.of(ours)), row.show(x.of(naive)))
	}
	for _, tr := range ours.Troubles[:min(len(ours.Troubles), 1)] {
		fmt.Fprintf(&b, "| away from the trouble in | %s | |\n| back after its end in | %s | |\n", tr.Away(), tr.Back())
	}
	return b.String()
}

// between returns the figures of a page.
func between(t *testing.T, page string) string {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(text), figured)
	table, _, closed := strings.Cut(rest, ends)
	if !ok || !closed {
		t.Fatalf("%s has no place for figures", page)
	}
	return table
}

func write(t *testing.T, page, table string) {
	t.Helper()
	old := between(t, page)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(page, []byte(strings.Replace(string(text), figured+old+ends, figured+table+ends, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A proxy that only retries wastes in an outage what the gateway does not.
func TestNaive(t *testing.T) {
	t.Parallel()
	f, err := Parse("test.yaml", []byte("config: |"+two+outage))
	if err != nil {
		t.Fatal(err)
	}
	f.Naive = true
	r, err := f.Run()
	if err != nil {
		t.Fatal(err)
	}
	during := phaseNamed(r, "during")
	if r.Perfect != 1 || during.Wasted < 2*during.Requests*9/10 || during.Wasted > 2*during.Requests*11/10 {
		t.Errorf("%v answered; %d attempts wasted on %d requests, want two on each", r.Perfect, during.Wasted, during.Requests)
	}
	if a, b := r.target("primary/a/m").Attempts, r.target("primary/b/m").Attempts; a < b*8/10 || b < a*8/10 {
		t.Errorf("the accounts got %d and %d attempts, want them in turn", a, b)
	}
}
