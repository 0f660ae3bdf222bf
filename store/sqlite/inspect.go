package sqlite

import (
	"context"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strconv"
	"time"

	modernc "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"omniroute/store"
)

// inspect looks at an existing file without changing it, and says whether it is a store that
// may be opened for writing: nil, or a *store.Error with ErrDamaged, ErrNewer or ErrForeign, or one
// of the reasons that a healthy file may have.
func inspect(ctx context.Context, path string, busy time.Duration) (err error) {
	switch n := size(path); {
	case n == 0 && size(path+"-wal") > 0:
		// SQLite would take it for a new file and throw away the log.
		return damaged(path, errors.New("the file is empty, but there is a log for it"))
	case n > 0 && n < smallestPage:
		// This too it would take for a new file, whatever the few bytes are.
		return damaged(path, fmt.Errorf("the file has %d bytes, which is less than a page", n))
	}
	c, err := dial(ctx, path, readerParams(path, busy))
	if err != nil {
		return damageOr(path, "open it", err)
	}
	defer func() { _ = c.close() }()

	names, err := tableNames(ctx, c)
	if err != nil {
		return damageOr(path, "read its schema", err)
	}
	appID, err := c.queryInt(ctx, "PRAGMA application_id")
	if err != nil {
		return damageOr(path, "read its application id", err)
	}
	version, err := c.queryInt(ctx, "PRAGMA user_version")
	if err != nil {
		return damageOr(path, "read its version", err)
	}
	ours := slices.ContainsFunc(tables[:], func(t table) bool { return slices.Contains(names, t.name) })
	switch {
	case !ours && appID != applicationID && len(names) > 0:
		return &store.Error{Store: path, Reason: ErrForeign, Advice: "Choose another path for the store; this file was left as it is"}
	case version < 0 || version > maxVersion || version == 0 && ours:
		return damaged(path, fmt.Errorf("it claims to have schema version %d", version))
	case version > int64(len(migrations)):
		return &store.Error{
			Store: path, Reason: ErrNewer, Err: fmt.Errorf("schema version %d, this one knows up to %d", version, len(migrations)),
			Advice: "Start the newer version again, or move the file away to begin with an empty store; it was left as it is",
		}
	}
	if version == int64(len(migrations)) {
		if err := fits(ctx, c, path); err != nil {
			return err
		}
	}
	if err := wholePages(ctx, c, path); err != nil {
		return err
	}
	return check(ctx, c, path)
}

// fits prepares every statement, without running any: it finds tables and columns that are not
// as they should be.
func fits(ctx context.Context, c *conn, path string) error {
	for _, t := range tables {
		for _, sql := range []string{t.upsert(), t.remove(), t.plainScan()} {
			stmt, err := c.prepare(ctx, sql)
			if err != nil {
				return damageOr(path, "find table "+t.name, err)
			}
			if err := stmt.Close(); err != nil {
				return damageOr(path, "find table "+t.name, err)
			}
		}
	}
	return nil
}

// wholePages finds a file whose last page was cut: SQLite would read the missing part as zeros.
// With a log beside it the page may have been cut by a crash while it was written, and is whole
// in the log.
func wholePages(ctx context.Context, c *conn, path string) error {
	page, err := c.queryInt(ctx, "PRAGMA page_size")
	if err != nil {
		return damageOr(path, "read its page size", err)
	}
	if n := size(path); n%page != 0 && size(path+"-wal") == 0 {
		return damaged(path, fmt.Errorf("the last page is cut: the file has %d bytes in pages of %d", n, page))
	}
	return nil
}

// check lets SQLite verify the whole file. It costs about as much as reading it once.
func check(ctx context.Context, c *conn, path string) error {
	err := c.query(ctx, "PRAGMA quick_check(1)", func(row []sqldriver.Value) error {
		if s, _ := row[0].(string); s != "ok" {
			return damaged(path, errors.New(s))
		}
		return nil
	})
	return damageOr(path, "check it", err)
}

func tableNames(ctx context.Context, c *conn) (names []string, err error) {
	err = c.query(ctx, "SELECT name FROM sqlite_schema WHERE type = 'table'", func(row []sqldriver.Value) error {
		name, _ := row[0].(string)
		names = append(names, name)
		return nil
	})
	return names, err
}

// readerParams open a file for reading. Where no log lies beside it, nobody has it open and it
// is read as immutable: otherwise SQLite would leave an empty log behind.
func readerParams(path string, busy time.Duration) url.Values {
	q := url.Values{
		"mode":          {"ro"},
		"_busy_timeout": {strconv.FormatInt(busy.Milliseconds(), 10)},
		"_error_rc":     {"1"},
		"_pragma":       {"cell_size_check(1)", "trusted_schema(0)"},
	}
	if _, err := os.Stat(path + "-wal"); os.IsNotExist(err) {
		q.Set("immutable", "1")
	}
	return q
}

// smallestPage is the smallest page that SQLite knows, in bytes: no file is shorter.
const smallestPage = 512

func size(file string) int64 {
	info, err := os.Stat(file)
	if err != nil {
		return 0
	}
	return info.Size()
}

func damaged(path string, err error) error {
	return &store.Error{Store: path, Reason: ErrDamaged, Err: err, Advice: "Restart the gateway: it moves the file aside and starts a new one"}
}

// damageOr explains an error that came while the file was opened. There, what SQLite says is
// damage unless it is known to come from elsewhere: a damaged schema shows as an unknown column,
// a damaged header as an unsupported format, and every other door that is left open would be a
// file that keeps the gateway from starting.
func damageOr(path, doing string, err error) error {
	err = explain(path, doing, err)
	e := (*store.Error)(nil)
	if !errors.As(err, &e) || e.Reason != nil {
		return err
	}
	var cause *modernc.Error
	if !errors.As(err, &cause) {
		return err
	}
	switch cause.Code() & 0xff {
	case sqlite3.SQLITE_IOERR, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_INTERRUPT:
		return err
	}
	return damaged(path, e.Err)
}

// damageOr is that of the open store. Its file could be opened for writing, so that what makes
// SQLite think that it must not write is in the file's header.
func (s *Store) damageOr(doing string, err error) error {
	err = damageOr(s.path, doing, err)
	var cause *modernc.Error
	if errors.As(err, &cause) && cause.Code() == sqlite3.SQLITE_READONLY {
		return damaged(s.path, cause)
	}
	return err
}
