package lab

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
)

// Server serves a provider on a listener. Methods may be called concurrently.
type Server struct {
	// URL is "http://HOST:PORT"; with "/v1" behind it, it is an OpenAI base URL.
	URL string

	provider *Provider
	addr     string

	mu      sync.Mutex // held by those who start and stop
	srv     *http.Server
	done    chan struct{}
	endBase context.CancelFunc

	busy busy
}

// Listen opens a loopback listener on a free port and serves p there.
func Listen(p *Provider) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no loopback port for the simulated provider %s: %w", p.opt.Name, err)
	}
	return Serve(l, p), nil
}

// Serve serves p on l until Stop or Close.
func Serve(l net.Listener, p *Provider) *Server {
	s := &Server{URL: "http://" + l.Addr().String(), provider: p, addr: l.Addr().String()}
	if u, ok := l.(interface{ URL() string }); ok {
		s.URL, s.addr = u.URL(), ""
	}
	s.run(l)
	return s
}

// BaseURL returns the URL up to and with /v1.
func (s *Server) BaseURL() string { return s.URL + "/v1" }

// Provider returns what is served.
func (s *Server) Provider() *Provider { return s.provider }

func (s *Server) run(l net.Listener) {
	base, end := context.WithCancel(context.Background())
	srv := &http.Server{
		Handler:     s.busy.track(s.provider),
		ConnContext: s.provider.ConnContext,
		BaseContext: func(net.Listener) context.Context { return base },
		// Cut connections are what this server is for; they are not worth a line.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	done := make(chan struct{})
	s.srv, s.done, s.endBase = srv, done, end
	go func() {
		defer close(done)
		srv.Serve(l) // returns when the listener is closed, which is the only way out
	}()
}

// Down closes the listener and every connection: from now on dials are refused. It needs a real
// socket; a [PipeListener] has SetDialing. A server that is down stays so.
func (s *Server) Down() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

// Up listens again on the old address after Down. It fails if the port is taken meanwhile.
func (s *Server) Up() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv != nil {
		return nil
	}
	if s.addr == "" {
		return errors.New("a server in memory cannot listen again; use SetDialing on its listener")
	}
	l, err := net.Listen("tcp", s.addr)
	if err != nil {
		return fmt.Errorf("the simulated provider %s cannot come back: %w", s.provider.opt.Name, err)
	}
	s.run(l)
	return nil
}

// Stop lets the answers in flight end until the context does, then closes every connection. It
// returns the context's error if it had to. Stopping again does nothing.
func (s *Server) Stop(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.srv == nil {
		return nil
	}
	err := s.srv.Shutdown(ctx)
	s.close()
	return err
}

// Close ends everything at once, answers in flight included, and waits for it.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.close()
}

func (s *Server) close() {
	if s.srv == nil {
		return
	}
	s.endBase()
	s.srv.Close()
	<-s.done
	s.busy.wait() // answers end by themselves once their context and connection are gone
	s.srv = nil
}

// busy counts the answers in progress, so that nothing runs on after a server's end. A WaitGroup
// would not do: a request may still begin while the end waits.
type busy struct {
	mu   sync.Mutex
	n    int
	idle chan struct{} // closed at zero, if somebody waits
}

func (b *busy) track(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b.add(1)
		defer b.add(-1)
		h.ServeHTTP(w, r)
	})
}

func (b *busy) add(n int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.n += n
	if b.n == 0 && b.idle != nil {
		close(b.idle)
		b.idle = nil
	}
}

func (b *busy) wait() {
	b.mu.Lock()
	if b.n == 0 {
		b.mu.Unlock()
		return
	}
	b.idle = make(chan struct{})
	idle := b.idle
	b.mu.Unlock()
	<-idle
}
