package lab

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// pipeBuffer is how many bytes one direction of an in-memory connection holds before a writer
// waits for the reader. A socket's buffers have about this size.
const pipeBuffer = 64 << 10

// PipeConn is one end of an in-memory connection that behaves like TCP where it matters to HTTP:
// writes are buffered, a close lets the other side read what was sent and then io.EOF, and a close
// after SetLinger(0) lets it read ECONNRESET instead. Deadlines use timers, so they follow virtual
// time. All methods may be called concurrently.
type PipeConn struct {
	in, out       *pipeHalf
	local, remote net.Addr

	mu     sync.Mutex
	linger int
	once   sync.Once
}

// newPipe returns both ends of a connection.
func newPipe(client, server net.Addr) (*PipeConn, *PipeConn) {
	up, down := newPipeHalf(), newPipeHalf()
	return &PipeConn{in: down, out: up, local: client, remote: server, linger: -1},
		&PipeConn{in: up, out: down, local: server, remote: client, linger: -1}
}

// Read implements net.Conn.
func (c *PipeConn) Read(b []byte) (int, error) {
	n, err := c.in.read(b)
	return n, c.wrap("read", err)
}

// Write implements net.Conn. It fails with EPIPE after the other side closed.
func (c *PipeConn) Write(b []byte) (int, error) {
	n, err := c.out.write(b)
	return n, c.wrap("write", err)
}

// Close ends the connection in both directions: with a reset if the linger time is 0, else in
// good order. Closing again does nothing.
func (c *PipeConn) Close() error {
	c.once.Do(func() {
		c.mu.Lock()
		reset := c.linger == 0
		c.mu.Unlock()
		// In this order: what the other side says once it has noticed is not read any more.
		c.in.endReading()
		c.out.endWriting(reset)
	})
	return nil
}

// CloseWrite ends the outgoing direction; reading goes on.
func (c *PipeConn) CloseWrite() error {
	c.out.endWriting(false)
	return nil
}

// SetLinger has the meaning of [net.TCPConn.SetLinger]: after SetLinger(0) a Close is a reset.
func (c *PipeConn) SetLinger(sec int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.linger = sec
	return nil
}

// LocalAddr implements net.Conn.
func (c *PipeConn) LocalAddr() net.Addr { return c.local }

// RemoteAddr implements net.Conn.
func (c *PipeConn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline implements net.Conn.
func (c *PipeConn) SetDeadline(t time.Time) error {
	c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline implements net.Conn.
func (c *PipeConn) SetReadDeadline(t time.Time) error {
	c.in.setDeadline(&c.in.readBy, t)
	return nil
}

// SetWriteDeadline implements net.Conn.
func (c *PipeConn) SetWriteDeadline(t time.Time) error {
	c.out.setDeadline(&c.out.writeBy, t)
	return nil
}

func (c *PipeConn) wrap(op string, err error) error {
	if err == nil || err == io.EOF { //nolint:errorlint // a bare io.EOF is what net.Conn promises
		return err
	}
	return &net.OpError{Op: op, Net: "tcp", Source: c.local, Addr: c.remote, Err: err}
}

// pipeHalf is one direction. A condition variable, unlike a mutex, counts as waiting for
// testing/synctest; the mutex is never held while anything waits.
type pipeHalf struct {
	mu   sync.Mutex
	cond sync.Cond
	buf  []byte

	writerDone bool // no more bytes come
	reset      bool // and the end is a reset
	readerDone bool // nobody reads any more

	readBy, writeBy deadline
}

type deadline struct {
	timer  *time.Timer
	passed bool
}

func newPipeHalf() *pipeHalf {
	h := &pipeHalf{}
	h.cond.L = &h.mu
	return h
}

func (h *pipeHalf) read(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.readerDone:
			return 0, net.ErrClosed
		case h.readBy.passed:
			return 0, os.ErrDeadlineExceeded
		case len(b) == 0:
			return 0, nil
		case len(h.buf) > 0:
			n := copy(b, h.buf)
			h.buf = h.buf[n:]
			h.cond.Broadcast()
			return n, nil
		case h.reset:
			return 0, syscall.ECONNRESET
		case h.writerDone:
			return 0, io.EOF
		}
		h.cond.Wait()
	}
}

func (h *pipeHalf) write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	written := 0
	for {
		switch {
		case h.writerDone:
			return written, net.ErrClosed
		case h.readerDone:
			return written, syscall.EPIPE
		case h.writeBy.passed:
			return written, os.ErrDeadlineExceeded
		case len(b) == 0:
			return written, nil
		}
		if room := pipeBuffer - len(h.buf); room > 0 {
			n := min(room, len(b))
			h.buf = append(h.buf, b[:n]...)
			b, written = b[n:], written+n
			h.cond.Broadcast()
			continue
		}
		h.cond.Wait()
	}
}

func (h *pipeHalf) endWriting(reset bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.writerDone, h.reset = true, h.reset || reset
	h.writeBy.stop()
	h.cond.Broadcast()
}

func (h *pipeHalf) endReading() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.readerDone, h.buf = true, nil
	h.readBy.stop()
	h.cond.Broadcast()
}

func (h *pipeHalf) setDeadline(d *deadline, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	d.stop()
	d.passed = false
	if !t.IsZero() {
		if wait := time.Until(t); wait <= 0 {
			d.passed = true
		} else {
			var timer *time.Timer
			timer = time.AfterFunc(wait, func() {
				h.mu.Lock()
				defer h.mu.Unlock()
				// A timer that was replaced while it waited for the lock says nothing.
				if d.timer == timer {
					d.passed = true
					h.cond.Broadcast()
				}
			})
			d.timer = timer
		}
	}
	h.cond.Broadcast()
}

func (d *deadline) stop() {
	if d.timer != nil {
		d.timer.Stop()
		d.timer = nil
	}
}
