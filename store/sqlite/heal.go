package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"io/fs"
	"os"

	"omniroute/store"
)

// present makes sure that the open file is the one at the path. Without that, a store whose file
// was removed would go on writing into what nobody can find any more.
//
// The removed file is still readable through its open connection, so its content is written out
// anew. A file that someone put in its place is not touched: it may be a backup that is meant.
func (s *Store) present(ctx context.Context) error {
	if s.lock == nil {
		return s.closedError()
	}
	if s.conn == nil { // an earlier repair got only halfway
		return s.connect(ctx)
	}
	info, err := os.Stat(s.path)
	switch {
	case err == nil && os.SameFile(info, s.file):
		return nil
	case err == nil:
		s.dropLog()
		return &store.Error{Store: s.path, Reason: ErrReplaced, Advice: "Restart the gateway so that it reads the new file"}
	case !errors.Is(err, fs.ErrNotExist):
		return explain(s.path, "look at it", err)
	}
	return s.writeAnew(ctx)
}

// dropLog removes the log of this connection where another file has taken the path: SQLite would
// play it into that one.
func (s *Store) dropLog() {
	file, err := os.Stat(s.path)
	if err != nil || s.file == nil || os.SameFile(file, s.file) {
		return
	}
	if log, err := os.Stat(s.path + "-wal"); err == nil && s.log != nil && os.SameFile(log, s.log) {
		_ = os.Remove(s.path + "-wal")
		_ = os.Remove(s.path + "-shm")
	}
}

func (s *Store) writeAnew(ctx context.Context) error {
	part := s.path + ".part"
	for _, name := range []string{part, s.path + "-wal", s.path + "-shm"} {
		if err := os.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return explain(s.path, "write the removed file anew", err)
		}
	}
	if err := vacuumInto(ctx, s.conn, part); err != nil {
		return explain(s.path, "write the removed file anew", err)
	}
	// Closed before the new file gets its name: closing removes the log by name.
	_ = s.disconnect()
	if err := os.Rename(part, s.path); err != nil {
		return explain(s.path, "write the removed file anew", err)
	}
	return s.connect(ctx)
}

// vacuumInto writes a compact copy of the database to a new file that only its owner can read.
// Where that fails, no file is left.
func vacuumInto(ctx context.Context, c *conn, file string) (err error) {
	f, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file)
		}
	}()
	if err := f.Close(); err != nil {
		return err
	}
	if _, err := c.raw.ExecContext(ctx, "VACUUM INTO ?", []sqldriver.NamedValue{{Ordinal: 1, Value: file}}); err != nil {
		return err
	}
	return syncFile(file)
}

func syncFile(file string) error {
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
