package sqlite

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"omniroute/store"
)

// lock is the right to use one store, held as long as its file is open: the system gives it up
// when the process ends, however it ends. The file itself stays, because removing it would let
// two processes hold locks on two files of the same name. It holds the owner's process id, for
// people and for the message to the next one who comes.
type lock struct{ file *os.File }

// errLocked is what tryLock returns when another one holds the lock.
var errLocked = errors.New("locked")

func acquire(path string) (*lock, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, placeError(path, "open its lock file", err)
	}
	if err := tryLock(f); err != nil {
		owner := readOwner(f)
		_ = f.Close()
		if errors.Is(err, errLocked) {
			return nil, &store.Error{Store: path, Reason: ErrInUse, Err: owner, Advice: "Stop it, or give this one a store of its own, as in store: sqlite:other.db"}
		}
		e := &store.Error{Store: path, Reason: reasonOf(err), Err: fmt.Errorf("lock %s: %w", name, err)}
		e.Advice = "Put the store on a local disk: this place does not offer file locks"
		return nil, e
	}
	// Who holds it is a courtesy; the lock holds without it, even on a full disk.
	if f.Truncate(0) == nil {
		_, _ = f.WriteAt([]byte(fmt.Sprintf("%d\n", os.Getpid())), 0)
	}
	return &lock{f}, nil
}

// release gives the lock up at once. Closing the file alone may not: a child process that is
// being started has a copy of every open file until it runs its own program.
func (l *lock) release() error { return errors.Join(unlock(l.file), l.file.Close()) }

// readOwner returns an error that names the owner, nil when the file does not say.
func readOwner(f *os.File) error {
	b, err := io.ReadAll(io.LimitReader(f, 32))
	if pid := strings.TrimSpace(string(b)); err == nil && pid != "" {
		return fmt.Errorf("process %s", pid)
	}
	return nil
}
