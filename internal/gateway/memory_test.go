package gateway_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"omniroute/internal/gateway/gatewaytest"
)

// TestStalledStreamsAreSmall opens a thousand streams that nobody reads and counts what each costs
// the gateway. What the same streams cost without a gateway between is taken off, since client
// and upstream run in this process too.
func TestStalledStreamsAreSmall(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own memory is in the numbers")
	}
	// Of the bound the two servers' and transport's buffers and four goroutines are two thirds.
	const streams, bound = 1000, 48 << 10
	u := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
		io.WriteString(w, role+gap)
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, hello+gap); err != nil {
				return
			}
			flush()
		}
	})
	// With small windows the kernel's buffers are full soon.
	small := func(c net.Conn) net.Conn {
		c.(*net.TCPConn).SetReadBuffer(2 << 10)
		return c
	}
	w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"u": u}, Sockets: true, Small: true, Wrap: small,
		Config: "store: \"memory:\"\nproviders:\n  u: {base_url: \"$u\", connections: [{id: k1, api_key: x}], models: [c]}\n"})
	idle := runtime.NumGoroutine()
	cost := func(url string) int64 {
		before := inUse()
		conns := make([]net.Conn, streams)
		for i := range conns {
			c, err := net.Dial("tcp", strings.TrimPrefix(url, "http://"))
			if err != nil {
				t.Fatal(err)
			}
			conns[i] = small(c)
			c.SetReadDeadline(time.Now().Add(patience))
			fmt.Fprintf(c, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s", len(streamC), streamC)
			if _, err := io.ReadFull(c, make([]byte, 600)); err != nil { // some of the answer
				t.Fatal(err)
			}
		}
		time.Sleep(500 * time.Millisecond) // until every buffer on the way is full
		used := inUse() - before
		for _, c := range conns {
			c.Close()
		}
		eventually(t, "the streams end", func() bool { return runtime.NumGoroutine() < idle+50 })
		return used / streams
	}
	cost(w.Upstreams["u"]) // what the first connections bring with them
	d := cost(w.Upstreams["u"])
	g := cost(w.URL)
	t.Logf("each stream: %d KiB direct, %d KiB through the gateway", d>>10, g>>10)
	if g-d > bound {
		t.Errorf("a stalled stream costs %d KiB, more than %d", (g-d)>>10, bound>>10)
	}
}

// inUse returns the memory in use, stacks included.
func inUse() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestLongQuestionsAreLetGo opens streams with long requests at the same time, so that no two can have the
// same memory, and counts what is left of them once the answers have begun, whether they pass
// through or are translated. Long are bodies, and cookies, which no one gets from the gateway.
func TestLongQuestionsAreLetGo(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own memory is in the numbers")
	}
	const streams, size, bound = 100, 256 << 10, 96 << 10
	text := strings.Repeat("all work and no play ", size/21)
	short := `{"model":"c","stream":true,"messages":[{"role":"user","content":"hi"}]}`
	for _, c := range []struct{ name, path, body, header string }{
		{"long cookie", "/v1/chat/completions", short, "Cookie: " + text[:60<<10] + "\r\n"},
		{"long cookies of the upstream", "/v1/chat/completions", short, "X-Cookies: 4\r\n"},
		{"passed through", "/v1/chat/completions", `{"model":"c","stream":true,"messages":[{"role":"user","content":"` + text + `"}]}`, ""},
		{"translated", "/v1/messages", `{"model":"c","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"` + text + `"}]}`, ""},
		{"after a failure", "/v1/chat/completions", `{"model":"d","stream":true,"messages":[{"role":"user","content":"` + text + `"}]}`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all sync.WaitGroup
			all.Add(streams)
			u := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
				all.Done()
				all.Wait()
				if r.Header.Get("X-Cookies") != "" {
					w.Header()["Set-Cookie"] = []string{text[:50<<10], text[:50<<10], text[:50<<10], text[:50<<10]}
				}
				io.WriteString(w, role+gap+hello+gap)
				flush()
				<-r.Context().Done()
			})
			broken := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusInternalServerError)
			})
			w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"u": u, "b": broken}, Sockets: true, Config: `store: "memory:"
providers:
  u: {base_url: "$u", connections: [{id: k1, api_key: x}], models: [c]}
  b: {base_url: "$b", connections: [{id: k1, api_key: x}], models: [c], resilience: {breaker: {failure_threshold: 1000}, cooldown: {transient_after: 1000}}}
combos:
  d: {targets: [b/c, u/c]}
`})
			before := inUse()
			conns := make([]net.Conn, streams)
			for i := range conns {
				conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(patience))
				fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\n%sContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", c.path, c.header, len(c.body))
				if _, err := io.WriteString(conn, c.body); err != nil {
					t.Fatal(err)
				}
				conns[i] = conn
			}
			for _, conn := range conns {
				if _, err := io.ReadFull(conn, make([]byte, 400)); err != nil { // some of the answer
					t.Fatal(err)
				}
			}
			each := (inUse() - before) / streams
			t.Logf("each stream: %d KiB", each>>10)
			if each > bound {
				t.Errorf("a stream costs %d KiB, more than %d", each>>10, bound>>10)
			}
		})
	}
}

