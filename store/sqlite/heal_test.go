package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"omniroute/store/storetest"
)

// Someone removes the file of a running gateway: the next batch brings all of it back.
func TestRemovedFileIsWrittenAnew(t *testing.T) {
	t.Parallel()
	for _, ends := range [][]string{{""}, {"", "-wal", "-shm"}} {
		path := newPath(t)
		s := mustOpen(t, path)
		mustApply(t, s, storetest.Many(500)...)
		for _, end := range ends {
			if err := os.Remove(path + end); err != nil {
				t.Fatal(err)
			}
		}
		mustApply(t, s, storetest.Many(501)[500])
		mustClose(t, s)
		s = mustOpen(t, path)
		if moved, why := s.Moved(); moved != "" {
			t.Fatalf("without %q: the new file was moved to %s: %v", ends, moved, why)
		}
		if got := mustLoad(t, s); len(got) != 501 {
			t.Fatalf("without %q: %d records, want 501", ends, len(got))
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("the new file: %v, %v", info, err)
		}
		mustClose(t, s)
	}
}

// The whole folder goes and comes back: batches fail meanwhile and nothing is lost after.
func TestRemovedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := mustOpen(t, filepath.Join(dir, "state.db"))
	mustApply(t, s, storetest.Many(50)...)
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Apply(t.Context(), changes(storetest.Many(1))); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("error %v, want one about the missing folder", err)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, storetest.Many(51)[50])
	if got := mustLoad(t, s); len(got) != 51 {
		t.Fatalf("%d records, want 51", len(got))
	}
}

// A file that someone put in place of the open one may be a backup that is meant: it is not touched.
func TestReplacedFile(t *testing.T) {
	t.Parallel()
	for _, tried := range []bool{false, true} {
		path, other := newPath(t), filled(t, 7)
		s := mustOpen(t, path)
		mustApply(t, s, storetest.Many(50)...)
		if err := os.Rename(other, path); err != nil {
			t.Fatal(err)
		}
		if tried {
			wantReason(t, s.Apply(t.Context(), changes(storetest.Many(1))), ErrReplaced, "Restart the gateway")
		}
		mustClose(t, s)
		if got := mustLoad(t, mustOpen(t, path)); len(got) != 7 {
			t.Fatalf("%d records, want the 7 of the file that was put there", len(got))
		}
	}
}

func TestBackup(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, newPath(t))
	mustApply(t, s, storetest.Many(300)...)
	file := newPath(t)
	if err := s.Backup(t.Context(), file); err != nil {
		t.Fatal(err)
	}
	mustApply(t, s, storetest.Many(400)...)
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the backup: %v, %v", info, err)
	}
	if left, err := filepath.Glob(file + "?*"); err != nil || len(left) > 0 {
		t.Fatalf("beside the backup lie %v (%v)", left, err)
	}
	copied := mustOpen(t, file)
	if got := mustLoad(t, copied); len(got) != 300 {
		t.Fatalf("%d records in the backup, want 300", len(got))
	}
	wantReason(t, s.Backup(t.Context(), file), ErrPath, "another name")
	if got := mustLoad(t, copied); len(got) != 300 {
		t.Fatalf("the backup was written over: %d records", len(got))
	}
}

// The command line makes backups beside a running gateway and without one.
func TestBackupOfAPath(t *testing.T) {
	t.Parallel()
	path := filled(t, 20)
	for _, running := range []bool{false, true} {
		if running {
			mustOpen(t, path)
		}
		file := newPath(t)
		if err := Backup(t.Context(), path, file); err != nil {
			t.Fatalf("running %v: %v", running, err)
		}
		if got := mustLoad(t, mustOpen(t, file)); len(got) != 20 {
			t.Fatalf("running %v: %d records in the backup, want 20", running, len(got))
		}
	}
}

func TestBackupFails(t *testing.T) {
	t.Parallel()
	path := filled(t, 20)
	if err := Backup(t.Context(), path+".none", newPath(t)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a store that is not there: error %v", err)
	}
	wantReason(t, Backup(t.Context(), filepath.Dir(path), newPath(t)), ErrPath, "Name the store's file")
	nowhere := filepath.Join(filepath.Dir(newPath(t)), "none", "x.db")
	wantReason(t, Backup(t.Context(), path, nowhere), ErrPath, "does not exist; make it")
	if err := Backup(t.Context(), path, filepath.Join(path, "below", "x")); !errors.Is(err, ErrPath) {
		t.Errorf("a target below a file: error %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	file := newPath(t)
	if err := Backup(ctx, path, file); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled context: error %v", err)
	}
	if left, err := filepath.Glob(file + "*"); err != nil || len(left) > 0 {
		t.Errorf("a canceled backup left %v (%v)", left, err)
	}
}
