package gateway_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
)

// sockets starts the two providers of twoProviders and the gateway on loopback sockets.
func sockets(t *testing.T) *gatewaytest.World {
	t.Helper()
	return gatewaytest.Start(t, gatewaytest.Setup{Config: twoProviders, Providers: labs(), Sockets: true})
}

// patience is for how long tests on sockets wait for what comes at once, unless the machine is busy with something else.
const patience = time.Minute

// eventually fails the test unless the condition comes true. It looks often: there is nothing on a
// socket to wait for.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("not within %v: %s", patience, what)
		}
		time.Sleep(time.Millisecond)
	}
}

// dialChat sends a request on a connection of its own and returns it before anything was read.
func dialChat(t *testing.T, w *gatewaytest.World, body string) *net.TCPConn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	return c.(*net.TCPConn)
}

const streamC = `{"model":"c","stream":true,"messages":[{"role":"user","content":"x"}]}`

// TestClientGoneOnSockets: whichever way a client leaves, and whenever, its upstream call ends because of that, long
// before any timer would end it, and nothing is held against anybody (law A9). That it is within a second shows on
// virtual time, in TestClientLeaves.
func TestClientGoneOnSockets(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"close", "reset", "half-close"} {
		for when, fault := range map[string]lab.Fault{"before an answer": lab.Hang(), "in the middle": lab.Stall(3, 0), "while it streams": lab.SlowContent(50 * time.Millisecond)} {
			t.Run(how+" "+when, func(t *testing.T) {
				t.Parallel()
				w := gatewaytest.Start(t, gatewaytest.Setup{Config: strings.Replace(twoProviders, "{answer_timeout: 20s}",
					"{deadline: 15m, first_token_timeout: 10m, suspect_after: 9m, idle_timeout: 10m, stall_timeout: 10m}", 1), Providers: labs(), Sockets: true})
				w.Providers["p"].SetFault(fault)
				c := dialChat(t, w, streamC)
				eventually(t, "the call arrives", func() bool { return w.Providers["p"].InFlight() == 1 })
				if when != "before an answer" {
					r := bufio.NewReader(c)
					for range 12 {
						if _, err := r.ReadString('\n'); err != nil {
							t.Fatal(err)
						}
					}
				}
				switch how {
				case "reset":
					c.SetLinger(0)
					c.Close()
				case "close":
					c.Close()
				case "half-close":
					// A server in Go cannot tell this from a client that has left.
					c.CloseWrite()
				}
				eventually(t, "the call ends", func() bool { return w.Providers["p"].InFlight() == 0 })
				eventually(t, "the story is told", func() bool { return len(w.Stories()) == 1 })
				if how == "half-close" {
					// It still reads, and must not take what it gets for a whole answer.
					rest, err := io.ReadAll(c)
					if when == "before an answer" && len(rest) > 0 || bytes.HasSuffix(rest, []byte("\r\n0\r\n\r\n")) {
						t.Errorf("a client that still reads got %q, %v", rest, err)
					}
				}
				if s := w.Stories()[0]; s.Status != 499 || len(s.Attempts) != 1 || s.Attempts[0].Outcome != "canceled" {
					t.Errorf("story %+v", s)
				}
				for _, p := range w.Engine.Status().Providers {
					if p.Breaker.Failures != 0 || p.Connections[0].State != "ready" {
						t.Errorf("a client that left changed %+v", p)
					}
				}
			})
		}
	}
}

// TestSlowReaderOnSockets: a client that reads slowly gets everything.
func TestSlowReaderOnSockets(t *testing.T) {
	t.Parallel()
	u := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
		for range 4000 {
			io.WriteString(w, hello+gap)
			flush()
		}
		io.WriteString(w, finish+gap+done+gap)
	})
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Handlers: map[string]http.Handler{"u": u},
		Config: "store: \"memory:\"\nproviders:\n  u: {base_url: \"$u\", connections: [{id: k1, api_key: x}], models: [c]}\n"})
	c := dialChat(t, w, streamC)
	c.SetReadBuffer(4 << 10)
	var got bytes.Buffer
	b := make([]byte, 16<<10)
	for !bytes.HasSuffix(got.Bytes(), []byte("\r\n0\r\n\r\n")) {
		n, err := c.Read(b)
		if got.Write(b[:n]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(200 * time.Microsecond)
	}
	if n := strings.Count(got.String(), `"hello"`); n != 4000 || strings.Count(got.String(), "[DONE]") != 1 {
		t.Errorf("%d events", n)
	}
}

