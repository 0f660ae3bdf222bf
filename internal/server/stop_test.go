package server

import (
	"context"
	"errors"
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
	_, base := upstream(t, slow)
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

// TestCut stops a gateway whose stream would take for ever: at the end of the time it is cut, and
// so is the call upstream.
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
	if whole, _ := s.rest(); whole {
		t.Error("an answer that was cut looks whole")
	}
	soon, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := p.Await(soon, 1, 0); err != nil {
		t.Errorf("the upstream call goes on: %v", err)
	}
}
