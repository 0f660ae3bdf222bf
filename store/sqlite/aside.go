package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"omniroute/store"
)

// beside are the files that belong to a SQLite file, by their endings; the last is the file itself.
// The log goes first: a log that is left behind would be played into the next file of that name.
var beside = []string{"-wal", "-shm", "-journal", ""}

// setAside moves the damaged file and what lies beside it to a name that says when, and
// remembers both for Moved.
func (s *Store) setAside(why error) error {
	to, err := freeName(s.path + ".corrupt-" + s.opts.Now().UTC().Format("20060102T150405Z"))
	if err != nil {
		return explain(s.path, "find a name to move the damaged file to", err)
	}
	for _, end := range beside {
		if err := os.Rename(s.path+end, to+end); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return explain(s.path, "move the damaged file aside", err)
		}
	}
	if e := (*store.Error)(nil); errors.As(why, &e) {
		done := *e
		done.Advice = "" // it has been followed
		why = &done
	}
	s.moved, s.why = to, why
	return nil
}

// freeName adds a number where several files are moved within a second.
func freeName(name string) (string, error) {
	for i := 1; ; i++ {
		candidate := name
		if i > 1 {
			candidate = fmt.Sprintf("%s-%d", name, i)
		}
		if _, err := os.Lstat(candidate); errors.Is(err, fs.ErrNotExist) {
			return candidate, nil
		} else if err != nil {
			return "", err
		}
	}
}