// TestFailingTargetsShareOneQuestion holds long requests at their last target, after ten that have failed, and counts
// what they keep: one copy of each, whatever was tried, and one in the dialect of the targets where that is another.
func TestFailingTargetsShareOneQuestion(t *testing.T) {
	if raceDetector {
		t.Skip("the race detector's own memory is in the numbers")
	}
	const requests, targets, size = 10, 10, 10 << 20
	text := strings.Repeat("all work and no play ", size/21)
	for _, c := range []struct {
		name, dialect string
		copies        float64
	}{
		{"passed through", "openai", 1.1},
		{"translated", "anthropic", 2.2}, // as it came, and as it is sent
	} {
		t.Run(c.name, func(t *testing.T) {
			var here sync.WaitGroup
			here.Add(requests)
			refuses := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				w.WriteHeader(http.StatusInternalServerError)
			})
			last := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				io.Copy(io.Discard, r.Body)
				here.Done()
				<-r.Context().Done()
			})
			var conf strings.Builder
			conf.WriteString("store: \"memory:\"\nrelay: {max_attempts: 20}\nproviders:\n")
			provider := "  %s: {dialect: %s, base_url: \"$%s\", connections: [{id: k1, api_key: x}], models: [m], resilience: {breaker: {failure_threshold: 1000}, cooldown: {transient_after: 1000}}}\n"
			var names []string
			for i := range targets {
				name := fmt.Sprintf("p%d", i)
				names = append(names, name+"/m")
				fmt.Fprintf(&conf, provider, name, c.dialect, "b")
			}
			fmt.Fprintf(&conf, provider+"combos:\n  c: {targets: [%s, u/m]}\n", "u", c.dialect, "u", strings.Join(names, ", "))
			w := gatewaytest.Start(t, gatewaytest.Setup{Handlers: map[string]http.Handler{"u": last, "b": refuses}, Sockets: true, Config: conf.String()})
			before := inUse()
			body := `{"model":"c","max_tokens":9,"messages":[{"role":"user","content":"` + text + `"}]}`
			for range requests {
				conn, err := net.Dial("tcp", strings.TrimPrefix(w.URL, "http://"))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				conn.SetDeadline(time.Now().Add(patience))
				fmt.Fprintf(conn, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", len(body))
				if _, err := io.WriteString(conn, body); err != nil {
					t.Fatal(err)
				}
			}
			here.Wait()
			copies := float64(inUse()-before-int64(len(body))) / requests / size
			t.Logf("each request is kept %.2f times", copies)
			if copies > c.copies {
				t.Errorf("a request is kept %.2f times over while %d targets fail, want at most %.1f", copies, targets, c.copies)
			}
		})
	}
}
