package relay

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"omniroute/internal/dialect"
)

func TestPlainConnWritesBodies(t *testing.T) {
	t.Parallel()
	got := make(chan string, 1)
	up := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		got <- string(b)
	}))
	defer up.Close()
	tr := &http.Transport{DialContext: plain((&net.Dialer{}).DialContext), WriteBufferSize: 2 << 10}
	defer tr.CloseIdleConnections()
	long := strings.Repeat("x", 300<<10)
	for name, body := range map[string]string{"short": `{"model":"a"}`, "long": `{"model":"a","messages":"` + long + `"}`} {
		asked, err := dialect.ReadJSON(dialect.OpGenerate, "/v1/chat/completions", []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		for kind, make := range map[string]func() (io.ReadCloser, int64){
			"body": func() (io.ReadCloser, int64) {
				_, b := asked.Open("another")
				return &upload{body: b}, b.Size()
			},
			"reader": func() (io.ReadCloser, int64) {
				_, b := asked.ForModel("another")
				return io.NopCloser(strings.NewReader(string(b))), int64(len(b))
			},
			"chunked": func() (io.ReadCloser, int64) { _, b := asked.Open("another"); return &upload{body: b}, -1 },
		} {
			b, size := make()
			req, err := http.NewRequestWithContext(context.Background(), "POST", up.URL, b)
			if err != nil {
				t.Fatal(err)
			}
			req.ContentLength = size
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatalf("%s %s: %v", name, kind, err)
			}
			resp.Body.Close()
			if want := strings.Replace(body, `"a"`, `"another"`, 1); <-got != want {
				t.Errorf("%s %s: the upstream got another body", name, kind)
			}
		}
	}
}
