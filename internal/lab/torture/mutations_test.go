package torture

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/parser"
	"go/token"
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
		all = append(all, mutation{strings.TrimSuffix(filepath.Base(p), ".txt"), strings.TrimSpace(string(a.Comment)),
			a.Files[0].Name, string(a.Files[1].Data), string(a.Files[2].Data)})
	}
	if len(all) < 25 {
		t.Fatalf("only %d mutations", len(all))
	}
	return all
}

// source returns the mutated file.
func (m mutation) source() ([]byte, error) {
	src, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return nil, err
	}
	if n := bytes.Count(src, []byte(m.old)); n != 1 {
		return nil, fmt.Errorf("the old text occurs %d times in %s, want once: bring testdata/mutations/%s.txt up to date", n, m.file, m.name)
	}
	src = bytes.Replace(src, []byte(m.old), []byte(m.new), 1)
	_, err = parser.ParseFile(token.NewFileSet(), m.file, src, parser.SkipObjectResolution)
	return src, err
}

// TestMutationsApply: every mutation still fits the source, and a seed is known that catches it.
func TestMutationsApply(t *testing.T) {
	t.Parallel()
	seeds := readSeeds(t)
	for _, m := range mutations(t) {
		if _, err := m.source(); err != nil {
			t.Errorf("%s: %v", m.name, err)
		}
		if seeds[m.name] == 0 {
			t.Errorf("%s: no seed is known that catches it; run make mutations", m.name)
		}
		delete(seeds, m.name)
	}
	for name := range seeds {
		t.Errorf("testdata/seeds.txt has %s, which is no mutation", name)
	}
}

// TestMutations breaks one law after the other and wants the short run to notice.
func TestMutations(t *testing.T) {
	if *mutate == "" {
		t.Skip("takes minutes: make mutations")
	}
	seeds := readSeeds(t)
	for _, m := range mutations(t) {
		if *mutate != "all" && !strings.Contains(m.name, *mutate) {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			bin := m.build(t)
			if seed := seeds[m.name]; seed > 0 {
				if law, _ := caught(t, bin, seed-1, 1); law != "" {
					t.Logf("seed %d: %s", seed, law)
					return
				}
			}
			law, seed := caught(t, bin, 0, shortRun)
			switch {
			case law == "":
				t.Errorf("%d worlds broke no law, although this one was broken on purpose: %s", shortRun, m.law)
			case !*update:
				t.Errorf("seed %d does not catch it any more; seed %d does (%s): run make mutations UPDATE=1", seeds[m.name], seed, law)
			default:
				t.Logf("seed %d: %s", seed, law)
				seeds[m.name] = seed
				writeSeeds(t, seeds)
			}
		})
	}
}

// build compiles this package's tests with the mutated file in place of the product's own.
func (m mutation) build(t *testing.T) (bin string) {
	t.Helper()
	src, err := m.source()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	mutated, overlay, bin := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "torture.test")
	original, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(map[string]map[string]string{"Replace": {original: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{mutated: src, overlay: list} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-c", "-overlay", overlay, "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("%s does not build: %v\n%s", m.name, err, out)
	}
	return bin
}

// caught plays worlds with a mutated product and returns the law that broke, "" when all held.
func caught(t *testing.T, bin string, from, count uint64) (law string, seed uint64) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), bin, "-test.run", "^TestTorture$", "-brief",
		"-from", strconv.FormatUint(from, 10), "-seeds", strconv.FormatUint(count, 10)).CombinedOutput()
	if err == nil {
		return "", 0
	}
	if exit := new(exec.ExitError); !errors.As(err, &exit) {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(out), "seed ")
	number, law, _ := strings.Cut(rest, " breaks a law: ")
	seed, err = strconv.ParseUint(number, 10, 64)
	if !ok || err != nil {
		t.Fatalf("the run says:\n%s", out)
	}
	law, _, _ = strings.Cut(law, "\n")
	return law, seed
}

const seedsFile = "testdata/seeds.txt"

// readSeeds returns which seed catches which mutation.
func readSeeds(t *testing.T) map[string]uint64 {
	t.Helper()
	seeds := map[string]uint64{}
	text, err := os.ReadFile(seedsFile)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var name string
		var seed uint64
		if _, err := fmt.Sscan(line, &name, &seed); err != nil {
			t.Fatalf("%s: %q: %v", seedsFile, line, err)
		}
		seeds[name] = seed
	}
	return seeds
}

func writeSeeds(t *testing.T, seeds map[string]uint64) {
	t.Helper()
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(seeds)) {
		fmt.Fprintf(&b, "%s %d\n", name, seeds[name])
	}
	if err := os.WriteFile(seedsFile, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
}
