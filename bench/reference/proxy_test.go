package reference

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestTheReferenceRelays(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Header.Get("Authorization")+" "+r.URL.Path+"\n")
		_ = http.NewResponseController(w).Flush()
		<-first // what came so far must be through before the rest is
		_, _ = io.WriteString(w, "end\n")
	}))
	t.Cleanup(up.Close)
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	done := make(chan error, 1)
	go func() { done <- Serve(ctx, "127.0.0.1:0", up.URL, "secret", w) }()
	var at struct{ URL string }
	if err := json.NewDecoder(r).Decode(&at); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "POST", at.URL+"/v1/x", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	body := bufio.NewReader(resp.Body)
	if line, err := body.ReadString('\n'); err != nil || line != "Bearer secret /v1/x\n" {
		t.Errorf("the first line is %q, %v", line, err)
	}
	close(first)
	if rest, err := io.ReadAll(body); err != nil || string(rest) != "end\n" {
		t.Errorf("the rest is %q, %v", rest, err)
	}
	resp.Body.Close()
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := Serve(t.Context(), "127.0.0.1:0", "no url", "", io.Discard); err == nil {
		t.Error("a reference to nowhere was started")
	}
}
