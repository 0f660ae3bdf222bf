package server

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestConfigurationGone deletes the file of a running gateway and brings it back.
func TestConfigurationGone(t *testing.T) {
	t.Parallel()
	const gone = "the configuration file is gone"
	_, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	g.log.wait(t, gone, 1)
	if code, _ := g.chat("chat"); code != 200 {
		t.Errorf("the old configuration is gone too: %d", code)
	}
	write(t, filepath.Join(filepath.Dir(g.file), "unrelated"), "x")
	write(t, g.file, yaml(base, "relay: {max_attempts: 2}\n"))
	g.log.wait(t, "the configuration was reloaded", 1)
	if n := strings.Count(g.log.String(), gone); n != 1 {
		t.Errorf("told %d times:\n%s", n, g.log)
	}
	if err := os.Remove(g.file); err != nil {
		t.Fatal(err)
	}
	g.log.wait(t, gone, 2)
}

// TestMountedConfiguration changes a file as Kubernetes does: by another target of a link on its way.
func TestMountedConfiguration(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	dir := t.TempDir()
	put := func(version, text string) {
		t.Helper()
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "omniroute.yaml"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..data_tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	g := prepare(t, dir, yaml(base, ""))
	put("..1", yaml(base, ""))
	file := g.file
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join("..data", "omniroute.yaml"), file); err != nil {
		t.Fatal(err)
	}
	if got, want := namesOf(file), []string{"omniroute.yaml", "..data", "..1"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if !concerns(filepath.Join(dir, "..data"), namesOf(file)) || concerns(filepath.Join(dir, "state.db-wal"), namesOf(file)) {
		t.Error("the wrong names wake the watch")
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	put("..2", yaml(base, "relay: {max_attempts: 2}\n"))
	g.log.wait(t, "the configuration was reloaded", 1)
}
