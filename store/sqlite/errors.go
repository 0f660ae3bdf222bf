package sqlite

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"omniroute/store"
)

// The reasons for which a store fails, for errors.Is.
var (
	// ErrInUse: another running process has the store open.
	ErrInUse = errors.New("another gateway is using it")
	// ErrNewer: a later version wrote the file. It was left as it is.
	ErrNewer = errors.New("a newer version wrote it")
	// ErrForeign: the file is the database of another program. It was left as it is.
	ErrForeign = errors.New("it is another program's database")
	// ErrPath: the path cannot be that of a store, for example because it is a folder.
	ErrPath = errors.New("the path cannot be used")
	// ErrDenied: the file or its folder may not be read or written.
	ErrDenied = errors.New("access is denied")
	// ErrNoSpace: the disk or quota is full.
	ErrNoSpace = errors.New("there is no space left")
	// ErrBusy: another program held a lock on the file for longer than Options.BusyTimeout.
	ErrBusy = errors.New("another program holds a lock on it")
	// ErrDamaged: what is in the file cannot be read as a store. Open and Load handle it by
	// themselves; Apply and Backup return it.
	ErrDamaged = errors.New("the file is damaged")
	// ErrReplaced: another file lies at the path since the store was opened.
	ErrReplaced = errors.New("the file was replaced while in use")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("it is closed")
)

// explain turns a cause into an Error with reason and advice. The end of a context is returned
// as it is: nobody needs advice on what he did himself.
func explain(path, doing string, err error) error {
	if err == nil {
		return nil
	}
	if e := (*store.Error)(nil); errors.As(err, &e) {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("store %s: %s: %w", path, doing, err)
	}
	e := &store.Error{Store: path, Err: fmt.Errorf("%s: %w", doing, err), Reason: reasonOf(err)}
	switch {
	case e.Reason == nil:
		e.Advice = "Look at the disk and the system's log; the store goes on as soon as this has passed"
	case errors.Is(e.Reason, ErrDenied):
		e.Advice = "Let the user that runs the gateway write both the file and its folder, or choose another place for the store"
	case errors.Is(e.Reason, ErrNoSpace):
		e.Advice = "Free some space there"
	case errors.Is(e.Reason, ErrBusy):
		e.Advice = "End the program that has a transaction open on it, such as a database shell"
	case errors.Is(e.Reason, ErrDamaged):
		e.Advice = "Restart the gateway: it moves the file aside and starts a new one"
	}
	return e
}

func reasonOf(err error) error {
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		return ErrDenied
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return ErrNoSpace
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.EISDIR), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.ENAMETOOLONG):
		return ErrPath
	}
	var e *driver.Error
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Code() & 0xff {
	case sqlite3.SQLITE_PERM, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_AUTH:
		return ErrDenied
	case sqlite3.SQLITE_FULL:
		return ErrNoSpace
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED:
		return ErrBusy
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		return ErrDamaged
	case sqlite3.SQLITE_IOERR:
		if e.Code() == sqlite3.SQLITE_IOERR_SHORT_READ {
			return ErrDamaged
		}
	}
	return nil
}
