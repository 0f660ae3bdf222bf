package server

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// bombs are a few kilobytes that come to 8 MiB.
func bombs(t *testing.T, fill byte) map[string][]byte {
	t.Helper()
	plain := bytes.Repeat([]byte{fill}, 1<<20)
	all := map[string][]byte{}
	pack := func(name string, w io.WriteCloser, into *bytes.Buffer) {
		for range 8 {
			if _, err := w.Write(plain); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		all[name] = into.Bytes()
	}
	var g, b, z bytes.Buffer
	pack("gzip", gzip.NewWriter(&g), &g)
	pack("br", brotli.NewWriterLevel(&b, 3), &b)
	zw, err := zstd.NewWriter(&z)
	if err != nil {
		t.Fatal(err)
	}
	pack("zstd", zw, &z)
	return all
}

// TestBombs: what unpacks to more than it should is refused as too large where a client sends it, and is a failure of
// the upstream where that does; the gateway goes on.
func TestBombs(t *testing.T) {
	t.Parallel()
	g, v := attacked(t, "")
	for name, bomb := range bombs(t, ' ') {
		r, err := http.NewRequestWithContext(t.Context(), "POST", g.URL()+"/v1/chat/completions", bytes.NewReader(bomb))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+clientKey)
		r.Header.Set("Content-Encoding", name)
		resp, err := g.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != http.StatusRequestEntityTooLarge {
			t.Errorf("a request in %s: %s", name, resp.Status)
		}
		for _, status := range []string{"200 OK", "500 Internal Server Error", "429 Too Many Requests"} {
			for _, kind := range []string{"text/event-stream", "application/json"} {
				if status == "200 OK" && kind == "application/json" {
					continue // up to 256 MiB such an answer is one
				}
				v.mu.Lock()
				v.answer = func(string) string {
					return fmt.Sprintf("HTTP/1.1 %s\r\nContent-Type: %s\r\nContent-Encoding: %s\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", status, kind, name, len(bomb), bomb)
				}
				v.mu.Unlock()
				g.call("POST", "/admin/v1/reset", `{"scope": "all"}`)
				if code, text := g.call("POST", "/v1/chat/completions", chatBody("large", true)); code < 400 || len(text) > 16<<10 {
					t.Errorf("an answer of %s in %s: %d with %d bytes", status, name, code, len(text))
				}
			}
		}
	}
	v.mu.Lock()
	v.answer = nil
	v.mu.Unlock()
	g.call("POST", "/admin/v1/reset", `{"scope": "all"}`)
	if code, text := g.chat("large"); code != 200 {
		t.Errorf("after the bombs: %d %s", code, text)
	}
}
