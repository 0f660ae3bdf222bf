package sqlite

import (
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"

	"omniroute/store/storetest"
)

// asNobody runs f without the right to write what belongs to the user who runs the test, even
// where that is root: Linux keeps a user of its own for file access in every thread.
func asNobody(t *testing.T, f func()) {
	t.Helper()
	if os.Geteuid() == 0 {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		set := func(uid int) { _, _, _ = syscall.RawSyscall(syscall.SYS_SETFSUID, uintptr(uid), 0, 0) }
		set(65534)
		defer set(0)
	}
	f()
}

// reachable is newPath in a folder that everybody may enter.
func reachable(t *testing.T) string {
	t.Helper()
	path := newPath(t)
	chmod(t, filepath.Dir(filepath.Dir(path)), 0o755)
	chmod(t, filepath.Dir(path), 0o755)
	return path
}

func TestDenied(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, says string
		setUp      func(t *testing.T, path string)
	}{
		{"a folder that may not be written", "open its lock file", func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0o555) }},
		{"a folder that may not be read", "find it", func(t *testing.T, path string) { chmod(t, filepath.Dir(path), 0) }},
		{"a file that may not be written", "open it for writing", func(t *testing.T, path string) {
			mustClose(t, mustOpen(t, path))
			chmod(t, filepath.Dir(path), 0o777)
			chmod(t, path+".lock", 0o666)
			chmod(t, path, 0o444)
		}},
		{"a file that may not be read", "open it for writing", func(t *testing.T, path string) {
			mustClose(t, mustOpen(t, path))
			chmod(t, filepath.Dir(path), 0o777)
			chmod(t, path+".lock", 0o666)
			chmod(t, path, 0)
		}},
		{"a lock that may not be written", "open its lock file", func(t *testing.T, path string) {
			mustClose(t, mustOpen(t, path))
			chmod(t, path+".lock", 0o444)
		}},
		{"a damaged file that may not be moved", "move the damaged file aside", func(t *testing.T, path string) {
			mustClose(t, mustOpen(t, path))
			writeFile(t, path, []byte("garbage"))
			for _, name := range []string{path, path + ".lock"} {
				chmod(t, name, 0o666)
			}
			chmod(t, filepath.Dir(path), 0o555)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := reachable(t)
			t.Cleanup(func() { chmod(t, filepath.Dir(path), 0o755) })
			c.setUp(t, path)
			var err error
			asNobody(t, func() {
				var s *Store
				if s, err = Open(t.Context(), path, Options{}); err == nil {
					_ = s.Close()
				}
			})
			wantReason(t, err, ErrDenied, c.says)
		})
	}
}

// A missing folder in a place where nothing may be made.
func TestDeniedFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Dir(reachable(t))
	chmod(t, dir, 0o555)
	t.Cleanup(func() { chmod(t, dir, 0o755) })
	var err error
	asNobody(t, func() { _, err = Open(t.Context(), filepath.Join(dir, "new", "state.db"), Options{}) })
	wantReason(t, err, ErrDenied, "make its folder")
}

// A backup to where nothing may be written says so.
func TestBackupDenied(t *testing.T) {
	t.Parallel()
	path := reachable(t)
	dir := filepath.Dir(reachable(t))
	chmod(t, dir, 0o555)
	t.Cleanup(func() { chmod(t, dir, 0o755) })
	s := mustOpen(t, path)
	mustApply(t, s, storetest.Many(4)...)
	for _, name := range []string{filepath.Dir(path), path, path + "-wal", path + "-shm"} {
		chmod(t, name, 0o777)
	}
	var err error
	asNobody(t, func() { err = s.Backup(t.Context(), filepath.Join(dir, "copy.db")) })
	wantReason(t, err, ErrDenied, "copy it to")
}

func chmod(t *testing.T, name string, mode os.FileMode) {
	t.Helper()
	if err := os.Chmod(name, mode); err != nil {
		t.Fatal(err)
	}
}
