package sqlite

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"omniroute/store"
)

// Backup writes a consistent copy of the open store to a new file; the store goes on working
// meanwhile. See the function Backup.
func (s *Store) Backup(ctx context.Context, file string) error {
	s.mu.Lock()
	closed := s.lock == nil
	s.mu.Unlock()
	if closed {
		return s.closedError()
	}
	return Backup(ctx, s.path, file)
}

// Backup writes a consistent copy of the store at path to a new file, readable by its owner
// alone. The store may be in use by a running gateway. The copy is complete when the file
// appears under its name, and it is never written over a file that exists. To restore it, stop
// the gateway, remove the files that end in -wal and -shm beside the store, and put the copy in
// the store's place.
func Backup(ctx context.Context, path, file string) error {
	if info, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return &store.Error{Store: path, Err: fs.ErrNotExist, Advice: "There is no store yet; the gateway makes it when it starts"}
	} else if err != nil {
		return explain(path, "find it", err)
	} else if info.IsDir() {
		return &store.Error{Store: path, Reason: ErrPath, Err: errors.New("it is a folder"), Advice: "Name the store's file"}
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return explain(path, "find it", err)
	}
	file, err = filepath.Abs(file)
	if err != nil {
		return explain(file, "find it", err)
	}
	exists := &store.Error{Store: file, Reason: ErrPath, Err: fs.ErrExist, Advice: "Choose another name for the backup, or remove that file"}
	if _, err := os.Lstat(file); err == nil {
		return exists
	}
	switch info, err := os.Stat(filepath.Dir(file)); {
	case errors.Is(err, fs.ErrNotExist):
		return &store.Error{Store: file, Reason: ErrPath, Err: fs.ErrNotExist, Advice: "The folder " + filepath.Dir(file) + " does not exist; make it, or choose another place for the backup"}
	case err == nil && !info.IsDir():
		return &store.Error{Store: file, Reason: ErrPath, Err: syscall.ENOTDIR, Advice: "Name a file in a folder that exists"}
	}
	q := readerParams(path, 10*time.Second)
	q.Del("immutable") // a gateway may start meanwhile
	c, err := dial(ctx, path, q)
	if err != nil {
		return explain(path, "open it", err)
	}
	defer func() { _ = c.close() }()

	part := file + ".part"
	if err := os.Remove(part); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return explain(file, "make room for the backup", err)
	}
	if err := vacuumInto(ctx, c, part); err != nil {
		return explain(path, "copy it to "+file, err)
	}
	defer func() { _ = os.Remove(part) }()
	// A link never replaces a file. Where there are no links, the look above has to do.
	err = os.Link(part, file)
	if errors.Is(err, fs.ErrExist) {
		return exists
	}
	if err != nil {
		err = os.Rename(part, file)
	}
	return explain(file, "name the backup", err)
}
