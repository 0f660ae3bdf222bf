// Package harness builds the omniroute binary and runs it as its users do: with a configuration
// file, a port and signals. Tests get a running gateway that is gone when they end.
package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"
)

// buildTime bounds the build of the binary, cold caches on a slow machine included.
const buildTime = 15 * time.Minute

// built is the binary's path, made once for each test process.
var built = sync.OnceValues(build)

func build() (string, error) {
	_, source, _, ok := runtime.Caller(0)
	if !ok || !filepath.IsAbs(source) {
		return "", errors.New("the folder of the source is unknown: run the tests without -trimpath")
	}
	root := filepath.Join(filepath.Dir(source), "..", "..")
	if _, err := os.Stat(filepath.Join(root, "cmd", "omniroute")); err != nil {
		return "", err
	}
	// Named after the test binary, so that packages tested at the same time do not overwrite each
	// other's, and kept, so that the linker has nothing to do the next time.
	out := filepath.Join(root, "bin", "e2e", "omniroute-"+filepath.Base(os.Args[0]))
	args := []string{"build", "-o", out}
	if raceEnabled {
		args = append(args, "-race")
	}
	ctx, cancel := context.WithTimeout(context.Background(), buildTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(args, "./cmd/omniroute")...)
	cmd.Dir = root
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build ./cmd/omniroute: %w\n%s", err, text)
	}
	return out, nil
}

// Binary returns the path of a freshly built omniroute, with the race detector in it when the test
// has it. It ends the test when the build fails, and skips it where the tree has no cmd/omniroute.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := built()
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("the tree has no cmd/omniroute")
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}
