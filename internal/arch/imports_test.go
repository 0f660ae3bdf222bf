package arch

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// root is the module's folder, seen from this package.
const root = "../.."

// TestImportsPointDown reads the imports of every file that is linked into a program, that is all
// but tests, on every platform: build constraints are not asked.
func TestImportsPointDown(t *testing.T) {
	t.Parallel()
	files, imports := 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			return skipFolder(path, d)
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		files++
		importer := packageOf(path)
		for _, imported := range importsOf(t, path) {
			imports++
			name, ours := strings.CutPrefix(imported, module+"/")
			for _, complaint := range broken(importer, name, ours) {
				t.Errorf("%s: %s", filepath.Base(path), complaint)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files == 0 || imports == 0 {
		t.Fatalf("read %d files with %d imports: the tree is not where this test looks for it", files, imports)
	}
}

// skipFolder leaves out what is no package of this module.
func skipFolder(path string, d fs.DirEntry) error {
	if path == root {
		return nil
	}
	name := d.Name()
	if name[0] == '.' || name[0] == '_' || name == "testdata" || name == "bin" || name == "node_modules" {
		return fs.SkipDir
	}
	if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil {
		return fs.SkipDir
	}
	return nil
}

func packageOf(path string) string {
	rel, _ := filepath.Rel(root, filepath.Dir(path))
	return filepath.ToSlash(rel)
}

func importsOf(t *testing.T, path string) []string {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
	if err != nil {
		t.Errorf("cannot read imports: %v", err)
		return nil
	}
	out := make([]string, 0, len(f.Imports))
	for _, spec := range f.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Errorf("%s: import %s: %v", path, spec.Path.Value, err)
			continue
		}
		out = append(out, imported)
	}
	return out
}

func TestRules(t *testing.T) {
	t.Parallel()
	const ours, others = true, false
	for _, c := range []struct {
		importer, imported string
		ours               bool
		complaints         int
	}{
		{"resilience", "sync/atomic", others, 0},
		{"resilience", "golang.org/x/sync/errgroup", others, 1},
		{"resilience", "C", others, 1},
		{"resilience", "classify", ours, 2}, // not of its list, and upwards
		{"classify", "resilience", ours, 0},
		{"classify", "github.com/tidwall/gjson", others, 0},
		{"classify", "failover", ours, 2},
		{"classify", "internal/catalog", ours, 2},
		{"failover", "classify", ours, 0},
		{"failover", "store/memory", ours, 1},
		{"store/sqlite", "resilience", ours, 0},
		{"store/storetest", "store/memory", ours, 0},
		{"store/sqlite", "internal/config", ours, 2},
		{"internal/dialect/anthropic", "internal/dialect", ours, 0},
		{"internal/dialect/openai", "internal/sse", ours, 0},
		{"internal/sse", "internal/dialect", ours, 1},
		{"internal/sse", "resilience", ours, 0},
		{"internal/config", "internal/catalog", ours, 0},
		{"internal/catalog", "internal/config", ours, 1},
		{"internal/route", "internal/relay", ours, 1},
		{"internal/relay", "internal/route", ours, 0},
		{"internal/gateway", "internal/relay", ours, 0},
		{"internal/gateway", "internal/admin", ours, 1},
		{"transport", "internal/gateway", ours, 0},
		{"transport", "internal/server", ours, 1},
		{"failover", "transport", ours, 2},
		{"internal/admin", "internal/gateway", ours, 1},
		{"internal/relay", "internal/lab", ours, 2},
		{"internal/gateway", "cmd/omniroute", ours, 1},
		{"cmd/omniroute", "internal/lab", ours, 0},
		{"cmd/omniroute", "internal/gateway", ours, 0},
		{"internal/lab/simulate", "internal/lab", ours, 0},
		{"internal/lab", "internal/relay", ours, 0},
	} {
		if got := broken(c.importer, c.imported, c.ours); len(got) != c.complaints {
			t.Errorf("%s imports %s: %d complaints %q, want %d", c.importer, c.imported, len(got), got, c.complaints)
		}
	}
}
