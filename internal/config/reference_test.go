package config

import (
	"bytes"
	_ "embed"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"text/template"

	"github.com/google/go-cmp/cmp"

	"omniroute/classify"
	"omniroute/internal/catalog"
)

var update = flag.Bool("update", false, "write what is generated or compared: the reference page and golden files")

//go:embed reference.tmpl
var referenceTemplate string

const referencePage = "../../docs/configuration.md"

// TestReference keeps docs/configuration.md what the table of keys and the catalogue say.
func TestReference(t *testing.T) {
	t.Parallel()
	want := reference(t)
	if *update {
		if err := os.MkdirAll(filepath.Dir(referencePage), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(referencePage, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(referencePage)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the reference page is not what the keys say; run go test ./internal/config -run Reference -update (-want +got):\n%s", diff)
	}
}

type section struct {
	Title, Doc string
	Keys       []keyRow
}

type keyRow struct {
	Key, Takes, Default, Doc string
	Required                 bool
}

func reference(t *testing.T) []byte {
	t.Helper()
	example, err := os.ReadFile("testdata/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	mustParse(t, string(example))
	code := func(s string) string { return "`" + strings.ReplaceAll(s, "|", "\\|") + "`" }
	page := template.Must(template.New("reference").Funcs(template.FuncMap{
		"code":     code,
		"pattern":  func(p catalog.Pattern) string { return string(p) },
		"duration": DurationText,
		"scope":    classify.RateLimitScope,
		"address": func(p *catalog.Provider) string {
			if p.Retired != "" {
				return "retired on " + p.Retired
			}
			if e, _ := p.Endpoint(catalog.OpenAI); e.BaseURL != "" {
				return code(e.BaseURL)
			}
			if e := p.Endpoints[0]; e.BaseURL != "" {
				return code(e.BaseURL)
			}
			return "your own, such as " + code(p.BaseURLExample)
		},
	}).Parse(referenceTemplate))
	var b bytes.Buffer
	if err := page.Execute(&b, map[string]any{
		"Listen": root.field("listen").def, "SchemaFile": SchemaFile, "Example": string(example),
		"Sections": sections(), "Providers": catalog.All(),
	}); err != nil {
		t.Fatal(err)
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

// sections flattens the table of keys: one section for each object, once.
func sections() []section {
	var all []section
	seen := map[*field]bool{}
	var add func(title, doc string, s *spec)
	add = func(title, doc string, s *spec) {
		sec := section{Title: title, Doc: doc}
		type child struct {
			title string
			f     *field
			s     *spec
		}
		var next []child
		for _, f := range s.fields {
			row := keyRow{Key: f.key, Takes: typeName(&f.spec), Doc: f.doc, Required: f.required}
			if f.def != "" {
				row.Default = "`" + f.def + "`"
			}
			sec.Keys = append(sec.Keys, row)
			inner, suffix := object(&f.spec)
			original := s.field(f.key)
			if inner != nil && len(inner.fields) > 0 && !seen[&inner.fields[0]] {
				seen[&inner.fields[0]] = true
				name := title + "." + f.key + suffix
				if s == &root {
					name = f.key + suffix
				}
				next = append(next, child{name, original, inner})
			}
		}
		all = append(all, sec)
		for _, n := range next {
			add("`"+strings.ReplaceAll(n.title, "`", "")+"`", n.f.doc, n.s)
		}
	}
	add("The file", "The keys at the top of the file.", &root)
	return all
}

// object returns the object in a spec, through lists, mappings and second forms.
func object(s *spec) (inner *spec, suffix string) {
	for form := s; form != nil; form = form.alternative {
		switch form.kind {
		case kindObject:
			return form, ""
		case kindList:
			if o, more := object(form.elem); o != nil {
				return o, "[]" + more
			}
		case kindMap:
			if o, more := object(form.elem); o != nil {
				return o, ".NAME" + more
			}
		}
	}
	return nil, ""
}

// typeName says for the reference what a key takes.
func typeName(s *spec) string {
	code := func(words []string) string { return "`" + strings.Join(words, "`, `") + "`" }
	var text string
	switch s.kind {
	case kindEnum:
		text = code(s.enum)
	case kindList:
		text = "list of " + typeName(s.elem)
	case kindMap, kindObject:
		text = "mapping"
	case kindInt, kindNumber:
		text = "number"
	case kindBool:
		text = "`true`, `false`"
	case kindDuration:
		text = "duration"
	case kindSize:
		text = "size"
	case kindShare:
		text = "share"
	case kindStatus:
		text = "status"
	default:
		text = "string"
	}
	if len(s.enum) > 0 && (s.kind == kindInt || s.kind == kindDuration) {
		text += " or " + code(s.enum)
	}
	if s.alternative != nil && s.alternative.kind == kindList && s.alternative.elem.kind == s.kind {
		return text + ", or a list"
	}
	if s.alternative != nil {
		text += ", or " + typeName(s.alternative)
	}
	return text
}
