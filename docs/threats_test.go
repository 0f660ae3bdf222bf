package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsAreTried: every test that the list of threats names is there, and every threat names one.
func TestThreatsAreTried(t *testing.T) {
	t.Parallel()
	there := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "bin" || d.Name() == "node_modules" || d.Name() == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(text, -1) {
			there[string(m[1])] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	_, list, found := strings.Cut(read(t, "docs/security.md"), "## Threats")
	if !found {
		t.Fatal("docs/security.md has no list of threats")
	}
	rows := 0
	for line := range strings.Lines(list) {
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| threat") {
			continue
		}
		rows++
		named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(line, -1)
		if len(named) == 0 {
			t.Errorf("nothing tries this: %s", line)
		}
		for _, m := range named {
			if !there[m[1]] {
				t.Errorf("there is no %s: %s", m[1], line)
			}
		}
	}
	if rows < 20 {
		t.Errorf("only %d threats were found", rows)
	}
}
