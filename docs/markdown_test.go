// Package docs_test holds the documentation to the program: links lead somewhere, examples parse,
// codes and metrics are those that there are, and what is packaged fits together.
package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// root is the module's folder, seen from this one.
const root = ".."

// page is a Markdown file, taken apart.
type page struct {
	name    string // below root
	fences  []fence
	anchors map[string]bool
	links   []link
}

// fence is a block of code.
type fence struct {
	info, text string
	line       int
}

type link struct {
	to   string
	line int
}

// pages reads every Markdown file of the project.
func pages(t *testing.T) []page {
	t.Helper()
	var all []page
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && path != root && (name[0] == '.' || name == "bin" || name == "dist" || name == "node_modules" || name == "testdata") {
			return fs.SkipDir
		}
		if d.Type().IsRegular() && strings.HasSuffix(name, ".md") {
			rel, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			all = append(all, readPage(rel, read(t, rel)))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Fatalf("found %d pages: the tree is not where this test looks for it", len(all))
	}
	return all
}

func pageNamed(t *testing.T, name string) page {
	t.Helper()
	return readPage(name, read(t, name))
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	fenceLine = regexp.MustCompile("^( *)```(.*)$")
	heading   = regexp.MustCompile(`^#{1,6} +(.*?) *#*$`)
	codeSpan  = regexp.MustCompile("`[^`]*`")
	inline    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
)

func readPage(name, text string) page {
	p := page{name: name, anchors: map[string]bool{}}
	var open *fence
	indent := ""
	for i, line := range strings.Split(text, "\n") {
		m := fenceLine.FindStringSubmatch(line)
		switch {
		case m != nil && open == nil:
			open, indent = &fence{info: m[2], line: i + 2}, m[1]
		case m != nil:
			p.fences = append(p.fences, *open)
			open = nil
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
		default:
			if h := heading.FindStringSubmatch(line); h != nil {
				p.anchor(h[1])
			}
			for _, to := range inline.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
				p.links = append(p.links, link{to[1], i + 1})
			}
		}
	}
	return p
}

// anchor adds the name by which a heading can be linked to, as forges make it.
func (p *page) anchor(title string) {
	var b strings.Builder
	for _, r := range strings.ToLower(title) {
		switch {
		case r == ' ':
			b.WriteByte('-')
		case r == '-', r == '_', unicode.IsLetter(r), unicode.IsDigit(r):
			b.WriteRune(r)
		}
	}
	p.anchors[b.String()] = true
}

func TestLinksResolve(t *testing.T) {
	t.Parallel()
	byName := map[string]page{}
	all := pages(t)
	for _, p := range all {
		byName[filepath.ToSlash(p.name)] = p
	}
	links := 0
	for _, p := range all {
		for _, l := range p.links {
			if strings.Contains(l.to, "://") || strings.HasPrefix(l.to, "mailto:") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(l.to, "#")
			target := p.name
			if file != "" {
				target = filepath.Join(filepath.Dir(p.name), file)
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s:%d: the link %s leads nowhere", p.name, l.line, l.to)
				continue
			}
			if to, ok := byName[filepath.ToSlash(target)]; ok && anchor != "" && !to.anchors[anchor] {
				t.Errorf("%s:%d: %s has no heading for #%s", p.name, l.line, target, anchor)
			}
		}
	}
	if links == 0 {
		t.Error("no link was found, so that none was checked")
	}
}

func TestReadPage(t *testing.T) {
	t.Parallel()
	p := readPage("x.md", "# A `b_c`: d\n[l](a.md#x) and `[no](b.md)`\n```yaml\n# not a heading\n[no](c.md)\n```\n- x\n\n  ```json\n  {}\n  ```\n")
	if !p.anchors["a-b_c-d"] || len(p.anchors) != 1 {
		t.Errorf("anchors %v", p.anchors)
	}
	if len(p.links) != 1 || p.links[0] != (link{"a.md#x", 2}) {
		t.Errorf("links %v", p.links)
	}
	want := []fence{{"yaml", "# not a heading\n[no](c.md)\n", 4}, {"json", "{}\n", 10}}
	if len(p.fences) != 2 || p.fences[0] != want[0] || p.fences[1] != want[1] {
		t.Errorf("fences %+v", p.fences)
	}
}
