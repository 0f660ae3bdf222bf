package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"omniroute/store"
)

// locate returns the absolute path of the file with links resolved, so that two ways to name
// one file meet in one lock. It makes the folder where only the last part of it is missing.
func locate(path string) (string, error) {
	if path == "" {
		return "", &store.Error{Store: `""`, Reason: ErrPath, Advice: "Name a file, as in sqlite:omniroute.db"}
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", explain(path, "find it", err)
	}
	dir, name := filepath.Split(abs)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		if err := os.Mkdir(dir, 0o700); errors.Is(err, fs.ErrNotExist) {
			return "", &store.Error{Store: abs, Reason: ErrPath, Err: err, Advice: "Make the folder " + filepath.Dir(filepath.Clean(dir)) + " first"}
		} else if err != nil && !errors.Is(err, fs.ErrExist) {
			return "", placeError(abs, "make its folder", err)
		}
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", placeError(abs, "find its folder", err)
	}
	abs = filepath.Join(dir, name)

	info, err := os.Lstat(abs)
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if abs, err = filepath.EvalSymlinks(abs); err != nil {
			return "", &store.Error{Store: filepath.Join(dir, name), Reason: ErrPath, Err: err, Advice: "It is a link that leads nowhere; remove or repair it"}
		}
		info, err = os.Lstat(abs)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return abs, nil
	case err != nil:
		return "", placeError(abs, "find it", err)
	case info.IsDir():
		return "", &store.Error{Store: abs, Reason: ErrPath, Err: errors.New("it is a folder"), Advice: "Name a file in it, as in " + filepath.Join(abs, "omniroute.db")}
	case !info.Mode().IsRegular():
		return "", &store.Error{Store: abs, Reason: ErrPath, Err: fmt.Errorf("it is no ordinary file (%v)", info.Mode().Type()), Advice: "Choose another name for the store"}
	}
	return abs, nil
}

// touch makes sure that the file is there and can be written, before SQLite sees it: SQLite
// would make it readable for all, and would open a file read-only without saying so.
// It runs before any connection to the file is open, because closing any handle of a file gives
// up the locks that the process has on it.
func touch(path string) (created bool, err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	created = err == nil
	if errors.Is(err, fs.ErrExist) {
		f, err = os.OpenFile(path, os.O_RDWR, 0)
	}
	if err != nil {
		return false, placeError(path, "open it for writing", err)
	}
	return created, explain(path, "close it", f.Close())
}

// placeError is explain with advice about the path.
func placeError(path, doing string, err error) error {
	err = explain(path, doing, err)
	if e := (*store.Error)(nil); errors.As(err, &e) && errors.Is(e.Reason, ErrPath) {
		e.Advice = "Choose another path for the store: every part of it but the last must be a folder"
	}
	return err
}
