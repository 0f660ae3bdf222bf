package harness

import (
	"net"
	"sync"
	"testing"
)

// handedOut remembers the addresses of this process, since the kernel may give a port again as
// soon as it is closed.
var handedOut sync.Map

// FreeAddr returns a loopback address, host and port, on which nothing listens. No two calls in
// one process return the same.
func FreeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addr := ln.Addr().String()
		ln.Close()
		if _, again := handedOut.LoadOrStore(addr, true); !again {
			return addr
		}
	}
	t.Fatal("no free port in 100 tries")
	return ""
}
