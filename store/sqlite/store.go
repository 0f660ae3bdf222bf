// Package sqlite keeps gates in one SQLite file, which survives restarts and kill -9.
//
// What Apply has returned for is in the file: a killed process loses nothing of it. A power cut
// may lose the last moments (synchronous=NORMAL), never the file's consistency.
//
// One process owns a file at a time: it holds an advisory lock on "<path>.lock" while the store
// is open, and a second gateway is refused with ErrInUse. Database shells may read the file at
// any time, and write it in short transactions; see the table names in schema.go.
//
// A file that cannot be read as a store is moved aside, never deleted and never a failed start.
// A file of a newer version, or of another program, is refused and left as it is.
package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strconv"
	"sync"
	"time"

	"omniroute/resilience"
	"omniroute/store"
)

// Options change how a store is opened. The zero value is the default.
type Options struct {
	// BusyTimeout is how long to wait for another program that has the file locked, such as a
	// database shell in the middle of a transaction. Defaults to 2s.
	BusyTimeout time.Duration
	// Now dates the name of a file that is moved aside. Defaults to time.Now.
	Now func() time.Time

	audits int // how many are kept; a test wants fewer than resilience.MaxAudits
}

// Store is a resilience.Store in a SQLite file. Its methods may be called from several
// goroutines; they wait for each other, except that Backup waits for none.
type Store struct {
	path string // absolute, links resolved
	opts Options
	lock *lock

	mu      sync.Mutex
	conn    *conn // nil once closed
	stmts   [len(tables)]statements
	file    fs.FileInfo // identity of the open file
	log     fs.FileInfo // and of its log, nil where there is none
	moved   string
	why     error
	skipped []Skipped
}

var _ resilience.Store = (*Store)(nil)

// statements are the prepared writes of one table.
type statements struct {
	upsert, remove statement
}

// Open opens the store at path or makes a new one, readable by its owner alone, and its folder
// where only the last part of it is missing. A damaged file is moved aside first: see Moved.
//
// Errors are *store.Error with one of the reasons ErrInUse, ErrNewer, ErrForeign, ErrPath, ErrDenied,
// ErrNoSpace or ErrBusy, or wrap the error of ctx.
func Open(ctx context.Context, path string, opts Options) (*Store, error) {
	if opts.BusyTimeout <= 0 {
		opts.BusyTimeout = 2 * time.Second
	}
	if opts.audits == 0 {
		opts.audits = resilience.MaxAudits
	}
	if opts.Now == nil {
		opts.Now = time.Now
	}
	path, err := locate(path)
	if err != nil {
		return nil, err
	}
	l, err := acquire(path)
	if err != nil {
		return nil, err
	}
	s := &Store{path: path, opts: opts, lock: l}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(err, l.release())
	}
	return s, nil
}

// Path is the file's absolute path, with links resolved.
func (s *Store) Path() string { return s.path }

// Moved returns where a damaged file was moved to, with its -wal and -shm beside it, and what
// was wrong with it. The path is empty as long as that did not happen. Open and Load move, so
// ask after the first Load.
func (s *Store) Moved() (path string, why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moved, s.why
}

// Close writes everything back into the one file, closes it and gives up the lock. Closing
// again is harmless; every other method then returns ErrClosed.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lock == nil {
		return nil
	}
	err := errors.Join(explain(s.path, "close it", s.disconnect()), explain(s.path, "give up its lock", s.lock.release()))
	s.lock = nil
	return err
}

// start connects and, where the file is damaged, does so again with a new file.
func (s *Store) start(ctx context.Context) error {
	err := s.connect(ctx)
	if !errors.Is(err, ErrDamaged) {
		return err
	}
	if err := s.setAside(err); err != nil {
		return err
	}
	return s.connect(ctx)
}

// connect leaves s with an open connection to a checked file of the present version, or
// without any.
func (s *Store) connect(ctx context.Context) (err error) {
	created, err := touch(s.path)
	if err != nil {
		return err
	}
	if !created {
		if err := inspect(ctx, s.path, s.opts.BusyTimeout); err != nil {
			return err
		}
	}
	if s.conn, err = dial(ctx, s.path, writerParams(s.opts.BusyTimeout)); err != nil {
		return s.damageOr("open it", err)
	}
	defer func() {
		if err != nil {
			_ = s.disconnect()
		}
	}()
	if err := migrate(ctx, s.conn, migrations); err != nil {
		return s.damageOr("prepare it", err)
	}
	// A write that changes nothing finds out now what the first Apply would: a file that can be read only.
	sign := fmt.Sprintf("PRAGMA application_id = %d", applicationID)
	if err := s.conn.transact(ctx, func() error { return s.conn.exec(ctx, sign) }); err != nil {
		return s.damageOr("write it", err)
	}
	for i, t := range tables {
		if s.stmts[i].upsert, err = s.conn.prepare(ctx, t.upsert()); err != nil {
			return s.damageOr("find table "+t.name, err)
		}
		if s.stmts[i].remove, err = s.conn.prepare(ctx, t.remove()); err != nil {
			return s.damageOr("find table "+t.name, err)
		}
	}
	if s.file, err = os.Stat(s.path); err != nil {
		return explain(s.path, "look at it", err)
	}
	s.log, _ = os.Stat(s.path + "-wal")
	return nil
}

// disconnect closes statements and connection. The driver closes a statement without looking
// whether its connection still is, so the order matters.
func (s *Store) disconnect() error {
	if s.conn == nil {
		return nil
	}
	var errs []error
	for i := range s.stmts {
		for _, stmt := range []statement{s.stmts[i].upsert, s.stmts[i].remove} {
			if stmt != nil {
				errs = append(errs, stmt.Close())
			}
		}
		s.stmts[i] = statements{}
	}
	errs = append(errs, s.conn.close())
	s.conn = nil
	s.dropLog()
	return errors.Join(errs...)
}

func (s *Store) closedError() error {
	return &store.Error{Store: s.path, Reason: ErrClosed, Advice: "Open it again"}
}

func writerParams(busy time.Duration) url.Values {
	return url.Values{
		"mode":          {"rw"},
		"_busy_timeout": {strconv.FormatInt(busy.Milliseconds(), 10)},
		"_journal_mode": {"WAL"},
		"_synchronous":  {"NORMAL"},
		"_defensive":    {"1"},
		"_dqs":          {"0"},
		"_error_rc":     {"1"},
		// The log is cut back to this many bytes after it was written back into the file.
		"_pragma": {"journal_size_limit(16777216)", "trusted_schema(0)"},
	}
}
