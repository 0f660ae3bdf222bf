package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAreComparedInConstantTime: no code compares what a secret reveals by ==, by a switch or by a function
// that stops at the first difference; Secret.Matches and ClientKey do that in constant time. (Whether it is empty may
// be asked.)
func TestSecretsAreComparedInConstantTime(t *testing.T) {
	t.Parallel()
	reveals := func(n ast.Node) bool {
		found := false
		ast.Inspect(n, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if sel, ok := call.Fun.(*ast.SelectorExpr); ok && sel.Sel.Name == "Reveal" {
					found = true
				}
			}
			return !found
		})
		return found
	}
	looked := 0
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && d.Name() != ".." || d.Name() == "e2e" || d.Name() == "bin" || d.Name() == "node_modules"):
			if path == "../.." {
				return nil
			}
			return filepath.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			bad := false
			switch n := n.(type) {
			case *ast.BinaryExpr:
				bad = (n.Op == token.EQL || n.Op == token.NEQ) && (reveals(n.X) || reveals(n.Y))
			case *ast.SwitchStmt:
				bad = n.Tag != nil && reveals(n.Tag)
			case *ast.CallExpr:
				sel, ok := n.Fun.(*ast.SelectorExpr)
				if !ok {
					break
				}
				looked++
				switch sel.Sel.Name {
				case "Compare", "EqualFold", "Equal":
					for _, arg := range n.Args {
						bad = bad || reveals(arg)
					}
				}
			}
			if bad {
				t.Errorf("%s: a secret is compared in a time that tells where it differs; use Matches or Equal of config.Secret", set.Position(n.Pos()))
			}
			return true
		})
		return nil
	})
	if err != nil || looked < 1000 {
		t.Errorf("%v; %d calls were looked at", err, looked)
	}
}
