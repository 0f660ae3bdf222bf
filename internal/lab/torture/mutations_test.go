package torture

import (
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

var (
	mutate = flag.String("mutations", "", "break the laws of these mutations in turn (a part of their names, or all)")
	update = flag.Bool("update", false, "with -mutations: write down which seeds catch them")
)

const root = "../../.."

// mutation is a deliberate break of a law: in one file of the product the old text is replaced by the new.
type mutation struct {
	name, law, file, old, new string
}

func mutations(t *testing.T) []mutation {
	t.Helper()
	paths, err := filepath.Glob("testdata/mutations/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	var all []mutation
	for _, p := range paths {
		a, err := txtar.ParseFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Files) != 3 || a.Files[1].Name != "old" || a.Files[2].Name != "new" {
			t.Fatalf("%s: want the law, and then the sections of the file, old and new", p)
		}
		text := func(i int) string { return strings.TrimSuffix(string(a.Files[i].Data), "\n") } // it may be a part of a line
		all = append(all, mutation{strings.TrimSuffix(filepath.Base(p), ".txt"), strings.TrimSpace(string(a.Comment)),
			a.Files[0].Name, text(1), text(2)})
	}
	if len(all) < 25 {
		t.Fatalf("only %d mutations", len(all))
	}
	return all
}

// path is where the mutation is written down.
func (m mutation) path() string { return "testdata/mutations/" + m.name + ".txt" }

// TestMutationsApply: every mutation still fits the source, and a seed is known that catches it.
func TestMutationsApply(t *testing.T) {
	t.Parallel()
	all := mutations(t)
	for name, some := range byFile(all) {
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Errorf("%s: %v", some[0].path(), err)
			continue
		}
		for _, m := range some { // one by one, to name them all
			if _, err := mutated(name, src, []mutation{m}); err != nil {
				t.Errorf("%v; then make mutations MUTATION=%s UPDATE=1", err, m.name)
			}
		}
	}
	catches := readCatches(t)
	for _, m := range all {
		if catches[m.name].seed == 0 {
			t.Errorf("%s: no seed is known that catches it: make mutations MUTATION=%s UPDATE=1", m.path(), m.name)
		}
		delete(catches, m.name)
	}
	for name := range catches {
		t.Errorf("%s has %s, which is no mutation: take the line out", catchesFile, name)
	}
}

// TestMutations breaks one law after the other and wants the short run to notice.
func TestMutations(t *testing.T) {
	if *mutate == "" {
		t.Skip("takes a minute: make mutations")
	}
	catches := readCatches(t)
	var some []mutation
	for _, m := range mutations(t) {
		if *mutate == "all" || strings.Contains(m.name, *mutate) {
			some = append(some, m)
		}
	}
	bin := build(t, some)
	for _, m := range some {
		t.Run(m.name, func(t *testing.T) {
			known := catches[m.name]
			if known.seed > 0 {
				if c := m.caught(t, bin, known.seed-1, 1); c == known {
					t.Logf("seed %d: %s", c.seed, c.law)
					return
				}
			}
			c := m.caught(t, bin, 0, shortRun)
			switch {
			case c.law == "":
				t.Errorf("%d worlds broke no law, although this one was broken on purpose: %s", shortRun, m.law)
			case !*update:
				t.Errorf("seed %d does not catch it by %q any more; seed %d does by %q: make mutations MUTATION=%s UPDATE=1", known.seed, known.law, c.seed, c.law, m.name)
			default:
				t.Logf("seed %d: %s", c.seed, c.law)
				catches[m.name] = c
				writeCatches(t, catches)
			}
		})
	}
}

// catch is the first world that notices a mutation, and the law that it broke there.
type catch struct {
	seed uint64
	law  string
}

// caught plays worlds with a mutated product; the law is "" when all held.
func (m mutation) caught(t *testing.T, bin string, from, count uint64) catch {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), bin, "-test.run", "^TestTorture$", "-brief",
		"-from", strconv.FormatUint(from, 10), "-seeds", strconv.FormatUint(count, 10))
	cmd.Env = append(os.Environ(), choose+"="+m.name)
	out, err := cmd.CombinedOutput()
	if err == nil {
		return catch{}
	}
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(out), "seed ")
	number, law, _ := strings.Cut(rest, " breaks a law: ")
	seed, err := strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		t.Fatalf("the run says:\n%s", out)
	}
	law, _, _ = strings.Cut(law, "\n")
	return catch{seed, law}
}

const catchesFile = "testdata/seeds.txt"

// readCatches returns which seed catches which mutation, and by which law.
func readCatches(t *testing.T) map[string]catch {
	t.Helper()
	catches := map[string]catch{}
	text, err := os.ReadFile(catchesFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(words) != 3 {
			t.Fatalf("%s: %q: want a mutation, a seed and a law", catchesFile, line)
		}
		seed, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			t.Fatalf("%s: %q: %v", catchesFile, line, err)
		}
		catches[words[0]] = catch{seed, words[2]}
	}
	return catches
}

func writeCatches(t *testing.T, catches map[string]catch) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(catches)) {
		fmt.Fprintf(&b, "%s %d %s\n", name, catches[name].seed, catches[name].law)
	}
	if err := os.WriteFile(catchesFile, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
