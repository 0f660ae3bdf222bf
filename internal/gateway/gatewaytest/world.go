// Package gatewaytest puts a gateway and simulated providers on a network in memory, so that
// tests of the client API run on virtual time.
package gatewaytest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
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

// World is a gateway at http://gateway and providers beside it.
type World struct {
	T         *testing.T
	Engine    *resilience.Engine
	Runner    *failover.Runner
	Router    *route.Router
	Gateway   *gateway.Gateway
	Net       *lab.Net
	Client    *http.Client
	Providers map[string]*lab.Provider
	Servers   map[string]*lab.Server
	Log       *bytes.Buffer

	mu      sync.Mutex
	stories []telemetry.Story
}

// New starts providers by these names, each with the keys that its options give, and a gateway
// with the configuration. In it $NAME stands for the base URL of a provider. Everything is
// stopped at the end of the test, or by Close.
func New(t *testing.T, conf string, providers ...lab.Options) *World {
	t.Helper()
	w := &World{T: t, Net: &lab.Net{}, Providers: map[string]*lab.Provider{}, Servers: map[string]*lab.Server{}, Log: &bytes.Buffer{}}
	for _, o := range providers {
		l, err := w.Net.Listen(o.Name)
		if err != nil {
			t.Fatal(err)
		}
		p := lab.New(o)
		s := lab.Serve(l, p)
		w.Providers[o.Name], w.Servers[o.Name] = p, s
		conf = strings.ReplaceAll(conf, "$"+o.Name, s.BaseURL())
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
	rules, err := classify.New()
	if err != nil {
		t.Fatal(err)
	}
	w.Gateway = gateway.New(gateway.Options{
		Router: func() *route.Router { return w.Router }, Classifier: func() *classify.Classifier { return rules },
		Runner: w.Runner, Dial: w.Net.DialContext,
		Logger: slog.New(slog.NewTextHandler(&lockedWriter{w: w.Log, mu: &w.mu}, nil)),
		Observe: func(s telemetry.Story) {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.stories = append(w.stories, s)
		},
	})
	l, err := w.Net.Listen("gateway")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: w.Gateway, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	served := make(chan struct{})
	go func() {
		defer close(served)
		srv.Serve(l)
	}()
	transport := w.Net.Transport()
	w.Client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		srv.Close()
		<-served
		w.Runner.Close()
		w.Gateway.Close()
		for _, s := range w.Servers {
			s.Close()
		}
	})
	return w
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
	Text   string // the content, of a stream put together
	Finish string
	Done   bool   // the terminator came
	Error  string // code or message of an error object, in the body or in the stream
	Err    error  // of the transport
}

// Chat asks for one chat completion.
func (w *World) Chat(ctx context.Context, model string, stream bool) Answer {
	body := fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"hi"}]}`, model, stream)
	return w.Post(ctx, "/v1/chat/completions", body)
}

// Post sends a body to the gateway.
func (w *World) Post(ctx context.Context, path, body string) Answer {
	req, err := http.NewRequestWithContext(ctx, "POST", "http://gateway"+path, strings.NewReader(body))
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
		for line := range strings.Lines(a.Body) {
			if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
				a.read(data)
			}
		}
		return a
	}
	a.read(a.Body)
	return a
}

func (a *Answer) read(data string) {
	if data == "[DONE]" {
		a.Done = true
		return
	}
	var v struct {
		Choices []struct {
			Message, Delta struct{ Content string }
			FinishReason   string `json:"finish_reason"`
		}
		Error *struct{ Code, Message string }
	}
	if json.Unmarshal([]byte(data), &v) != nil {
		return
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
