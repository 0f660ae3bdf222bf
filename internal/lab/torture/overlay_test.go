package torture

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// All mutations are built into one program, since to compile one takes longer than to play its worlds.
// The function that a mutation changes stands there twice, as it is and changed, and begins by asking
// whether the mutation was chosen, by a variable of the environment.

const (
	choose  = "TORTURE_MUTATION"
	chosen  = "mutated_" // the variable of every package that holds it
	chooser = "mutated_torture.go"
)

// edit puts text in place of a part of a file.
type edit struct {
	from, to int
	text     string
}

// locate finds the one place of the mutation in its file, and the function around it.
func (m mutation) locate(src []byte, file *ast.File) (*ast.FuncDecl, int, error) {
	if n := bytes.Count(src, []byte(m.old)); n != 1 {
		return nil, 0, fmt.Errorf("its old text occurs %d times in %s, want once: the source has changed since, so write the section old anew", n, m.file)
	}
	at := bytes.Index(src, []byte(m.old))
	base := int(file.FileStart)
	for _, d := range file.Decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Body != nil && int(f.Body.Lbrace)-base < at && at+len(m.old) <= int(f.End())-base {
			return f, at, nil
		}
	}
	return nil, 0, fmt.Errorf("its old text is not inside a function's body in %s", m.file)
}

// mutant is the function with the mutation in it, under a name of its own.
func (m mutation) mutant(src []byte, file *ast.File, f *ast.FuncDecl, at int) (text, name string) {
	base := int(file.FileStart)
	name = f.Name.Name + "_" + strings.ReplaceAll(m.name, "-", "_")
	begin, id, end := int(f.Pos())-base, int(f.Name.Pos())-base, int(f.End())-base
	var b strings.Builder
	b.Write(src[begin:id])
	b.WriteString(name)
	b.Write(src[id+len(f.Name.Name) : at])
	b.WriteString(m.new)
	b.Write(src[at+len(m.old) : end])
	return b.String(), name
}

// call is how a function hands over to its mutant.
func call(f *ast.FuncDecl, name string) (string, error) {
	var args []string
	for _, p := range f.Type.Params.List {
		if len(p.Names) == 0 {
			return "", fmt.Errorf("a parameter of %s has no name", f.Name.Name)
		}
		for _, n := range p.Names {
			if n.Name == "_" {
				return "", fmt.Errorf("a parameter of %s has no name", f.Name.Name)
			}
			arg := n.Name
			if _, rest := p.Type.(*ast.Ellipsis); rest {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	c := name + "(" + strings.Join(args, ", ") + ")"
	if f.Recv != nil {
		if len(f.Recv.List[0].Names) == 0 {
			return "", fmt.Errorf("the receiver of %s has no name", f.Name.Name)
		}
		c = f.Recv.List[0].Names[0].Name + "." + c
	}
	if f.Type.Results == nil {
		return c + "; return", nil
	}
	return "return " + c, nil
}

// mutated returns a file with the mutants of all mutations of it.
func mutated(name string, src []byte, all []mutation) ([]byte, error) {
	file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.SkipObjectResolution|parser.ParseComments)
	if err != nil {
		return nil, err
	}
	var edits []edit
	var more strings.Builder
	for _, m := range all {
		f, at, err := m.locate(src, file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.path(), err)
		}
		text, mutant := m.mutant(src, file, f, at)
		call, err := call(f, mutant)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.path(), err)
		}
		into := int(f.Body.Lbrace) - int(file.FileStart) + 1
		edits = append(edits, edit{into, into, fmt.Sprintf(" if %s == %q { %s };", chosen, m.name, call)})
		fmt.Fprintf(&more, "\n//line %s:1\n%s\n", m.path(), text) // so that the compiler names it
	}
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out bytes.Buffer
	from := 0
	for _, e := range edits {
		out.Write(src[from:e.from])
		out.WriteString(e.text)
		from = e.to
	}
	out.Write(src[from:])
	out.WriteString(more.String())
	_, err = parser.ParseFile(token.NewFileSet(), name, out.Bytes(), parser.SkipObjectResolution)
	return out.Bytes(), err
}

// byFile groups mutations by the file that they change.
func byFile(all []mutation) map[string][]mutation {
	files := map[string][]mutation{}
	for _, m := range all {
		files[m.file] = append(files[m.file], m)
	}
	return files
}

// build compiles this package's tests with every mutation in them.
func build(t *testing.T, all []mutation) (bin string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	put := func(original string, text []byte) {
		where, err := filepath.Abs(filepath.Join(root, original))
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, strings.ReplaceAll(original, "/", "_"))
		if err := os.WriteFile(to, text, 0o600); err != nil {
			t.Fatal(err)
		}
		replace[where] = to
	}
	files := byFile(all)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		src, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		text, err := mutated(name, src, files[name])
		if err != nil {
			t.Fatal(err)
		}
		put(name, text)
		file, err := parser.ParseFile(token.NewFileSet(), name, src, parser.PackageClauseOnly)
		if err != nil {
			t.Fatal(err)
		}
		put(path.Join(path.Dir(name), chooser), fmt.Appendf(nil, "package %s\n\nimport \"os\"\n\nvar %s = os.Getenv(%q)\n", file.Name.Name, chosen, choose))
	}
	list, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	overlay, bin := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "torture.test")
	if err := os.WriteFile(overlay, list, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-c", "-ldflags", "-s -w", "-overlay", overlay, "-o", bin, ".").CombinedOutput()
	if err != nil {
		t.Fatalf("the mutations do not build, so write those that are named anew: %v\n%s", err, out)
	}
	return bin
}
