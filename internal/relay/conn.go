package relay

import (
	"context"
	"io"
	"net"
	"sync"
)

// plainConn is a TCP connection that writes a request's body without a buffer of its own. The
// standard library takes a fresh one of 32 KiB for each body, which for long requests is most of
// what a relayed request allocates.
type plainConn struct{ *net.TCPConn }

var copyBuffers = sync.Pool{New: func() any { return new([32 << 10]byte) }}

// ReadFrom implements io.ReaderFrom.
func (c plainConn) ReadFrom(r io.Reader) (int64, error) {
	if l, ok := r.(*io.LimitedReader); ok {
		if body, ok := l.R.(*upload); ok {
			n, err := body.WriteTo(c.TCPConn)
			l.N -= n
			return n, err
		}
	}
	buf := copyBuffers.Get().(*[32 << 10]byte)
	defer copyBuffers.Put(buf)
	return io.CopyBuffer(struct{ io.Writer }{c.TCPConn}, r, buf[:])
}

// plain makes a dialer's TCP connections plainConns.
func plain(dial func(context.Context, string, string) (net.Conn, error)) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if t, ok := c.(*net.TCPConn); ok {
			return plainConn{t}, nil
		}
		return c, err
	}
}
