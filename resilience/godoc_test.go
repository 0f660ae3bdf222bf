package resilience

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// Every exported name says what it is.
func TestEveryExportedNameIsDocumented(t *testing.T) {
	t.Parallel()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	p, err := doc.NewFromFiles(fset, files, "omniroute/resilience")
	if err != nil {
		t.Fatal(err)
	}
	if p.Doc == "" {
		t.Error("the package has no comment")
	}
	count := 0
	want := func(name, text string) {
		count++
		if ast.IsExported(name[strings.LastIndex(name, ".")+1:]) && text == "" {
			t.Errorf("%s has no comment", name)
		}
	}
	funcs := func(prefix string, fs []*doc.Func) {
		for _, f := range fs {
			want(prefix+f.Name, f.Doc)
		}
	}
	values := func(vs []*doc.Value) {
		for _, v := range vs {
			for _, n := range v.Names {
				want(n, v.Doc)
			}
		}
	}
	funcs("", p.Funcs)
	values(append(p.Consts, p.Vars...))
	for _, typ := range p.Types {
		want(typ.Name, typ.Doc)
		funcs("", typ.Funcs)
		funcs(typ.Name+".", typ.Methods)
		values(append(typ.Consts, typ.Vars...))
	}
	if count < 100 {
		t.Errorf("only %d names were looked at", count)
	}
}
