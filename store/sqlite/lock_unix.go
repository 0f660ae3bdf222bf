//go:build unix

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the lock without waiting. flock belongs to the open file and not to the
// process, so a second store in the same process is refused too.
func tryLock(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return errLocked
		}
		return err
	}
}

func unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }
