package gateway_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"omniroute/internal/gateway/gatewaytest"
	"omniroute/internal/lab"
	"omniroute/resilience"
)

const guarded = `
store: "memory:"
client_keys: [client-key-1]
max_body: 64KiB
providers:
  p: {base_url: "$p", connections: [{id: k1, api_key: secret-p1}], models: [m]}
  q: {base_url: "http://127.0.0.1:1/v1", connections: [{id: k2, api_key: secret-q2}], models: [n]}
`

// TestBadRequests has what no upstream must see. Every answer has OpenAI's shape.
func TestBadRequests(t *testing.T) {
	t.Parallel()
	squeezed := func(n int) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		io.CopyN(z, zeros{}, int64(n))
		z.Close()
		return b.Bytes()
	}
	zstdBomb := func() []byte {
		var b bytes.Buffer
		z, _ := zstd.NewWriter(&b)
		io.CopyN(z, zeros{}, 64<<20)
		z.Close()
		return b.Bytes()
	}()
	good := []byte(`{"model":"m","messages":[{"role":"user","content":"x"}]}`)
	header := func(pairs ...string) http.Header {
		h := http.Header{}
		for i := 0; i < len(pairs); i += 2 {
			h.Add(pairs[i], pairs[i+1])
		}
		return h
	}
	many := header()
	for i := range 10_000 {
		many.Set(fmt.Sprint("X-Header-", i), "x")
	}
	const chat = "/v1/chat/completions"
	for name, c := range map[string]struct {
		method, path string
		header       http.Header
		body         []byte
		chunked      bool
		status       int
		want         string
	}{
		"no JSON":                {path: chat, body: []byte(`{"model":"m"`), status: 400, want: "JSON"},
		"not an object":          {path: chat, body: []byte(`[1]`), status: 400, want: "object"},
		"nothing":                {path: chat, status: 400, want: "no body"},
		"binary":                 {path: chat, body: []byte("\x00\x01\xff"), status: 400, want: "JSON"},
		"no model":               {path: chat, body: []byte(`{"messages":[]}`), status: 400, want: "model"},
		"the model is a number":  {path: chat, body: []byte(`{"model":7}`), status: 400, want: "model"},
		"another model beside":   {path: chat, body: []byte(`{"model":"m","Model":"n","messages":[]}`), status: 400, want: `"param":"Model"`},
		"the same, escaped":      {path: chat, body: []byte(`{"model":"m","mo\u0044EL":null,"messages":[]}`), status: 400, want: "write model"},
		"a stream that is none":  {path: chat, body: []byte(`{"model":"m","STREAM":true,"messages":[]}`), status: 400, want: "write stream"},
		"unknown provider":       {path: chat, body: []byte(`{"model":"nobody/x"}`), status: 404, want: "model_not_found"},
		"a model that is a path": {path: chat, body: []byte(`{"model":"p/cheap/../dear"}`), status: 400, want: "dot segment"},
		"a model with a query":   {path: chat, body: []byte(`{"model":"p/cheap?key=x"}`), status: 400, want: "question mark"},
		"a model to break logs":  {path: chat, body: []byte(`{"model":"a\nlevel=ERROR msg=\"forged\" \u001b[31m/x"}`), status: 400, want: "control characters"},
		"a very long model":      {path: chat, body: []byte(`{"model":"x/` + strings.Repeat("y", 60_000) + `"}`), status: 400, want: "longer than"},
		"deep":                   {path: chat, body: []byte(`{"model":"m","x":` + strings.Repeat("[", 30_000)), status: 400, want: "JSON"},
		"too long":               {path: chat, body: bytes.Repeat([]byte("x"), 70<<10), status: 413, want: "request_too_large"},
		"too long, unannounced":  {path: chat, body: bytes.Repeat([]byte("x"), 70<<10), chunked: true, status: 413, want: "request_too_large"},
		"a bomb":                 {path: chat, header: header("Content-Encoding", "gzip"), body: squeezed(8 << 20), status: 413, want: "request_too_large"},
		"a bomb in a bomb":       {path: chat, header: header("Content-Encoding", "gzip, gzip"), body: gz(squeezed(8 << 20)), status: 413, want: "request_too_large"},
		"a bomb of zstd":         {path: chat, header: header("Content-Encoding", "zstd"), body: zstdBomb, status: 413, want: "request_too_large"},
		"encodings without end":  {path: chat, header: header("Content-Encoding", strings.Repeat("gzip,", 500)+"gzip"), body: good, status: 415, want: "layers"},
		"unknown encoding":       {path: chat, header: header("Content-Encoding", "lzma"), body: good, status: 415, want: "lzma"},
		"not what it says":       {path: chat, header: header("Content-Encoding", "gzip"), body: good, status: 400, want: "could not be read"},
		"a form without a model": {path: "/v1/audio/transcriptions", header: header("Content-Type", "multipart/form-data; boundary=x"), body: []byte("--x\r\n\r\n\r\n--x--"), status: 400, want: "model"},
		"10,000 headers":         {path: chat, header: many, body: good, status: 431, want: "header"},
		"wrong key":              {path: chat, header: header("Authorization", "Bearer client-key-2"), body: good, status: 401, want: "invalid_api_key"},
		"the upstream's key":     {path: chat, header: header("Authorization", "Bearer secret-p1"), body: good, status: 401, want: "invalid_api_key"},
		"no key":                 {path: chat, header: header("Authorization", ""), body: good, status: 401, want: "invalid_api_key"},
		"no such call":           {path: "/v2/chat", body: good, status: 404, want: "no POST"},
		"another method":         {method: "PUT", path: chat, body: good, status: 405, want: "no PUT"},
		"a read":                 {method: "GET", path: chat, status: 405, want: "no GET"},
		"a list of responses":    {method: "GET", path: "/v1/responses", status: 405, want: "no GET"},
		"no response's id":       {method: "GET", path: "/v1/responses/", status: 404, want: "no GET"},
		"the root of a version":  {method: "GET", path: "/v1", status: 404, want: "no GET"},
		"another version's root": {method: "POST", path: "/v1beta", status: 404, want: "no POST"},
		"a tunnel":               {method: "CONNECT", path: chat, status: 405, want: "no CONNECT"},
		"a deletion":             {method: "DELETE", path: chat, status: 405, want: "takes POST"},
		"a read of nothing":      {method: "GET", path: "/v1/nothing", status: 404, want: "no GET"},
		"up the tree":            {path: "/v1/chat/%2e%2e/%2e%2e/admin", body: good, status: 400, want: "path"},
		"a query in the path":    {path: "/v1/chat%3fkey=x", body: good, status: 400, want: "path"},
		"a backslash":            {path: `/v1/chat\..\x`, body: good, status: 400, want: "path"},
		"a line end in the path": {path: "/v1/chat%0d%0aX-Evil:%20y", body: good, status: 400, want: "path"},
		"an upgrade of several":  {method: "GET", path: "/v1/responses", header: header("Connection", "Upgrade", "Upgrade", "h2c, WebSocket/13"), status: 426, want: "WebSocket"},
		"an upgrade":             {method: "GET", path: "/v1/responses", header: header("Connection", "Upgrade", "Upgrade", "websocket"), status: 426, want: "WebSocket"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: guarded, Providers: []lab.Options{{Name: "p", Keys: map[string]string{"secret-p1": "k1"}}}})
			method := c.method
			if method == "" {
				method = "POST"
			}
			var body io.Reader = bytes.NewReader(c.body)
			if c.chunked {
				body = io.MultiReader(body) // of unknown length
			}
			req, err := http.NewRequestWithContext(t.Context(), method, w.URL+c.path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer client-key-1")
			req.Header.Set("X-Request-Id", "evil id\tlevel=ERROR")
			for k, v := range c.header {
				if req.Header[k] = v; v[0] == "" {
					delete(req.Header, k)
				}
			}
			a := w.Do(req)
			if a.Status != c.status || !strings.Contains(a.Body, c.want) || !strings.HasPrefix(a.Body, `{"error":{"message":`) || a.Header.Get("Content-Type") != "application/json" {
				t.Errorf("%d %v %.500s %v", a.Status, a.Header, a.Body, a.Err)
			}
			if id := a.Header.Get("X-Request-Id"); !strings.HasPrefix(id, "req_") || !strings.Contains(a.Body, `"omniroute":{"request_id":"`+id+`","attempts":[],"skipped":[]}`) {
				t.Errorf("request id %q: %s", id, a.Body)
			}
			if allow := a.Header.Get("Allow"); allow != map[bool]string{true: "POST"}[a.Status == 405] {
				t.Errorf("Allow: %q", allow)
			}
			if len(a.Body) > 8<<10 {
				t.Errorf("an error of %d bytes", len(a.Body))
			}
			if n := len(w.Providers["p"].Requests()); n != 0 {
				t.Errorf("the upstream saw %d requests", n)
			}
			eventually(t, "the story is told", func() bool { return len(w.Stories()) == 1 })
			if log := w.Logged(); strings.Count(log, "\n") != 1 || strings.ContainsRune(log, 0x1b) || strings.Contains(log, "evil") {
				t.Errorf("log: %q", log)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}

func gz(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	z.Write(b)
	z.Close()
	return out.Bytes()
}

// TestSlowBody: a client that sends a byte a second is told so after half a minute, and one whose
// line is slow is not.
func TestSlowBody(t *testing.T) {
	world(t, func(t *testing.T, w *gatewaytest.World) {
		send := func(body string, pieces int, wait time.Duration) gatewaytest.Answer {
			r, pipe := io.Pipe()
			go func() {
				for n := len(body)/pieces + 1; len(body) > 0; time.Sleep(wait) {
					n = min(n, len(body))
					if _, err := io.WriteString(pipe, body[:n]); err != nil {
						return
					}
					body = body[n:]
				}
				pipe.Close()
			}()
			req, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions", r)
			return w.Do(req)
		}
		body := `{"model":"c","messages":[{"role":"user","content":"` + strings.Repeat("x", 60) + `"}]}`
		start := time.Now()
		// No byte is on its way at the very moment at which the gateway loses patience: which of the two
		// the client's transport would see first is chance.
		if a := send(body, len(body), 1100*time.Millisecond); a.Status != 408 || !strings.Contains(a.Body, "too slowly") || time.Since(start) != 30*time.Second {
			t.Errorf("after %v: %+v", time.Since(start), a)
		}
		long := `{"model":"c","messages":[{"role":"user","content":"` + strings.Repeat("x", 8<<20) + `"}]}`
		if a := send(long, 40, 2*time.Second); a.Status != 200 {
			t.Errorf("%d %s", a.Status, a.Body)
		}
		// The next request on such a connection has no deadline left from it.
		w.Providers["p"].SetFault(lab.SlowHeaders(15 * time.Second))
		w.Providers["q"].SetFault(lab.SlowHeaders(15 * time.Second))
		for range 3 {
			if a := w.Chat(t.Context(), "c", true); a.Status != 200 || !a.Done {
				t.Errorf("%+v", a)
			}
		}
	})
}

// TestProbes: what clients send before they begin is answered, with a key or without.
func TestProbes(t *testing.T) {
	t.Parallel()
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: guarded, Providers: []lab.Options{{Name: "p"}}})
	for _, c := range []struct {
		method, path string
		status       int
	}{{"OPTIONS", "/v1/chat/completions", 204}, {"HEAD", "/v1/models", 401}, {"HEAD", "/", 401}} {
		req, _ := http.NewRequestWithContext(t.Context(), c.method, w.URL+c.path, nil)
		if a := w.Do(req); a.Status != c.status || a.Err != nil || a.Body != "" {
			t.Errorf("%s %s: %+v", c.method, c.path, a)
		}
	}
}

