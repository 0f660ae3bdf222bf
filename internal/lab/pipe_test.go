package lab_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"
)

// connect returns both ends of a connection in memory.
func connect(t *testing.T) (client, server *lab.PipeConn) {
	t.Helper()
	l := lab.Pipe()
	c, err := l.DialContext(t.Context(), "tcp", "anywhere:80")
	if err != nil {
		t.Fatal(err)
	}
	s, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); s.Close(); l.Close() })
	return c.(*lab.PipeConn), s.(*lab.PipeConn)
}

func TestPipeCarriesMoreThanItsBuffer(t *testing.T) {
	t.Parallel()
	c, s := connect(t)
	sent := bytes.Repeat([]byte("0123456789abcdef"), 20_000)
	go func() {
		c.Write(sent)
		c.CloseWrite()
	}()
	got, err := io.ReadAll(s)
	if err != nil || !bytes.Equal(got, sent) {
		t.Fatalf("%d of %d bytes, %v", len(got), len(sent), err)
	}
	// The other direction is still open.
	if _, err := s.Write([]byte("ok")); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 2)
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "ok" {
		t.Errorf("%q %v", b, err)
	}
}

func TestPipeEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reset bool
		want  error
	}{"close": {false, io.EOF}, "reset": {true, syscall.ECONNRESET}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, server := connect(t)
			server.Write([]byte("last words"))
			if c.reset {
				server.SetLinger(0)
			}
			server.Close()
			b := make([]byte, 100)
			if n, err := client.Read(b); err != nil || string(b[:n]) != "last words" {
				t.Errorf("what was sent before was lost: %q %v", b[:n], err)
			}
			if _, err := client.Read(b); !errors.Is(err, c.want) {
				t.Errorf("read: %v", err)
			}
			if _, err := client.Write(b); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("write: %v", err)
			}
			if _, err := server.Read(b); !errors.Is(err, net.ErrClosed) {
				t.Errorf("own read: %v", err)
			}
			if _, err := server.Write(b); !errors.Is(err, net.ErrClosed) {
				t.Errorf("own write: %v", err)
			}
		})
	}
}

// Who has noticed that the other side closed can tell it nothing any more.
func TestPipeIsClosedAtOnce(t *testing.T) {
	t.Parallel()
	for range 2000 {
		l := lab.Pipe()
		c, err := l.DialContext(t.Context(), "tcp", "anywhere:80")
		if err != nil {
			t.Fatal(err)
		}
		s, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		closed := make(chan struct{})
		for range 4 { // so that the close has to wait for its turn
			go func() {
				for {
					select {
					case <-closed:
						return
					default:
						c.SetReadDeadline(time.Time{})
					}
				}
			}()
		}
		go func() { c.Close(); close(closed) }()
		if _, err := s.Read(make([]byte, 1)); err != io.EOF {
			t.Fatal(err)
		}
		if _, err := s.Write([]byte("late")); !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("what was written after the end: %v", err)
		}
		<-closed
		l.Close()
	}
}

func TestPipeDeadlines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, s := connect(t)
		start := time.Now()
		b := make([]byte, 1)
		c.SetReadDeadline(start.Add(3 * time.Second))
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(start) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		var timeout net.Error
		if _, err := c.Read(b); !errors.As(err, &timeout) || !timeout.Timeout() {
			t.Errorf("a passed deadline: %v", err)
		}
		c.SetReadDeadline(time.Time{})
		go func() {
			time.Sleep(time.Hour)
			s.Write(b)
		}()
		if _, err := c.Read(b); err != nil || time.Since(start) != time.Hour+3*time.Second {
			t.Errorf("no deadline: %v after %v", err, time.Since(start))
		}
		// A deadline that is set while a read waits wakes it.
		go func() {
			time.Sleep(time.Second)
			c.SetDeadline(time.Now().Add(-1))
		}()
		if _, err := c.Read(b); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("woken by %v", err)
		}
		s.SetWriteDeadline(time.Now().Add(time.Second))
		if n, err := s.Write(make([]byte, 1<<20)); !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 {
			t.Errorf("wrote %d, %v", n, err)
		}
	})
}

func TestDialing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := lab.Pipe()
		defer l.Close()
		var unknown *net.DNSError
		for _, c := range []struct {
			dialing lab.Dialing
			is      func(error) bool
			after   time.Duration
		}{
			{lab.DialRefused, func(err error) bool { return errors.Is(err, syscall.ECONNREFUSED) }, 0},
			{lab.DialSilent, func(err error) bool { return errors.Is(err, context.DeadlineExceeded) }, 5 * time.Second},
			{lab.DialUnknownHost, func(err error) bool { return errors.As(err, &unknown) && unknown.IsNotFound }, 0},
			{lab.DialAccepted, isNil, 0},
		} {
			l.SetDialing(c.dialing)
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			start := time.Now()
			conn, err := l.DialContext(ctx, "tcp", "x:80")
			cancel()
			if !c.is(err) || time.Since(start) != c.after {
				t.Errorf("%v: %v after %v", c.dialing, err, time.Since(start))
			}
			if conn != nil {
				conn.Close()
			}
		}
		if n := l.Dialed(); n != 4 {
			t.Errorf("%d dials counted", n)
		}
	})
}

func TestListenerClose(t *testing.T) {
	t.Parallel()
	l := lab.Pipe()
	waiting, err := l.DialContext(t.Context(), "tcp", "x:80")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	l.Close()
	if _, err := waiting.Read(make([]byte, 1)); !isReset(err) {
		t.Errorf("a connection that nobody accepted: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("accept: %v", err)
	}
	if _, err := l.DialContext(t.Context(), "tcp", "x:80"); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("dial: %v", err)
	}
}

func TestNet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var n lab.Net
		tr := n.Transport()
		defer tr.CloseIdleConnections()
		client := &http.Client{Transport: tr}
		for _, host := range []string{"a.example", "b.example"} {
			l, err := n.Listen(host)
			if err != nil {
				t.Fatal(err)
			}
			s := lab.Serve(l, lab.New(lab.Options{Name: host, Models: []string{host}}))
			defer s.Close()
			resp, err := client.Get(s.BaseURL() + "/models/" + host)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			if resp.StatusCode != 200 || s.URL != "http://"+host {
				t.Errorf("%s: %d at %s", host, resp.StatusCode, s.URL)
			}
		}
		if _, err := n.Listen("a.example"); err == nil {
			t.Error("a name was given twice")
		}
		var unknown *net.DNSError
		if _, err := client.Get("http://c.example/"); !errors.As(err, &unknown) {
			t.Errorf("an unknown host: %v", err)
		}
	})
}
