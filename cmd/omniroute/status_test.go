package main

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

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
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
	if text := out.String(); strings.Count(text, "acme") != 2 || !strings.Contains(text, "does not answer") || strings.Contains(text, "\x1b") {
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

func TestDraw(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	for _, inPlace := range []bool{true, false} {
		if err := draw(&out, []byte("one\ntwo\n"), inPlace); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.String(), "\x1b[Hone\x1b[K\ntwo\x1b[K\n\x1b[J"+"one\ntwo\n\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
