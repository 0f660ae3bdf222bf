package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
	"omniroute/store"
	"omniroute/store/storetest"
)

func TestOpenMakesFolderAndFileForTheOwnerAlone(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new")
	s := mustOpen(t, filepath.Join(dir, "state.db"))
	mustApply(t, s, storetest.Many(10)...)
	for name, want := range map[string]fs.FileMode{
		"": 0o700 | fs.ModeDir, "state.db": 0o600, "state.db-wal": 0o600, "state.db-shm": 0o600, "state.db.lock": 0o600,
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Errorf("%v", err)
		} else if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode(), want)
		}
	}
	mustClose(t, s)
	for _, end := range []string{"-wal", "-shm", "-journal"} {
		if _, err := os.Stat(s.Path() + end); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after Close %s is still there (%v)", end, err)
		}
	}
}

func TestOpenOddPaths(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"with space.db", "a?mode=memory&x=y", "50%41.db", "#hash", ":memory:", "quote'\".db", "模型.db", "file:x.db", "semi;colon"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), name)
			s := mustOpen(t, path)
			mustApply(t, s, storetest.Many(3)...)
			mustClose(t, s)
			if info, err := os.Stat(path); err != nil || info.Size() == 0 {
				t.Fatalf("the store is not at its path: %v", err)
			}
			if got := mustLoad(t, mustOpen(t, path)); len(got) != 3 {
				t.Fatalf("%d records, want 3", len(got))
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "gone", "x"), dangling); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		reason     error
		says       string
	}{
		{"no path", "", ErrPath, "Name a file"},
		{"a folder", dir, ErrPath, "it is a folder"},
		{"below a file", filepath.Join(file, "state.db"), ErrPath, "Choose another path"},
		{"two below a file", filepath.Join(file, "sub", "state.db"), ErrPath, "Choose another path"},
		{"two folders missing", filepath.Join(dir, "a", "b", "state.db"), ErrPath, "Make the folder " + filepath.Join(dir, "a") + " first"},
		{"a link that leads nowhere", dangling, ErrPath, "leads nowhere"},
		{"a device", os.DevNull, ErrPath, "no ordinary file"},
		{"too long a name", filepath.Join(dir, strings.Repeat("x", 300)), ErrPath, "another path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s, err := Open(t.Context(), c.path, Options{})
			if err == nil {
				_ = s.Close()
			}
			wantReason(t, err, c.reason, c.says)
		})
	}
}

// wantReason fails unless err is a *store.Error with the reason, whose text says what to do.
func wantReason(t *testing.T, err, reason error, says string) {
	t.Helper()
	var e *store.Error
	switch {
	case !errors.As(err, &e) || !errors.Is(err, reason):
		t.Fatalf("error %v, want a *store.Error with the reason %q", err, reason)
	case !strings.Contains(err.Error(), says):
		t.Fatalf("error %q does not say %q", err, says)
	case e.Advice == "":
		t.Fatalf("error %q has no advice", err)
	}
}

func TestOneProcessOwnsAFile(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s := mustOpen(t, path)
	link := path + ".link"
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, link, filepath.Join(filepath.Dir(path), ".", "x", "..", "state.db")} {
		_, err := Open(t.Context(), p, Options{})
		wantReason(t, err, ErrInUse, "process ")
	}
	mustApply(t, s, storetest.Many(2)...)
	mustClose(t, s)
	if got := mustLoad(t, mustOpen(t, link)); len(got) != 2 {
		t.Fatalf("%d records through the link, want 2", len(got))
	}
}

func TestClosed(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	mustClose(t, s)
	mustClose(t, s)
	_, err := s.Load(t.Context())
	wantReason(t, err, ErrClosed, "Open it again")
	wantReason(t, s.Apply(t.Context(), changes(storetest.Many(1))), ErrClosed, "Open it again")
	wantReason(t, s.Backup(t.Context(), newPath(t)), ErrClosed, "Open it again")
}

func TestOpenCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := filled(t, 10)
	if _, err := Open(ctx, path, Options{}); !errors.Is(err, context.Canceled) {
		t.Fatalf("error %v, want context.Canceled", err)
	}
	if got := mustLoad(t, mustOpen(t, path)); len(got) != 10 {
		t.Fatalf("%d records, want 10", len(got))
	}
}

// A shell in the middle of a transaction delays a batch by BusyTimeout at most, fails it with a
// clear reason, and does no lasting harm.
func TestBusy(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	s, err := Open(t.Context(), path, Options{BusyTimeout: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	c := shell(t, path)
	run(t, c, "BEGIN IMMEDIATE")
	wantReason(t, s.Apply(t.Context(), changes(storetest.Many(3))), ErrBusy, "database shell")
	if got := mustLoad(t, s); len(got) != 0 {
		t.Fatalf("%d records after a failed batch", len(got))
	}
	run(t, c, "COMMIT")
	mustApply(t, s, storetest.Many(3)...)
}

// A batch that does not fit leaves nothing behind, and fits once there is space again.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	mustApply(t, s, storetest.Many(10)...)
	run(t, s.conn, "PRAGMA max_page_count = 8")
	wantReason(t, s.Apply(t.Context(), changes(storetest.Many(5_000))), ErrNoSpace, "Free some space")
	if got := mustLoad(t, s); len(got) != 10 {
		t.Fatalf("%d records after a batch that did not fit, want 10", len(got))
	}
	run(t, s.conn, "PRAGMA max_page_count = 100000")
	mustApply(t, s, storetest.Many(5_000)...)
	if got := mustLoad(t, s); len(got) != 5_000 {
		t.Fatalf("%d records, want 5000", len(got))
	}
}

// In a bubble of virtual time every goroutine must end by itself: the store may leave none.
func TestVirtualTime(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s, err := Open(ctx, path, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := resilience.Record{Layer: resilience.LayerModel, UpdatedMs: time.Now().UnixMilli()}
		if err := s.Apply(ctx, changes([]resilience.Record{r})); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Load(ctx); err != nil || len(got) != 1 || got[0] != r {
			t.Fatalf("Load gave %v, %v", got, err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	})
}
