package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"omniroute/internal/admin"
	"omniroute/internal/config"
)

// pages counts what is drawn and ends the watch after some.
type pages struct {
	bytes.Buffer
	left int
	end  func()
}

func (p *pages) Write(b []byte) (int, error) {
	if p.left--; p.left == 0 {
		p.end()
	}
	return p.Buffer.Write(b)
}

// TestWatch follows a gateway that goes away and comes back, and gives up on one that refuses.
func TestWatch(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/admin/v1/status" {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		if asked.Add(1) == 2 {
			panic(http.ErrAbortHandler) // gone in the middle
		}
		_, _ = w.Write([]byte(`{"version": "1.2.3", "providers": [{"id": "acme"}]}`))
	}))
	srv.Config.SetKeepAlivesEnabled(false) // a client repeats by itself what fails on a used connection
	srv.Start()
	defer srv.Close()
	client, err := admin.NewClientURL(srv.URL, config.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	out := &pages{left: 3, end: cancel}
	if err := watchStatus(ctx, out, client); err != nil {
		t.Fatal(err)
	}
	if text := out.String(); strings.Count(text, "acme") != 3 || strings.Count(text, "this was so at") != 1 || !strings.Contains(text, "does not answer") || strings.Contains(text, "\x1b") {
		t.Error(text)
	}

	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": {"code": "unauthorized", "message": "no token"}}`))
	}))
	defer refusing.Close()
	client, err = admin.NewClientURL(refusing.URL, config.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := watchStatus(t.Context(), out, client); err == nil || !strings.Contains(err.Error(), "no token") {
		t.Error(err)
	}
}

func TestOverdraw(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		page  string
		lines int
		want  string
	}{
		{"one\ntwo\n", 0, "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J"},
		{"one\ntwo\n", 3, "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J"},
		{"one\ntwo\nthree\n", 3, "\x1b[Hone\x1b[K\n… and 2 more lines; a higher terminal shows them\x1b[K\n\x1b[J"},
	} {
		if got := string(overdraw([]byte(c.page), c.lines)); got != c.want {
			t.Errorf("%q on %d lines: %q, want %q", c.page, c.lines, got, c.want)
		}
	}
}

// TestWatchFollows: what happens is shown before the second is over.
func TestWatchFollows(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/admin/v1/events" {
			asked <- struct{}{}
			_, _ = w.Write([]byte(`{"version": "1.2.3"}`))
			return
		}
		for {
			fmt.Fprint(w, ": alive\n\ndata: {}\n\n")
			if http.NewResponseController(w).Flush() != nil || r.Context().Err() != nil {
				return
			}
			select {
			case <-r.Context().Done():
				return
			case <-time.After(time.Millisecond):
			}
		}
	}))
	defer srv.Close()
	client, err := admin.NewClientURL(srv.URL, config.Secret{})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	happened := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); follow(ctx, client, happened) }()
	<-happened
	<-happened
	cancel()
	<-done

	ctx, cancel = context.WithCancel(t.Context())
	go func() {
		for range 5 {
			<-asked
		}
		cancel()
	}()
	if err := watchStatus(ctx, io.Discard, client); err != nil {
		t.Fatal(err)
	}
}
