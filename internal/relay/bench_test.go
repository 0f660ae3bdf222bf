package relay_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniroute/classify"
	"omniroute/failover"
	"omniroute/internal/config"
	"omniroute/internal/gateway"
	"omniroute/internal/route"
	"omniroute/resilience"
)

// load is one kind of request and the answer to it.
type load struct {
	name    string
	request []byte
	answer  [][]byte // one piece a flush
	stream  bool
}

func loads() []load {
	body := func(size int, stream bool) []byte {
		head := fmt.Sprintf(`{"model":"c","stream":%v,"messages":[{"role":"user","content":"`, stream)
		text := strings.Repeat("All lights are green, \\\"she\\\" said. ", size/34+1)
		return []byte(head + text[:max(size-len(head)-4, 0)/34*34] + `"}]}`)
	}
	whole := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1735689600,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("The kettle is on. ", 50) + `"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":250,"completion_tokens":200,"total_tokens":450}}`)
	var chunks [][]byte
	chunk := func(delta, finish string) {
		chunks = append(chunks, fmt.Appendf(nil, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1735689600,"model":"m","system_fingerprint":"fp_1","choices":[{"index":0,"delta":{%s},"logprobs":null,"finish_reason":%s}]}`+"\n\n", delta, finish))
	}
	chunk(`"role":"assistant","content":""`, "null")
	for i := range 97 {
		chunk(fmt.Sprintf(`"content":" word%d"`, i), "null")
	}
	chunk("", `"stop"`)
	chunks = append(chunks, []byte("data: [DONE]\n\n"))
	return []load{
		{"chat-1KiB", body(1<<10, false), [][]byte{whole}, false},
		{"stream-100", body(1<<10, true), chunks, true},
		{"agent-100KiB", body(100<<10, false), [][]byte{whole}, false},
	}
}

// upstream answers with the load's pieces, after it has read the request.
func upstream(b testing.TB, l load) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if !l.stream {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("Content-Length", strconv.Itoa(len(l.answer[0])))
			w.Write(l.answer[0])
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		rc := http.NewResponseController(w)
		for _, p := range l.answer {
			w.Write(p)
			rc.Flush()
		}
	}))
	b.Cleanup(s.Close)
	return s
}

// plainProxy is what the relay is measured against: httputil.ReverseProxy on a transport like ours.
func plainProxy(b testing.TB, up *httptest.Server) http.Handler {
	to, err := url.Parse(up.URL)
	if err != nil {
		b.Fatal(err)
	}
	tr := &http.Transport{
		DialContext: (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}).DialContext, ForceAttemptHTTP2: true,
		MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second, DisableCompression: true,
	}
	b.Cleanup(tr.CloseIdleConnections)
	return &httputil.ReverseProxy{Transport: tr, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
}

// ours is the gateway with everything on that a request passes: keys, gates, log line, story.
func ours(b testing.TB, up *httptest.Server) http.Handler {
	conf := fmt.Sprintf(`
store: "memory:"
client_keys: [client-key-for-the-benchmark]
providers:
  p: {base_url: %q, connections: [{id: k1, api_key: one}, {id: k2, api_key: two}], models: [m]}
  q: {base_url: %q, connections: [{id: k3, api_key: three}], models: [m]}
combos:
  c: {strategy: priority, targets: [p/m, q/m]}
`, up.URL+"/v1", up.URL+"/v1")
	cfg, _, err := config.Parse("bench.yaml", []byte(conf), func(string) (string, bool) { return "", false })
	if err != nil {
		b.Fatal(err)
	}
	engine, err := resilience.New(resilience.Options{Config: route.EngineConfig(cfg)})
	if err != nil {
		b.Fatal(err)
	}
	router, err := route.New(cfg, engine, nil)
	if err != nil {
		b.Fatal(err)
	}
	rules, err := classify.New()
	if err != nil {
		b.Fatal(err)
	}
	runner := failover.NewRunner(engine)
	g := gateway.New(gateway.Options{
		Router: func() *route.Router { return router }, Classifier: func() *classify.Classifier { return rules },
		Runner: runner, Logger: slog.New(slog.NewTextHandler(io.Discard, nil)),
	})
	b.Cleanup(func() {
		runner.Close()
		g.Close()
	})
	return g
}

func cpu() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// way is one way from the client to the upstream.
type way struct {
	name   string
	url    string
	client *http.Client
	cpu    time.Duration
	allocs uint64
	failed int
}

func newWay(b *testing.B, name, url string) *way {
	tr := &http.Transport{DisableCompression: true}
	b.Cleanup(tr.CloseIdleConnections)
	return &way{name: name, url: url, client: &http.Client{Transport: tr}}
}

func (y *way) ask(body []byte) error {
	req, err := http.NewRequestWithContext(context.Background(), "POST", y.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer client-key-for-the-benchmark")
	resp, err := y.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err == nil && (resp.StatusCode != 200 || n == 0) {
		err = fmt.Errorf("%d, %d bytes", resp.StatusCode, n)
	}
	return err
}

// block asks so many times and adds up what it took.
func (y *way) block(n int, body []byte) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := cpu()
	for range n {
		if err := y.ask(body); err != nil {
			// The reverse proxy sends the request's body while it answers, and now and then cuts an
			// answer that overtakes the body's end.
			if y.failed++; y.name != "proxy" || y.failed > 20 {
				return fmt.Errorf("%s: %w", y.name, err)
			}
		}
	}
	y.cpu += cpu() - start
	runtime.ReadMemStats(&after)
	y.allocs += after.Mallocs - before.Mallocs
	return nil
}

// BenchmarkRelay measures the CPU of one request through nothing, through a bare reverse proxy and
// through the gateway, in turns, so that whatever else the machine does meets all three. Client
// and upstream run in the same process: what a way costs is what it takes more than the direct
// one, and "x-proxy" is the gateway's cost over the reverse proxy's.
func BenchmarkRelay(b *testing.B) {
	for _, l := range loads() {
		b.Run(l.name, func(b *testing.B) {
			up := upstream(b, l)
			ways := []*way{newWay(b, "direct", up.URL)}
			for name, h := range map[string]http.Handler{"proxy": plainProxy(b, up), "gateway": ours(b, up)} {
				s := httptest.NewServer(h)
				b.Cleanup(s.Close)
				ways = append(ways, newWay(b, name, s.URL))
			}
			slices.SortFunc(ways, func(x, y *way) int { return strings.Compare(x.name, y.name) }) // direct, gateway, proxy
			const block = 25
			for _, y := range ways {
				if err := y.block(block, l.request); err != nil {
					b.Fatal(err)
				}
				y.cpu, y.allocs = 0, 0
			}
			for b.Loop() {
				for _, y := range ways {
					if err := y.block(block, l.request); err != nil {
						b.Fatal(err)
					}
				}
			}
			per := float64(b.N * block)
			direct := ways[0]
			for _, y := range ways[1:] {
				b.ReportMetric(float64(y.cpu-direct.cpu)/per/1000, y.name+"-µs")
				b.ReportMetric(float64(y.allocs-direct.allocs)/per, y.name+"-allocs")
			}
			b.ReportMetric(float64(direct.cpu)/per/1000, "direct-µs")
			b.ReportMetric(float64(ways[1].cpu-direct.cpu)/float64(ways[2].cpu-direct.cpu), "x-proxy")
			b.ReportMetric(0, "ns/op")
		})
	}
}