// TestOffersOfOtherProtocols: a client that would rather speak HTTP/2 over plain HTTP, as Java's does, is answered
// over what it speaks, and the offer goes no further.
func TestOffersOfOtherProtocols(t *testing.T) {
	t.Parallel()
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: guarded, Providers: []lab.Options{{Name: "p"}}})
	req, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"x"}]}`))
	for name, value := range map[string]string{"Authorization": "Bearer client-key-1", "Connection": "Upgrade, HTTP2-Settings", "Upgrade": "h2c", "Http2-Settings": "AAEAAEAAAAIAAAABAAMAAABk"} {
		req.Header.Set(name, value)
	}
	a := w.Do(req)
	if a.Status != 200 {
		t.Fatalf("%+v", a)
	}
	for _, up := range w.Providers["p"].Requests() {
		if up.Header.Get("Upgrade") != "" || up.Header.Get("Http2-Settings") != "" {
			t.Errorf("the upstream got the offer: %v", up.Header)
		}
	}
}

// TestCompressedRequests: what a client has compressed reaches the upstream in plain.
func TestCompressedRequests(t *testing.T) {
	t.Parallel()
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: guarded, Providers: []lab.Options{{Name: "p"}}})
	body := `{"model":"m","messages":[{"role":"user","content":"squeezed"}]}`
	req, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions", bytes.NewReader(gz([]byte(body))))
	req.Header.Set("Authorization", "Bearer client-key-1")
	req.Header.Set("Content-Encoding", "gzip")
	req.Header.Set("Expect", "100-continue")
	a := w.Do(req)
	got := w.Providers["p"].LastRequest()
	if a.Status != 200 || string(got.Body) != body || got.Header.Get("Content-Encoding") != "" || got.Header.Get("Expect") != "" {
		t.Errorf("%+v\n%v %s", a, got.Header, got.Body)
	}
}

// TestWhatGoesUp: everything of the client's but what is between it and us, and our key in place
// of its own.
func TestWhatGoesUp(t *testing.T) {
	t.Parallel()
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Config: guarded, Providers: []lab.Options{{Name: "p", Keys: map[string]string{"secret-p1": "k1"}}}})
	body := `{ "model" : "p/m", "unknown_field": {"a":[1,2.50,"\u00e9"]}, "messages":[{"role":"user","content":"x"}] }`
	req, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions?trace=1&key=client-key-1", strings.NewReader(body))
	for k, v := range map[string]string{
		"Authorization": "Bearer client-key-1", "X-Api-Key": "client-key-1", "X-Goog-Api-Key": "client-key-1", "Cookie": "session=client-key-1",
		"Connection": "X-Hop, keep-alive", "X-Hop": "1", "Te": "trailers", "Proxy-Authorization": "Basic x", "X-Omniroute-Debug": "1",
		"Openai-Beta": "assistants=v2", "X-Stainless-Retry-Count": "0", "User-Agent": "openai-go/3",
		"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.1", "X-Real-Ip": "192.0.2.1", "Via": "1.1 inner", "X-Forwarded-Host": "inner",
	} {
		req.Header.Set(k, v)
	}
	if a := w.Do(req); a.Status != 200 {
		t.Fatalf("%+v", a)
	}
	got := w.Providers["p"].LastRequest()
	if want := strings.Replace(body, `"p/m"`, `"m"`, 1); string(got.Body) != want {
		t.Errorf("body\n%s\nwant\n%s", got.Body, want)
	}
	if got.Header.Get("Authorization") != "Bearer secret-p1" || got.Header.Get("Openai-Beta") == "" || got.Header.Get("X-Stainless-Retry-Count") == "" || got.Header.Get("User-Agent") != "openai-go/3" {
		t.Errorf("headers %v", got.Header)
	}
	for _, gone := range []string{"X-Api-Key", "X-Goog-Api-Key", "Cookie", "X-Hop", "Te", "Proxy-Authorization", "X-Omniroute-Debug",
		"X-Forwarded-For", "Forwarded", "X-Real-Ip", "Via", "X-Forwarded-Host"} {
		if got.Header.Get(gone) != "" {
			t.Errorf("%s went up", gone)
		}
	}
	if all := fmt.Sprint(got.Header, got.Path); strings.Contains(all, "client-key-1") {
		t.Errorf("the client's key went up: %s", all)
	}
}

// TestSecretsStayInside greps everything that a run of every fault puts out: answers, headers, log
// lines and stories. One upstream repeats the key that it was given in every way it can.
func TestSecretsStayInside(t *testing.T) {
	t.Parallel()
	echo := raw(func(w http.ResponseWriter, flush func(), r *http.Request) {
		key := r.Header.Get("Authorization")
		for _, name := range []string{"X-Echo", "Location", "Retry-After", "X-Request-Id", "X-Ratelimit-Key", "Content-Language"} {
			w.Header().Set(name, "was "+key+" "+r.Header.Get("X-Team"))
		}
		switch r.Header.Get("X-Way") {
		case "0":
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(400)
			fmt.Fprintf(w, `{"error":{"message":"Bad request with %s","code":"%s","type":"t %s","param":"%s"}}`, key, key, key, key)
		case "1":
			w.WriteHeader(401)
			fmt.Fprintf(w, `{"error":{"message":"Incorrect API key provided: %s"}}`, key)
		case "2":
			io.WriteString(w, hello+gap+`data: {"error":{"message":"Lost with `+key+`"}}`+gap)
		case "3":
			w.WriteHeader(500)
			io.WriteString(w, "<html>"+key)
		case "4":
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`)
		case "5":
			io.WriteString(w, hello+gap+`data: {"choices":[{"delta":{},"finish_reason":"stop"}]}`+gap)
		}
	})
	w := gatewaytest.Start(t, gatewaytest.Setup{Sockets: true, Handlers: map[string]http.Handler{"e": echo}, Providers: []lab.Options{{Name: "p", Faulty: true, Keys: map[string]string{"secret-upstream-2": "k2"}}},
		Config: `
store: "memory:"
client_keys: [client-key-1]
providers:
  e: {base_url: "$e", connections: [{id: k1, api_key: secret-upstream-1}], models: [m], headers: {x-team: secret-header-1}}
  p: {base_url: "$p", connections: [{id: k2, api_key: secret-upstream-2}]}
relay: {max_wait: 0s, patience: 0s, first_token_timeout: 300ms, answer_timeout: 300ms, idle_timeout: 300ms, max_attempts: 2}
`})
	var out strings.Builder
	do := func(model, way string, stream bool) {
		req, _ := http.NewRequestWithContext(t.Context(), "POST", w.URL+"/v1/chat/completions", strings.NewReader(
			fmt.Sprintf(`{"model":%q,"stream":%v,"messages":[{"role":"user","content":"the-prompt"}]}`, model, stream)))
		req.Header.Set("Authorization", "Bearer client-key-1")
		req.Header.Set("X-Way", way)
		w.Engine.Reset(resilience.Key{}, true) // so that this one reaches its upstream too
		a := w.Do(req)
		fmt.Fprintln(&out, a.Status, a.Header, a.Body)
	}
	for way := range 6 {
		do("e/m", fmt.Sprint(way), way == 2 || way == 5)
	}
	for _, f := range lab.Faults() {
		name := f.Name
		if strings.HasPrefix(f.Name, "slow-") {
			name += ":200ms"
		}
		do("p/"+name, "", true)
		do("p/"+name, "", false)
	}
	if n := strings.Count(out.String(), "[redacted]"); n < 6 {
		t.Errorf("only %d answers repeat a key: this shows little", n)
	}
	fmt.Fprintf(&out, "%+v\n%s\n%+v", w.Stories(), w.Logged(), w.Engine.Status())
	fmt.Fprintf(&out, "%+v", w.Engine.Events(1000))
	for _, secret := range []string{"client-key-1", "secret-upstream-1", "secret-upstream-2", "secret-header-1", "the-prompt"} {
		if i := strings.Index(out.String(), secret); i >= 0 {
			t.Errorf("%s came out: …%s…", secret, out.String()[max(0, i-200):min(out.Len(), i+100)])
		}
	}
}
