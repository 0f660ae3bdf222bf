package torture

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const table = "LAWS.md"

// ruled is a law of the design by its number.
type ruled struct{ number, text, elsewhere string }

// readLaws returns the laws in their order. What comes after "see" says who checks a law that no world can show.
func readLaws(t *testing.T) (all []ruled) {
	t.Helper()
	text, err := os.ReadFile("testdata/laws.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		number, rest, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			t.Fatalf("testdata/laws.txt: %q: want a number, a colon and a law", line)
		}
		what, elsewhere, _ := strings.Cut(rest, "; see ")
		all = append(all, ruled{number, what, elsewhere})
	}
	return all
}

// breaks splits what a mutation says of itself into the numbers of laws and what it does to them.
func (m mutation) breaks() (numbers []string, what string) {
	list, what, _ := strings.Cut(m.law, ": ")
	return strings.Split(list, ", "), what
}

// TestLawsTable: LAWS.md says of every law which mutations break it and by what they are noticed, and no law is
// left out.
func TestLawsTable(t *testing.T) {
	t.Parallel()
	catches := readCatches(t)
	byLaw := map[string][]mutation{}
	for _, m := range mutations(t) {
		numbers, _ := m.breaks()
		for _, n := range numbers {
			byLaw[n] = append(byLaw[n], m)
		}
	}
	var b strings.Builder
	b.WriteString("# The laws, broken on purpose\n\nWritten by `make mutations UPDATE=1`; a test compares it with `testdata`. Each mutation is a deliberate break of a law in the\n" +
		"product's source, in `testdata/mutations`. The seed is that of the first world of the short run that notices, by the law named\nbeside it.\n\n" +
		"| law | broken by | noticed by | seed |\n|---|---|---|---|\n")
	laws := readLaws(t)
	for _, l := range laws {
		if l.elsewhere == "" && len(byLaw[l.number]) == 0 {
			t.Errorf("no mutation breaks %s (%s)", l.number, l.text)
		}
		for i, m := range byLaw[l.number] {
			name := ""
			if i == 0 {
				name = "**" + l.number + "** " + l.text
			}
			_, what := m.breaks()
			c := catches[m.name]
			fmt.Fprintf(&b, "| %s | `%s`: %s | %s | %d |\n", name, m.name, what, c.law, c.seed)
		}
		delete(byLaw, l.number)
	}
	for n := range byLaw {
		t.Errorf("%s names %s, which is no law of testdata/laws.txt", byLaw[n][0].path(), n)
	}
	b.WriteString("\nWhat no world can show, since worlds have verdicts and no bytes, is checked elsewhere:\n\n| law | checked by |\n|---|---|\n")
	for _, l := range laws {
		if l.elsewhere != "" {
			fmt.Fprintf(&b, "| **%s** %s | %s |\n", l.number, l.text, l.elsewhere)
		}
	}
	if *update {
		if err := os.WriteFile(table, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(table)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != b.String() {
		t.Errorf("%s is out of date: go test ./internal/lab/torture -run TestLawsTable -update", table)
	}
}

var lawNames = []*regexp.Regexp{
	regexp.MustCompile(`broke\("([^"]+)"`),
	regexp.MustCompile(`(?m)^\t\{"([^"]+)", [a-zA-Z]+\},$`),
	regexp.MustCompile(`law :?= "([^"]+)"`),
}

const maskedFile = "testdata/masked.txt"

// TestEveryLawNotices: a check that no mutation has ever set off may be one that cannot fail. Those that have
// not are listed: another law notices first, or nobody has broken them yet.
func TestEveryLawNotices(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	idle := map[string]string{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, re := range lawNames {
			for _, found := range re.FindAllStringSubmatch(string(text), -1) {
				idle[found[1]] = f
			}
		}
	}
	if len(idle) < 60 {
		t.Fatalf("only %d laws are found in the source", len(idle))
	}
	delete(idle, "extra") // a law of the tests of this package
	for _, c := range readCatches(t) {
		delete(idle, c.law)
	}
	if *update {
		text := strings.Join(slices.Sorted(maps.Keys(idle)), "\n") + "\n"
		if err := os.WriteFile(maskedFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(maskedFile)
	if err != nil {
		t.Fatal(err)
	}
	for law := range strings.Lines(string(text)) {
		law = strings.TrimSpace(law)
		if idle[law] == "" {
			t.Errorf("%s lists %q, which a mutation sets off by now, or which is gone: take it out", maskedFile, law)
		}
		delete(idle, law)
	}
	for _, law := range slices.Sorted(maps.Keys(idle)) {
		t.Errorf("%s: no mutation sets off %q: write one", idle[law], law)
	}
}
