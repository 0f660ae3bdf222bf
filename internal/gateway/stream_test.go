package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"omniroute/internal/gateway/gatewaytest"
)

const (
	role   = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
	hello  = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}`
	finish = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
	usage  = `data: {"id":"c","object":"chat.completion.chunk","model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":5,"total_tokens":8}}`
	done   = `data: [DONE]`
	gap    = "\n\n"
)

// raw is an upstream that a test writes byte for byte.
type raw func(w http.ResponseWriter, flush func(), r *http.Request)

func (f raw) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "text/event-stream")
	f(w, func() { http.NewResponseController(w).Flush() }, r)
}

func says(text string) raw {
	return func(w http.ResponseWriter, _ func(), _ *http.Request) { io.WriteString(w, text) }
}

// rawWorld runs a test with the upstream u as the only target of "m", or, with a second upstream,
// before it.
func rawWorld(t *testing.T, relay string, u, second http.Handler, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	rawWorldOver(t, relay, u, second, nil, f)
}

func rawWorldOver(t *testing.T, relay string, u, second http.Handler, wrap func(net.Conn) net.Conn, f func(t *testing.T, w *gatewaytest.World)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conf := "store: \"memory:\"\nproviders:\n  u: {base_url: \"$u\", connections: [{id: k1, api_key: upstream-secret}], models: [m]}\n"
		handlers := map[string]http.Handler{"u": u}
		targets := "u/m"
		if second != nil {
			conf += "  v: {base_url: \"$v\", connections: [{id: k2, api_key: upstream-secret}], models: [m]}\n"
			handlers["v"], targets = second, "u/m, v/m"
		}
		conf += "combos:\n  m: {targets: [" + targets + "]}\nrelay: {" + relay + "}\n"
		f(t, gatewaytest.Start(t, gatewaytest.Setup{Config: conf, Handlers: handlers, Wrap: wrap}))
	})
}

// TestStreamFidelity has what upstreams send, byte by byte, and what the client must get.
func TestStreamFidelity(t *testing.T) {
	t.Parallel()
	big := `data: {"id":"c","choices":[{"index":0,"delta":{"content":"` + strings.Repeat("große Wörter ", 8<<20/16) + `"},"finish_reason":null}]}`
	plain := role + gap + hello + gap + finish + gap + usage + gap + done + gap
	for name, c := range map[string]struct{ sent, want string }{
		"as usual":                      {plain, plain},
		"CRLF":                          {strings.ReplaceAll(plain, "\n", "\r\n"), plain},
		"CR":                            {strings.ReplaceAll(plain, "\n", "\r"), plain},
		"byte order mark":               {"\xef\xbb\xbf" + plain, plain},
		"no final blank line":           {strings.TrimSuffix(plain, "\n"), plain},
		"no final line end":             {strings.TrimSuffix(plain, gap), plain},
		"further blank lines":           {"\n\n" + strings.ReplaceAll(plain, gap, "\n\n\n\n"), plain},
		"comments":                      {": OPENROUTER PROCESSING\n\n" + hello + gap + ": keep-alive\n\n" + finish + gap + done + gap, ": OPENROUTER PROCESSING\n\n" + hello + gap + ": keep-alive\n\n" + finish + gap + done + gap},
		"a comment within an event":     {": x\n" + hello + gap + finish + gap + done + gap, ": x\n" + hello + gap + finish + gap + done + gap},
		"ids, retries, unknown fields":  {"id: 7\nretry: 10\nwhat: ever\n" + hello + gap + finish + gap + done + gap, "id: 7\nretry: 10\nwhat: ever\n" + hello + gap + finish + gap + done + gap},
		"no space after the colon":      {strings.ReplaceAll(plain, "data: ", "data:"), strings.ReplaceAll(plain, "data: ", "data:")},
		"another API's events":          {hello + gap + "event: ping\ndata: {\"type\":\"ping\"}\n\n" + finish + gap + done + gap, hello + gap + finish + gap + done + gap},
		"unknown JSON":                  {hello + gap + `data: {"object":"future.thing","x":[1,2,{"y":null}]}` + gap + finish + gap + done + gap, hello + gap + `data: {"object":"future.thing","x":[1,2,{"y":null}]}` + gap + finish + gap + done + gap},
		"several data lines":            {"data: {\"id\":\"c\",\ndata: \"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n" + finish + gap + done + gap, "data: {\"id\":\"c\",\ndata: \"choices\":[{\"index\":0,\"delta\":{\"content\":\"x\"}}]}\n\n" + finish + gap + done + gap},
		"an event of 8 MiB":             {big + gap + finish + gap + done + gap, big + gap + finish + gap + done + gap},
		"empty data":                    {hello + gap + "data:\n\ndata: \n\n" + finish + gap + done + gap, hello + gap + finish + gap + done + gap},
		"no terminator":                 {hello + gap + finish + gap + usage + gap, hello + gap + finish + gap + usage + gap + done + gap},
		"two terminators":               {plain + done + gap, plain},
		"something after the end":       {plain + hello + gap, plain},
		"an event that does not parse":  {hello + gap + `data: {"id":` + gap + finish + gap + done + gap, hello + gap + finish + gap + done + gap},
		"finish and content in one":     {`data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}` + gap + done + gap, `data: {"choices":[{"index":0,"delta":{"content":"x"},"finish_reason":"stop"}]}` + gap + done + gap},
		"usage between":                 {hello + gap + usage + gap + hello + gap + finish + gap + done + gap, hello + gap + usage + gap + hello + gap + finish + gap + done + gap},
		"nothing but length":            {role + gap + strings.Replace(finish, "stop", "length", 1) + gap + done + gap, role + gap + strings.Replace(finish, "stop", "length", 1) + gap + done + gap},
		"nothing but tokens, no [DONE]": {role + gap + finish + gap + usage + gap, role + gap + finish + gap + usage + gap + done + gap},
	} {
		for _, pieces := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, in pieces %v", name, pieces), func(t *testing.T) {
				if pieces && len(c.sent) > 1<<20 && testing.Short() {
					t.Skip("a byte at a time takes a while")
				}
				var wrap func(net.Conn) net.Conn
				if pieces {
					most := 1
					if len(c.sent) > 1<<20 {
						most = 977
					}
					wrap = func(c net.Conn) net.Conn { return &trickle{c, most} }
				}
				rawWorldOver(t, "", says(c.sent), nil, wrap, func(t *testing.T, w *gatewaytest.World) {
					a := w.Chat(t.Context(), "m", true)
					if a.Status != 200 || a.Err != nil || a.Body != c.want {
						t.Errorf("%d %v\ngot  %.600q\nwant %.600q", a.Status, a.Err, a.Body, c.want)
					}
					if got := a.Header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
						t.Errorf("content type %q", got)
					}
					if s := w.Stories(); len(s) != 1 || s[0].Broke != "" || s[0].Status != 200 {
						t.Errorf("story %+v", s)
					}
				})
			})
		}
	}
}

// trickle reads so many bytes at a time.
type trickle struct {
	net.Conn
	most int
}

func (c *trickle) Read(b []byte) (int, error) { return c.Conn.Read(b[:min(c.most, len(b))]) }

// TestStreamsThatBreak has what must end in exactly one error event, after what had come.
func TestStreamsThatBreak(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ sent, kept, message string }{
		"no finish reason":            {role + gap + hello + gap, role + gap + hello + gap, "network"},
		"terminator without a finish": {hello + gap + done + gap, hello + gap, "network"},
		"the finish does not parse":   {hello + gap + `data: {"choices":[{"finish_reason":"st` + gap + done + gap, hello + gap, "network"},
		"an error object":             {hello + gap + `data: {"error":{"message":"boom upstream-secret","type":"server_error"}}` + gap, hello + gap, "boom [redacted]"},
		"an error event":              {hello + gap + "event: error\ndata: {\"message\":\"boom\"}\n\n", hello + gap, "boom"},
		"a finish reason of error":    {hello + gap + strings.Replace(finish, "stop", "error", 1) + gap + done + gap, hello + gap, "broke off"},
		"an event that is cut short":  {hello + gap + finish[:len(finish)/2], hello + gap, "network"},
		"an event that is too large":  {hello + gap + "data: " + strings.Repeat("x", 9<<20), hello + gap, "broke off"},
	} {
		t.Run(name, func(t *testing.T) {
			rawWorld(t, "", says(c.sent), nil, func(t *testing.T, w *gatewaytest.World) {
				a := w.Chat(t.Context(), "m", true)
				rest, ok := strings.CutPrefix(a.Body, c.kept)
				if a.Status != 200 || a.Err != nil || !ok || a.Done || a.Wrong != "" || strings.Count(rest, "data: ") != 1 || !strings.HasPrefix(rest, `data: {"error":{`) || !strings.Contains(rest, c.message) {
					t.Errorf("%d %v %s\n%.2000s", a.Status, a.Err, a.Wrong, a.Body)
				}
				if strings.Contains(a.Body, "upstream-secret") {
					t.Error("the key went to the client")
				}
				if s := w.Stories(); len(s) != 1 || s[0].Broke == "" || s[0].Attempts[0].Outcome != "failed" {
					t.Errorf("story %+v", s)
				}
			})
		})
	}
}

// TestCompressedUpstreams has every encoding, for a stream of which each event must come at once
// and for a whole answer.
func TestCompressedUpstreams(t *testing.T) {
	t.Parallel()
	type flusher interface {
		io.WriteCloser
		Flush() error
	}
	whole := `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hello"},"finish_reason":"stop"}]}`
	for name, open := range map[string]func(io.Writer) flusher{
		"gzip": func(w io.Writer) flusher { return gzip.NewWriter(w) },
		"br":   func(w io.Writer) flusher { return brotli.NewWriter(w) },
		"zstd": func(w io.Writer) flusher {
			z, err := zstd.NewWriter(w, zstd.WithEncoderConcurrency(1))
			if err != nil {
				t.Fatal(err)
			}
			return z
		},
	} {
		t.Run(name, func(t *testing.T) {
			u := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
				w.Header().Set("Content-Encoding", name)
				z := open(w)
				if r.URL.Query().Get("whole") != "" {
					w.Header().Set("Content-Type", "application/json")
					io.WriteString(z, whole)
					z.Close()
					return
				}
				for _, ev := range []string{role, hello, hello, finish, done} {
					time.Sleep(time.Second)
					io.WriteString(z, ev+gap)
					z.Flush()
					flush()
				}
				z.Close()
			})
			rawWorld(t, "", u, nil, func(t *testing.T, w *gatewaytest.World) {
				a := w.Chat(t.Context(), "m", true)
				if want := role + gap + hello + gap + hello + gap + finish + gap + done + gap; a.Body != want || a.Header.Get("Content-Encoding") != "" {
					t.Errorf("%v %s", a.Header, a.Body)
				}
				if s := w.Stories(); s[0].FirstContent != 2*time.Second {
					t.Errorf("the first content came after %v", s[0].FirstContent)
				}
				b := w.Post(t.Context(), "/v1/chat/completions?whole=1", `{"model":"m"}`)
				if b.Status != 200 || b.Body != whole || b.Header.Get("Content-Length") != fmt.Sprint(len(whole)) {
					t.Errorf("%d %v %s", b.Status, b.Header, b.Body)
				}
			})
		})
	}
}

// TestEventsComeAtOnce: an event is with the client as soon as it is complete, whatever comes
// after it.
func TestEventsComeAtOnce(t *testing.T) {
	u := raw(func(w http.ResponseWriter, flush func(), _ *http.Request) {
		for _, part := range []string{hello + gap, hello + gap + hello + gap + "data: {\"choices\"", ":[]}" + gap, finish + gap + done + gap} {
			io.WriteString(w, part)
			flush()
			time.Sleep(time.Second)
		}
	})
	rawWorld(t, "", u, nil, func(t *testing.T, w *gatewaytest.World) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","stream":true}`))
		start := time.Now()
		resp, err := w.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got bytes.Buffer
		at := map[int]time.Duration{}
		b := make([]byte, 64<<10)
		for {
			n, err := resp.Body.Read(b)
			got.Write(b[:n])
			if events := strings.Count(got.String(), gap); n > 0 && at[events] == 0 {
				at[events] = time.Since(start) + 1
			}
			if err != nil {
				break
			}
		}
		for events, want := range map[int]time.Duration{1: 0, 3: time.Second, 4: 2 * time.Second, 6: 3 * time.Second} {
			if d, ok := at[events]; !ok || d-1 != want {
				t.Errorf("%d events after %v, want %v: %v", events, d-1, want, at)
			}
		}
	})
}
