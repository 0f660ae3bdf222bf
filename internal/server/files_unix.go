//go:build unix

package server

import "syscall"

// openFiles returns how many files the process may have open.
func openFiles() uint64 {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return 1024
	}
	return uint64(limit.Cur) //nolint:unconvert // it is signed on some systems
}
