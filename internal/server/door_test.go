package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"testing"

	"omniroute/internal/certtest"
)

// doorway serves a handler behind a door with room for three connections, until the test ends. What the door logs is told.
// For each request that is over, and known to be so at the door, there is a token in rested.
func doorway(t *testing.T, config *tls.Config, told io.Writer, handler http.HandlerFunc) (address string, rested chan struct{}) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(l, 3, slog.New(slog.NewTextHandler(told, nil)))
	srv := &http.Server{Handler: handler, ErrorLog: log.New(io.Discard, "", 0), TLSConfig: config} //nolint:gosec // the test's own clients
	rested = make(chan struct{}, 100)
	srv.ConnState = func(c net.Conn, s http.ConnState) {
		d.state(c, s)
		if s == http.StateIdle {
			rested <- struct{}{}
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if config != nil {
			_ = srv.ServeTLS(d, "", "")
		} else {
			_ = srv.Serve(d)
		}
	}()
	t.Cleanup(func() {
		srv.Close()
		<-ended
	})
	return l.Addr().String(), rested
}

func dialDoor(t *testing.T, address string) net.Conn {
	t.Helper()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// ask sends a request on a connection and returns the answer's body, or why there is none.
func ask(t *testing.T, c net.Conn, path string) string {
	t.Helper()
	fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path)
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// TestIdleConnectionsMakeRoom: connections without a request cannot keep others out, the longest idle one goes first,
// and one that is used is not closed.
func TestIdleConnectionsMakeRoom(t *testing.T) {
	t.Parallel()
	address, rested := doorway(t, nil, io.Discard, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.URL.Path) })
	silent, used, lately := dialDoor(t, address), dialDoor(t, address), dialDoor(t, address)
	echoed := func(c net.Conn, path string) {
		t.Helper()
		if got := ask(t, c, path); got != path {
			t.Fatalf("%q", got)
		}
		<-rested // a client has its answer before the connection counts as idle
	}
	echoed(lately, "/1")
	echoed(used, "/2")
	// the silent one is the longest without a request now
	for i := range 20 {
		echoed(dialDoor(t, address), "/new")
		echoed(used, fmt.Sprint("/again/", i))
	}
	for name, c := range map[string]net.Conn{"that never asked": silent, "that asked long ago": lately} {
		if _, err := c.Read(make([]byte, 1)); err == nil {
			t.Errorf("the connection %s is open", name)
		}
	}
}

// TestBusyConnectionsAreLeftAlone: where every connection has a request who comes waits, and is served when one ends.
func TestBusyConnectionsAreLeftAlone(t *testing.T) {
	t.Parallel()
	begun, end, full := make(chan struct{}), make(chan struct{}), make(signals, 1)
	address, _ := doorway(t, nil, full, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			begun <- struct{}{}
			<-end
		}
		select {
		case <-end:
		default:
			t.Error("one was served beside three others")
		}
		io.WriteString(w, "done")
	})
	answers := make(chan string)
	for range 3 {
		c := dialDoor(t, address)
		go func() { answers <- ask(t, c, "/long") }()
		<-begun
	}
	waiting := dialDoor(t, address)
	go func() { answers <- ask(t, waiting, "/short") }()
	<-full
	close(end)
	for range 4 {
		if got := <-answers; got != "done" {
			t.Errorf("%q", got)
		}
	}
}

// signals tells of each line of a log.
type signals chan struct{}

func (s signals) Write(line []byte) (int, error) {
	s <- struct{}{}
	return len(line), nil
}

// TestDoorBehindTLS: the states of a connection over TLS are its own's.
func TestDoorBehindTLS(t *testing.T) {
	t.Parallel()
	certificate, key := certtest.Pair(t, 1)
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certificate)
	address, _ := doorway(t, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, io.Discard, func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, r.Proto) })
	for i, protocols := range []string{"h2", "http/1.1", "h2", "http/1.1", "h2", "h2"} {
		client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: protocols == "h2", TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "gateway.example"}}} //nolint:gosec // the test's own server
		req, err := http.NewRequestWithContext(context.Background(), http.MethodGet, "https://"+address, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		resp.Body.Close() // the connection stays open, idle
		t.Cleanup(client.CloseIdleConnections)
	}
}

func TestRoomFor(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]int{0: 8, 48: 8, 256: 96, 1024: 480, 1 << 20: 524256, 1 << 63: 1 << 20} {
		if got := roomFor(files); got != want {
			t.Errorf("%d files: room for %d, want %d", files, got, want)
		}
	}
}