// TestCutsOnSockets: a reset, a FIN in a chunk and the like after content end in one error event;
// before content nobody sees them.
func TestCutsOnSockets(t *testing.T) {
	t.Parallel()
	for name, style := range map[string]lab.CutStyle{"reset": lab.CutReset, "FIN in a chunk": lab.CutFIN, "end of the answer": lab.CutQuiet, "unframed": lab.CutUnframed} {
		for _, after := range []int{0, 3} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				t.Parallel()
				w := sockets(t)
				w.Providers["p"].SetFault(lab.Cut(after, style))
				a := w.Chat(t.Context(), "c", true)
				switch {
				case a.Status != 200 || a.Err != nil || a.Wrong != "":
					t.Errorf("%+v", a)
				case after == 0 && (a.Header.Get("X-Omniroute-Provider") != "q" || !a.Done || a.Error != ""):
					t.Errorf("%+v", a)
				case after > 0 && (a.Error == "" || a.Done || a.Text == ""):
					t.Errorf("%+v", a)
				}
			})
		}
	}
}

// TestHTTP2Upstream has an upstream on TLS with HTTP/2 that says GOAWAY, and one that drops the
// connection, both in the middle of a stream.
func TestHTTP2Upstream(t *testing.T) {
	t.Parallel()
	for name, graceful := range map[string]bool{"GOAWAY": true, "connection lost": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			begun, goOn := make(chan struct{}), make(chan struct{})
			var protocol atomic.Value
			up := httptest.NewUnstartedServer(raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
				protocol.Store(r.Proto)
				io.WriteString(w, hello+gap)
				flush()
				close(begun)
				select {
				case <-goOn:
				case <-r.Context().Done():
				}
				io.WriteString(w, hello+gap+finish+gap+done+gap)
			}))
			up.EnableHTTP2 = true
			up.Config.ErrorLog = quiet
			up.StartTLS()
			defer up.Close()
			w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: fmt.Sprintf(
				"store: \"memory:\"\nproviders:\n  u: {base_url: %q, ca_file: %q, connections: [{id: k1, api_key: x}], models: [c]}\n", up.URL+"/v1", certificate(t, up))})
			answer := make(chan gatewaytest.Answer, 1)
			go func() { answer <- w.Chat(t.Context(), "c", true) }()
			<-begun
			if graceful {
				// Shutdown says GOAWAY and waits for the stream, so it must not be waited for here.
				shut := make(chan error, 1)
				go func() { shut <- up.Config.Shutdown(context.Background()) }()
				time.AfterFunc(50*time.Millisecond, func() { close(goOn) })
				defer func() { <-shut }()
			} else {
				up.CloseClientConnections()
			}
			a := <-answer
			switch {
			case protocol.Load() != "HTTP/2.0":
				t.Errorf("the upstream spoke %v", protocol.Load())
			case graceful && (a.Text != "hellohello" || !a.Done || a.Error != ""):
				t.Errorf("%+v", a)
			case !graceful && (a.Text != "hello" || a.Done || a.Error == "" || a.Wrong != ""):
				t.Errorf("%+v", a)
			}
		})
	}
}

// certificate writes the server's own certificate to a file that a configuration can name.
func certificate(t *testing.T, s *httptest.Server) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// TestUntrustedUpstream: a certificate that nobody vouches for gets no key.
func TestUntrustedUpstream(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	up := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	up.Config.ErrorLog = quiet
	up.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	up.StartTLS()
	defer up.Close()
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: fmt.Sprintf(
		"store: \"memory:\"\nproviders:\n  u: {base_url: %q, connections: [{id: k1, api_key: x}], models: [c]}\nrelay: {max_attempts: 1}\n", up.URL+"/v1")})
	a := w.Chat(t.Context(), "c", false)
	if a.Status != 503 || asked.Load() != 0 {
		t.Errorf("asked %d times; %+v", asked.Load(), a)
	}
}
