// Package redistest runs a real redis-server for tests. It is linked into nothing else.
//
// Without the program a test that needs it is skipped and says so; where CI is set it fails.
package redistest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Server is one redis-server process after the other at the same address.
type Server struct {
	// Addr is HOST:PORT.
	Addr string

	t    testing.TB
	args []string
	dir  string

	mu  sync.Mutex
	cmd *exec.Cmd
	out bytes.Buffer
}

// startTime bounds the wait for the first answer, and for any other that a test needs.
const startTime = time.Minute

// Start runs a server that keeps nothing on disk, with further arguments as on its command line
// ("--requirepass", "x"). It ends with the test.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	if err != nil {
		const missing = "redis-server is not installed (Debian: apt-get install redis-server)"
		if os.Getenv("CI") != "" {
			t.Fatal(missing)
		}
		t.Skip(missing)
	}
	s := &Server{t: t, dir: t.TempDir(), Addr: freeAddr(t)}
	_, port, _ := net.SplitHostPort(s.Addr)
	s.args = append([]string{program, "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.dir,
		"--daemonize", "no"}, args...)
	t.Cleanup(func() {
		s.Kill()
		if t.Failed() {
			t.Logf("redis-server: %s", s.tail())
		}
	})
	s.Start()
	return s
}

func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// Start runs the server again after Kill, empty. It returns when the server answers.
func (s *Server) Start() {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		s.t.Fatal("the redis-server is running")
	}
	cmd := exec.CommandContext(context.WithoutCancel(s.t.Context()), s.args[0], s.args[1:]...)
	cmd.Stdout, cmd.Stderr = &s.out, &s.out
	if err := cmd.Start(); err != nil {
		s.t.Fatalf("redis-server: %v", err)
	}
	s.cmd = cmd
	for end := time.Now().Add(startTime); ; time.Sleep(5 * time.Millisecond) {
		if _, err := s.Do("PING"); err == nil || strings.Contains(err.Error(), "NOAUTH") {
			return
		} else if time.Now().After(end) {
			s.t.Fatalf("redis-server does not answer: %v\n%s", err, s.tail())
		}
	}
}

// Kill ends the server as kill -9 does, with all that it holds.
func (s *Server) Kill() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

// Pause stops the process (SIGSTOP); its connections stay open. Resume lets it go on.
func (s *Server) Pause() { s.signal(syscall.SIGSTOP) }

// Resume ends a Pause.
func (s *Server) Resume() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd != nil {
		_ = s.cmd.Process.Signal(sig)
	}
}

func (s *Server) tail() string {
	b := s.out.Bytes()
	return string(b[max(0, len(b)-2000):])
}

// Do sends one command over a connection of its own and returns the answer as text, the parts of
// a list one a line.
func (s *Server) Do(words ...string) (string, error) {
	conn, err := (&net.Dialer{Timeout: startTime}).DialContext(context.WithoutCancel(s.t.Context()), "tcp", s.Addr)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(startTime))
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(w), w)
	}
	if _, err := conn.Write([]byte(b.String())); err != nil {
		return "", err
	}
	return answer(bufio.NewReader(conn))
}

func answer(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimRight(line, "\r\n")
	n := 0
	switch line[0] {
	case '-':
		return "", fmt.Errorf("redis: %s", line[1:])
	case '$', '*':
		if _, err := fmt.Sscan(line[1:], &n); err != nil || n < 0 {
			return "", err
		}
	default:
		return line[1:], nil
	}
	if line[0] == '$' {
		b := make([]byte, n+2)
		for at := 0; at < len(b); {
			m, err := r.Read(b[at:])
			if err != nil {
				return "", err
			}
			at += m
		}
		return string(b[:n]), nil
	}
	var parts []string
	for range n {
		p, err := answer(r)
		if err != nil {
			return "", err
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, "\n"), nil
}

// Must is Do for a command that must work.
func (s *Server) Must(words ...string) string {
	s.t.Helper()
	out, err := s.Do(words...)
	if err != nil {
		s.t.Fatalf("%s: %v", strings.Join(words, " "), err)
	}
	return out
}
