package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"

	"omniroute/internal/config"
)

// listen opens a listener for the address under a key of the configuration, which has checked who may
// reach it.
func listen(at config.Address, key string) (net.Listener, error) {
	if at.Network == "unix" {
		if err := clearSocket(at.Address, key); err != nil {
			return nil, err
		}
	}
	l, err := net.Listen(at.Network, at.Address)
	switch {
	case err == nil:
	case errors.Is(err, syscall.EADDRINUSE):
		return nil, fmt.Errorf("another program listens on %s, maybe another omniroute; stop it, or choose another address with `%s`: %w", at, key, err)
	case errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("listening on %s is not permitted; choose a port above 1023 with `%s`: %w", at, key, err)
	default:
		return nil, fmt.Errorf("cannot listen on %s; choose another address with `%s`: %w", at, key, err)
	}
	if at.Network == "unix" {
		// Whoever can open the socket may use every key, so it is the user's own.
		if err := os.Chmod(at.Address, 0o600); err != nil {
			return nil, errors.Join(fmt.Errorf("the socket %s cannot be made private: %w", at.Address, err), l.Close())
		}
	}
	return l, nil
}

// clearSocket removes a socket that a killed process has left behind.
func clearSocket(path, key string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot look for the socket %s; choose another path with `%s`: %w", path, key, err)
	}
	if info.Mode()&fs.ModeSocket == 0 {
		return fmt.Errorf("%s is there and is no socket; choose another path with `%s`", path, key)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "unix", path)
	if err == nil {
		c.Close()
		return fmt.Errorf("another program listens on unix:%s, maybe another omniroute; stop it, or choose another address with `%s`", path, key)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return os.Remove(path)
	}
	return nil // who listens there cannot be known; the listener says what is wrong
}
