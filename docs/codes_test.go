package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"omniroute/internal/dialect"
)

// TestErrorCodesAreExplained holds docs/error-codes.md to the codes that the program has: each has
// a heading to link to and a row with its status, and no heading is left of one that is gone.
func TestErrorCodesAreExplained(t *testing.T) {
	t.Parallel()
	codes := codesOf(t)
	if len(codes) < 10 {
		t.Fatalf("found %d codes", len(codes))
	}
	p := pageNamed(t, "docs/error-codes.md")
	text := read(t, "docs/error-codes.md")
	for _, code := range codes {
		if !p.anchors[code] {
			t.Errorf("docs/error-codes.md has no heading %q", code)
		}
		row := regexp.MustCompile(`(?m)^\| \[` + "`" + code + "`" + `\]\(#` + code + `\) \| ([0-9, ]+) \|`).FindStringSubmatch(text)
		if row == nil {
			t.Errorf("the table has no row for %s", code)
		} else if status := strconv.Itoa(dialect.StatusOf(code)); !strings.Contains(row[1], status) {
			t.Errorf("the row of %s says %s, and not %s", code, row[1], status)
		}
	}
	for anchor := range p.anchors {
		if strings.Contains(anchor, "_") && !contains(codes, anchor) {
			t.Errorf("docs/error-codes.md explains %s, which there is not", anchor)
		}
	}
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// codesOf returns the values of the constants Code… of internal/dialect.
func codesOf(t *testing.T) []string {
	t.Helper()
	var codes []string
	ast.Inspect(parse(t, "internal/dialect/report.go"), func(n ast.Node) bool {
		if spec, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(spec.Names[0].Name, "Code") && len(spec.Values) == 1 {
			codes = append(codes, literal(spec.Values[0]))
		}
		return true
	})
	return codes
}

// TestAdminCodesAreExplained does the same for the codes that the admin API refuses with.
func TestAdminCodesAreExplained(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(root, "internal/admin/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "docs/admin-api.md")
	found := 0
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(parse(t, name), func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) < 2 {
				return true
			}
			if f, ok := call.Fun.(*ast.Ident); !ok || f.Name != "refuse" {
				return true
			}
			found++
			if code := literal(call.Args[1]); !strings.Contains(text, "| `"+code+"` |") {
				t.Errorf("docs/admin-api.md has no row for the code %q of %s", code, name)
			}
			return true
		})
	}
	if found == 0 {
		t.Error("no refusal was found, so that none was checked")
	}
}

func parse(t *testing.T, name string) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// literal returns the value of a string literal, "" for anything else.
func literal(e ast.Expr) string {
	lit, ok := e.(*ast.BasicLit)
	if !ok {
		return ""
	}
	s, err := strconv.Unquote(lit.Value)
	if err != nil {
		return ""
	}
	return s
}
