package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"omniroute/internal/lab"
)

func requestWithCancel() (*http.Request, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	return httptest.NewRequest("POST", "/v1/chat/completions", nil).WithContext(ctx), cancel
}

// TestDrain stops a gateway in the middle of a stream: nobody new is taken in, the stream ends well.
func TestDrain(t *testing.T) {
	t.Parallel()
	base, end := held(t)
	g := start(t, t.TempDir(), yaml(base, ""))
	s := g.open("chat")
	events, err := g.request("GET", "/admin/v1/events", "")
	if err != nil {
		t.Fatal(err)
	}
	defer events.Body.Close()
	stopped := make(chan error, 1)
	go func() { stopped <- g.Stop(context.Background()) }()
	g.log.wait(t, "waiting for requests to finish", 1)
	if code, text := g.call("GET", "/readyz", ""); code != 503 || !strings.Contains(text, "shutting down") {
		t.Errorf("readyz: %d %s", code, text)
	}
	if code, text := g.call("GET", "/healthz", ""); code != 200 {
		t.Errorf("healthz: %d %s", code, text)
	}
	if code, text := g.chat("chat"); code != 503 || !strings.Contains(text, "shutting_down") {
		t.Errorf("a new request: %d %s", code, text)
	}
	if err := g.Reload(); err == nil {
		t.Error("it reloads while it stops")
	}
	end()
	if whole, err := s.rest(); !whole || err != nil {
		t.Errorf("the stream was cut: %v %v", whole, err)
	}
	if err := <-stopped; err != nil {
		t.Error(err)
	}
	if _, err := g.request("GET", "/healthz", ""); err == nil {
		t.Error("it still listens")
	}
}

// TestCut stops a gateway whose stream would take for ever: at the end of the time its client is
// told so, and the call upstream is ended. The upstream is not blamed.
func TestCut(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, func(o *lab.Options) {
		o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 40) }
		o.Script = []lab.Phase{lab.Always(lab.SlowContent(time.Hour))}
	})
	g := start(t, t.TempDir(), yaml(base, ""))
	s := g.open("chat")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var cut *CutError
	if err := g.Stop(ctx); !errors.As(err, &cut) || cut.Requests != 1 || !strings.Contains(err.Error(), "shutdown_grace") {
		t.Errorf("%v", err)
	}
	text, err := io.ReadAll(s.body)
	if err != nil || strings.Contains(string(text), "[DONE]") || !strings.Contains(string(text), `"code":"shutting_down"`) ||
		!strings.HasSuffix(string(text), "}\n\n") {
		t.Errorf("%v in %s", err, text)
	}
	s.resp.Body.Close()
	for _, p := range g.Engine().Status().Providers {
		if p.Breaker.Failures != 0 || p.Connections[0].State != "ready" {
			t.Errorf("the upstream is blamed: %+v", p)
		}
	}
	soon, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := p.Await(soon, 1, 0); err != nil {
		t.Errorf("the upstream call goes on: %v", err)
	}
}

// TestCutBeforeAnAnswer stops a gateway while a request waits for its first content: the client gets
// an error that tells it to go elsewhere.
func TestCutBeforeAnAnswer(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, func(o *lab.Options) { o.Script = []lab.Phase{lab.Always(lab.Hang())} })
	g := start(t, t.TempDir(), yaml(base, ""))
	answered := make(chan string, 1)
	go func() {
		code, text := g.chat("chat")
		answered <- fmt.Sprint(code, " ", text)
	}()
	soon, done := context.WithTimeout(context.Background(), patience)
	defer done()
	if err := p.Await(soon, 1, 1); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var cut *CutError
	if err := g.Stop(ctx); !errors.As(err, &cut) {
		t.Errorf("%v", err)
	}
	if a := <-answered; !strings.HasPrefix(a, "503 ") || !strings.Contains(a, `"code":"shutting_down"`) {
		t.Errorf("%s", a)
	}
}
