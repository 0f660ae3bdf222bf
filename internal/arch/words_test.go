package arch

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// forbidden lists what no file of the project may contain. The patterns are put together from
// pieces so that this file passes its own test.
var forbidden = []struct {
	pattern *regexp.Regexp
	why     string
}{
	{
		// A path starts where no name goes on: "home/work/x" in a URL is none.
		regexp.MustCompile(`(^|[^\w.~\-])/` + `(work|root|home|Users)/`),
		"an absolute path of somebody's machine; write it relative to the checkout",
	},
	{
		regexp.MustCompile(`[A-Z]:\\` + `Users\\`),
		"an absolute path of somebody's machine; write it relative to the checkout",
	},
	{
		regexp.MustCompile(`(registry\.npmjs|registry\.yarnpkg|proxy\.golang|sum\.golang|goproxy|deb\.debian|security\.debian|files\.pythonhosted|pypi)\.` + `(org|com|io|cn)`),
		"the host of a package registry; which one is used is each machine's own setting",
	},
	{
		regexp.MustCompile(`"resolved"` + `: "http`),
		"a lock file's download address; run npm with --omit-lockfile-registry-resolved",
	},
	{
		regexp.MustCompile(`(//|^\s*#|<!--)\s*(TO` + `DO|FIX` + `ME|XX` + `X)\b`),
		"unfinished work; finish it or write down as a limit what users must know",
	},
	{
		regexp.MustCompile(`^(<<<<<<<|>>>>>>>) `),
		"a merge conflict's mark",
	},
}

func TestForbiddenWords(t *testing.T) {
	t.Parallel()
	names := projectFiles(t)
	if len(names) == 0 {
		t.Fatal("found no files: the tree is not where this test looks for it")
	}
	for _, name := range names {
		data, err := os.ReadFile(filepath.Join(root, name))
		if os.IsNotExist(err) {
			continue // removed, and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(data, 0) >= 0 {
			continue // not text
		}
		for i, line := range bytes.Split(data, []byte("\n")) {
			for _, why := range complaints(line) {
				t.Errorf("%s:%d: %s", name, i+1, why)
			}
		}
	}
}

func complaints(line []byte) []string {
	var out []string
	for _, f := range forbidden {
		if m := f.pattern.Find(line); m != nil {
			out = append(out, string(bytes.TrimSpace(m))+": "+f.why)
		}
	}
	return out
}

// projectFiles names the files that belong to the project: those that git tracks or would add,
// or, where the tree is no checkout, all but what builds leave behind.
func projectFiles(t *testing.T) []string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	if out, err := cmd.Output(); err == nil && len(out) > 0 {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	}
	var names []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin" || d.Name() == "node_modules"):
			return fs.SkipDir
		case d.Type().IsRegular():
			rel, err := filepath.Rel(root, path)
			names = append(names, rel)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestComplaints(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"see /" + "work/main/x.go":                        1,
		"cd \"/" + "root/x\"":                             1,
		"/" + "home/me/src":                               1,
		"file:///" + "Users/me":                           1,
		`C:\` + `Users\me`:                                1,
		"https://example.com/work/list":                   0,
		"./work/x and ../home/y and ~/root/z":             0,
		"/var/lib/omniroute/omniroute.db":                 0,
		"https://registry.npmjs." + "org/openai":          1,
		`      "resolved"` + `: "https://example.com/x"`:  1,
		"// TO" + "DO: later":                             1,
		"ctx := context.TO" + "DO()":                      0,
		"<<<<<<" + "< HEAD":                               1,
		"# proxy, sum and registry are words like others": 0,
	} {
		if got := complaints([]byte(line)); len(got) != want {
			t.Errorf("%q: %d complaints %q, want %d", line, len(got), got, want)
		}
	}
}
