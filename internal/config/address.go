package config

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Address is where a listener stands, in the words of net.Listen.
type Address struct {
	// Network is "tcp" or "unix".
	Network string
	// Address is HOST:PORT, or the socket's path.
	Address string
}

// String returns the address as the configuration spells it.
func (a Address) String() string {
	if a.Network == "unix" {
		return "unix:" + a.Address
	}
	return a.Address
}

// Local reports whether only this machine can reach the address: a loopback IP, localhost, or a unix socket.
// A host name other than localhost may mean anything and does not count.
func (a Address) Local() bool {
	if a.Network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(a.Address)
	if err != nil {
		return false
	}
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}

// parseAddress reads HOST:PORT or unix:PATH; a relative path is taken from dir.
func parseAddress(text, dir string) (Address, error) {
	if path, ok := strings.CutPrefix(text, "unix:"); ok {
		if path == "" {
			return Address{}, fmt.Errorf("a unix socket needs a path, such as unix:omniroute.sock")
		}
		return Address{"unix", fromDir(dir, path)}, nil
	}
	host, port, err := net.SplitHostPort(text)
	if err != nil {
		return Address{}, fmt.Errorf("%q is no address; write HOST:PORT, such as 127.0.0.1:20128, or unix:PATH", text)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || strconv.FormatUint(n, 10) != port {
		return Address{}, fmt.Errorf("%q is no port; write a number from 0 to 65535, such as 20128", port)
	}
	if strings.ContainsAny(host, " /@\t") {
		return Address{}, fmt.Errorf("%q is no host; write an IP address or a host name", host)
	}
	return Address{"tcp", text}, nil
}

// fromDir returns path as seen from dir.
func fromDir(dir, path string) string {
	if dir == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
