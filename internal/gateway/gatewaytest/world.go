// Package gatewaytest puts a gateway and simulated providers on a network in memory, so that
// tests of the client API run on virtual time.
package gatewaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/gateway"
	"omniroute/internal/lab"
	"omniroute/internal/route"
	"omniroute/internal/telemetry"
	"omniroute/resilience"
)

// World is a gateway and providers beside it.
type World struct {
	// URL is where the gateway is: http://gateway.localhost, unless it is on a socket.
	URL string
	// Upstreams has the URLs of providers and handlers by name.
	Upstreams map[string]string

	T         *testing.T
	Engine    *resilience.Engine
	Runner    *failover.Runner
	Router    *route.Router
	Gateway   *gateway.Gateway
	Net       *lab.Net
	Client    *http.Client
	Providers map[string]*lab.Provider
	Servers   map[string]*lab.Server
	Listeners map[string]*lab.PipeListener

	mu      sync.Mutex
	log     bytes.Buffer
	stories []telemetry.Story
}

// Setup is what a World is made of.
type Setup struct {
	// Config is the gateway's configuration. In it $NAME stands for the base URL of the provider or
	// handler of that name.
	Config string
	// Providers are simulated ones, Handlers upstreams that a test writes itself.
	Providers []lab.Options
	Handlers  map[string]http.Handler
	// Wrap, if set, gets every connection that the gateway makes to an upstream.
	Wrap func(net.Conn) net.Conn
	// Sockets puts everything on loopback sockets and real time, Small gives the sockets of servers
	// the smallest buffers, so that a client that does not read is felt soon.
	Sockets, Small bool
}

// New starts providers by these names, each with the keys that its options give, and a gateway
// with the configuration, in which $NAME stands for the base URL of a provider. Everything is
// stopped at the end of the test.
func New(t *testing.T, conf string, providers ...lab.Options) *World {
	t.Helper()
	return Start(t, Setup{Config: conf, Providers: providers})
}

// Start is New with everything that can be set up.
func Start(t *testing.T, setup Setup) *World {
	t.Helper()
	w := &World{T: t, Net: &lab.Net{}, Providers: map[string]*lab.Provider{}, Servers: map[string]*lab.Server{},
		Listeners: map[string]*lab.PipeListener{}, Upstreams: map[string]string{}}
	conf := setup.Config
	listen := func(name string) net.Listener {
		l, url := w.listen(name, setup)
		w.Upstreams[name] = url
		conf = strings.ReplaceAll(conf, "$"+name, url+"/v1")
		return l
	}
	for _, o := range setup.Providers {
		p := lab.New(o)
		w.Providers[o.Name], w.Servers[o.Name] = p, lab.Serve(listen(o.Name), p)
	}
	for name, h := range setup.Handlers {
		stop := serve(listen(name), h)
		t.Cleanup(stop)
	}
	cfg, _, err := config.Parse("test.yaml", []byte(conf), func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	if w.Engine, err = resilience.New(resilience.Options{Config: route.EngineConfig(cfg)}); err != nil {
		t.Fatal(err)
	}
	w.Runner = failover.NewRunner(w.Engine)
	if w.Router, err = route.New(cfg, w.Engine, nil); err != nil {
		t.Fatal(err)
	}
	rules, err := route.Classifier(cfg)
	if err != nil {
		t.Fatal(err)
	}
	w.Gateway = gateway.New(gateway.Options{
		Router: func() *route.Router { return w.Router }, Classifier: func() *classify.Classifier { return rules },
		Runner: w.Runner, Dial: w.dial(setup),
		Logger: slog.New(slog.NewTextHandler(&lockedWriter{w: &w.log, mu: &w.mu}, nil)),
		Observe: func(s telemetry.Story) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stories = append(w.stories, s)
		},
	})
	l, url := w.listen("gateway.localhost", setup)
	w.URL = url
	stop := serve(l, w.Gateway)
	transport := &http.Transport{DialContext: w.dial(Setup{Sockets: setup.Sockets}), DisableCompression: true}
	w.Client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		stop()
		w.Runner.Close()
		w.Gateway.Close()
		for _, s := range w.Servers {
			s.Close()
		}
	})
	return w
}

// serve serves h on l and returns what ends it at once and waits for the answers in progress.
func serve(l net.Listener, h http.Handler) (stop func()) {
	var busy sync.WaitGroup
	tracked := func(w http.ResponseWriter, r *http.Request) {
		busy.Add(1)
		defer busy.Done()
		h.ServeHTTP(w, r)
	}
	srv := &http.Server{Handler: http.HandlerFunc(tracked), ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = srv.Serve(l) // returns when it is closed, which is the only way out
	}()
	return func() {
		srv.Close()
		<-served
		busy.Wait()
	}
}

