//go:build unix

package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// number reads a metric of the gateway's process.
func (p *process) number(name string) int {
	p.t.Helper()
	_, text := p.call("GET", "/metrics", "")
	m := regexp.MustCompile(`(?m)^` + name + ` (\S+)$`).FindStringSubmatch(text)
	if m == nil {
		p.t.Fatalf("no %s in the metrics", name)
	}
	f, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		p.t.Fatal(err)
	}
	return int(f)
}

// TestBadClientsLeaveNothingBehind opens 1,000 connections that say nothing or nothing more, sends
// headers a byte at a time, and sends hundreds of requests that no upstream may see. Meanwhile others are
// served. Each is told what is wrong in OpenAI's shape, or closed in order where its headers never
// came; memory and goroutines of the process return to where they were.
func TestBadClientsLeaveNothingBehind(t *testing.T) {
	t.Parallel()
	up, base := upstream(t, nil)
	g := spawn(t, t.TempDir(), yaml(base, "max_body: 64KiB\n"), impatientServe+"=1", "GOGC=25")
	for range 20 { // what the first requests bring with them
		g.chat("chat")
	}
	g.client.CloseIdleConnections()
	goroutines, heap := g.number("go_goroutines"), g.number("go_memstats_heap_inuse_bytes")
	asked := up.Total()

	address := strings.TrimPrefix(g.url, "http://")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(2 * patience))
		return c
	}
	var silent []net.Conn
	for i := range 1000 {
		c := dial()
		if i%2 == 0 { // these have been of use once
			fmt.Fprintf(c, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil || resp.StatusCode != 200 {
				t.Fatal(resp, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
		silent = append(silent, c)
	}
	var clients sync.WaitGroup
	for range 10 {
		clients.Go(func() { // a byte at a time, until it is shut out
			c := dial()
			defer c.Close()
			go func() {
				for _, b := range []byte("POST /v1/chat/completions HTTP/1.1\r\nX-Slow: " + strings.Repeat("x", 1000)) {
					if _, err := c.Write([]byte{b}); err != nil {
						return
					}
					time.Sleep(20 * time.Millisecond) // the pace of the client, nothing waits for it
				}
			}()
			if text, _ := io.ReadAll(c); len(text) > 0 && !strings.HasPrefix(string(text), "HTTP/1.1 4") {
				t.Errorf("slow headers were answered %q", text)
			}
		})
	}
	for name, bad := range map[string]struct {
		header http.Header
		body   string
		status int
	}{
		"no JSON":       {nil, `{"model":"chat"`, 400},
		"no model":      {nil, `{"messages":[]}`, 400},
		"too long":      {nil, strings.Repeat("x", 100<<10), 413},
		"wrong key":     {http.Header{"Authorization": {"Bearer wrong"}}, `{"model":"chat"}`, 401},
		"10000 headers": {manyHeaders(), `{"model":"chat"}`, 0}, // on a slow machine they take longer than this process waits: see TestManyHeaders
	} {
		clients.Go(func() {
			for range 50 {
				r, err := http.NewRequestWithContext(t.Context(), "POST", g.url+"/v1/chat/completions", strings.NewReader(bad.body))
				if err != nil {
					t.Error(err)
					return
				}
				r.Header.Set("Authorization", "Bearer "+clientKey)
				for k, v := range bad.header {
					r.Header[k] = v
				}
				resp, err := g.client.Do(r)
				if err != nil {
					if bad.status != 0 {
						t.Errorf("%s: %v", name, err)
					}
					continue
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if bad.status != 0 && (err != nil || resp.StatusCode != bad.status || !strings.HasPrefix(string(text), `{"error":{"message":`)) {
					t.Errorf("%s: %d %s %v", name, resp.StatusCode, text, err)
				}
			}
		})
	}
	if code, text := g.chat("chat"); code != 200 { // others do not feel it
		t.Errorf("%d %s", code, text)
	}
	asked++
	clients.Wait()
	for _, c := range silent {
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Fatalf("a silent connection was not closed in order: %d %v", n, err)
		}
		c.Close()
	}
	g.client.CloseIdleConnections()
	if n := up.Total(); n != asked {
		t.Errorf("the upstream saw %d requests too many", n-asked)
	}

	const slack = 4 << 20
	var n, bytes int
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, bytes = g.number("go_goroutines"), g.number("go_memstats_heap_inuse_bytes") // and work for the collector
		if n <= goroutines+5 && bytes <= heap+slack {
			return
		}
	}
	t.Errorf("%d goroutines and %d KiB of heap before, %d and %d after", goroutines, heap>>10, n, bytes>>10)
}

// TestStrangersAreKeptApart: who has no key is in the log and the metrics, and in nothing that few fit into.
func TestStrangersAreKeptApart(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	r, err := http.NewRequestWithContext(t.Context(), "POST", g.URL()+"/v1/chat/completions", strings.NewReader(chatBody("large", false)))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Request-Id", "stranger-1")
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != 401 {
		t.Fatal(resp.StatusCode)
	}
	g.log.wait(t, "id=stranger-1 status=401", 1)
	if code, text := g.call("GET", "/admin/v1/series", ""); code != 200 || !strings.Contains(text, `"requests":0`) {
		t.Errorf("the series: %d %s", code, text)
	}
	if code, text := g.call("GET", "/admin/v1/requests/stranger-1", ""); code != 200 || !strings.Contains(text, "invalid_api_key") {
		t.Errorf("its story: %d %s", code, text)
	}
	if code, text := g.call("GET", "/metrics", ""); code != 200 || !strings.Contains(text, `omniroute_requests_total{route="(none)",status="401"} 1`) {
		t.Errorf("the metrics: %d %s", code, text)
	}
	if code, text := g.chat("chat"); code != 200 {
		t.Fatal(code, text)
	}
	if code, text := g.call("GET", "/admin/v1/series", ""); code != 200 || !strings.Contains(text, `"requests":1`) {
		t.Errorf("the series with a client: %d %s", code, text)
	}
}

func manyHeaders() http.Header {
	many := http.Header{}
	for i := range 10_000 {
		many.Set(fmt.Sprint("X-Header-", i), "x")
	}
	return many
}

// TestManyHeaders: far more headers than are taken are refused in the API's own words, and read for it.
func TestManyHeaders(t *testing.T) {
	t.Parallel()
	up, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	r, err := http.NewRequestWithContext(t.Context(), "POST", g.URL()+"/v1/chat/completions", strings.NewReader(`{"model":"chat"}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = manyHeaders()
	r.Header.Set("Authorization", "Bearer "+clientKey)
	resp, err := g.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 431 || !strings.HasPrefix(string(text), `{"error":{"message":"The request has more than`) || up.Total() != 0 {
		t.Errorf("%d %s %v", resp.StatusCode, text, err)
	}
}
