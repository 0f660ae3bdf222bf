package config

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
)

// TestErrorTexts compares what a person sees with testdata/errors, whose archives hold a file and the texts for it.
func TestErrorTexts(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/errors/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			src := string(a.Files[0].Data)
			_, warnings, err := parseText(src)
			var b strings.Builder
			if err != nil {
				fmt.Fprintln(&b, err)
			}
			for _, w := range warnings {
				fmt.Fprintln(&b, w)
			}
			got := b.String()
			for _, secret := range []string{"literal", "hunter2", "sk live", "wrong-place", "12345678", "user:"} {
				if strings.Contains(got, secret) {
					t.Errorf("the secret %q is shown:\n%s", secret, got)
				}
			}
			if *update {
				a.Files = append(a.Files[:1], txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if len(a.Files) != 2 {
				t.Fatal("there is no want in the archive; run with -update and read what it writes")
			}
			if diff := cmp.Diff(string(a.Files[1].Data), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