// listen opens a listener and returns its URL.
func (w *World) listen(name string, setup Setup) (net.Listener, string) {
	if setup.Sockets {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			w.T.Fatal(err)
		}
		url := "http://" + l.Addr().String()
		if setup.Small {
			l = smallBuffers{l}
		}
		return l, url
	}
	l, err := w.Net.Listen(name)
	if err != nil {
		w.T.Fatal(err)
	}
	w.Listeners[name] = l
	return l, l.URL()
}

// smallBuffers makes connections with the smallest buffers that the system has.
type smallBuffers struct{ net.Listener }

func (l smallBuffers) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if tcp, ok := c.(*net.TCPConn); ok {
		err = errors.Join(err, tcp.SetWriteBuffer(1), tcp.SetReadBuffer(1))
	}
	return c, err
}

func (w *World) dial(setup Setup) func(ctx context.Context, network, address string) (net.Conn, error) {
	dial := w.Net.DialContext
	if setup.Sockets {
		dial = (&net.Dialer{}).DialContext
	}
	if setup.Wrap == nil {
		return dial
	}
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return setup.Wrap(c), nil
	}
}

type lockedWriter struct {
	w  io.Writer
	mu *sync.Mutex
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// Logged returns what the gateway has logged so far.
func (w *World) Logged() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.log.String()
}

// Stories returns what was told of the requests so far, oldest first.
func (w *World) Stories() []telemetry.Story {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]telemetry.Story(nil), w.stories...)
}

// Answer is what a client got.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	ID     string // of the completion
	Text   string // the content, of a stream put together
	Finish string
	Done   bool   // the terminator came
	Error  string // code or message of an error object, in the body or in the stream
	Events int    // of a stream: how many came
	// Wrong is what no stream may have: something after the terminator or after an error, two
	// answers in one, an event that does not parse.
	Wrong string
	Err   error // of the transport
}

// Chat asks for one chat completion.
func (w *World) Chat(ctx context.Context, model string, stream bool) Answer {
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, model, stream)
	return w.Post(ctx, "/v1/chat/completions", body)
}

// Post sends a body to the gateway.
func (w *World) Post(ctx context.Context, path, body string) Answer {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL+path, strings.NewReader(body))
	if err != nil {
		return Answer{Err: err}
	}
	req.Header.Set("Content-Type", "application/json")
	return w.Do(req)
}

// Do sends a request and reads the answer.
func (w *World) Do(req *http.Request) Answer {
	resp, err := w.Client.Do(req)
	if err != nil {
		return Answer{Err: err}
	}
	defer resp.Body.Close()
	a := Answer{Status: resp.StatusCode, Header: resp.Header}
	b, err := io.ReadAll(resp.Body)
	a.Body, a.Err = string(b), err
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		for block := range strings.SplitSeq(a.Body, "\n\n") {
			a.event(block)
		}
		return a
	}
	a.read(a.Body)
	return a
}

// event reads one block of a stream.
func (a *Answer) event(block string) {
	var data []string
	for line := range strings.Lines(block) {
		if d, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "data:"); ok {
			data = append(data, strings.TrimPrefix(d, " "))
		}
	}
	switch {
	case data == nil:
		return
	case a.Done:
		a.Wrong = "something after the terminator"
	case a.Error != "":
		a.Wrong = "something after the error"
	}
	a.Events++
	a.read(strings.Join(data, "\n"))
}

func (a *Answer) read(data string) {
	if data == "[DONE]" {
		a.Done = true
		return
	}
	var v struct {
		ID      string
		Choices []struct {
			Message, Delta struct{ Content string }
			FinishReason   string `json:"finish_reason"`
		}
		Error *struct{ Code, Message string }
	}
	if err := json.Unmarshal([]byte(data), &v); err != nil {
		a.Wrong = err.Error()
		return
	}
	if v.ID != "" {
		if a.ID != "" && a.ID != v.ID {
			a.Wrong = "two answers in one: " + a.ID + " and " + v.ID
		}
		a.ID = v.ID
	}
	for _, c := range v.Choices {
		a.Text += c.Message.Content + c.Delta.Content
		if c.FinishReason != "" {
			a.Finish = c.FinishReason
		}
	}
	if v.Error != nil {
		a.Error = v.Error.Code
		if a.Error == "" {
			a.Error = v.Error.Message
		}
	}
}
