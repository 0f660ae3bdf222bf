package server

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// victim is an upstream that keeps what comes to it to the byte, and answers every request.
type victim struct {
	at string
	mu sync.Mutex
	// heads and bodies are those of each request, as they came.
	heads, bodies []string
	strange       []string // what could not be read as one request with one length
	answer        func(head string) string
}

const okAnswer = `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`

func newVictim(t *testing.T) *victim {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	v := &victim{at: l.Addr().String()}
	var serving sync.WaitGroup
	conns := map[net.Conn]bool{}
	serving.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			v.mu.Lock()
			conns[c] = true
			v.mu.Unlock()
			serving.Go(func() { v.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		v.mu.Lock()
		for c := range conns {
			c.Close()
		}
		v.mu.Unlock()
		serving.Wait()
	})
	return v
}

// serve reads requests as the most careless of servers might: by the length alone, and whatever follows is the next one.
func (v *victim) serve(c net.Conn) {
	defer c.Close()
	r := bufio.NewReader(c)
	for {
		var head strings.Builder
		length := -1
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			head.WriteString(line)
			name, value, _ := strings.Cut(strings.ToLower(line), ":")
			if name == "content-length" {
				n, err := strconv.Atoi(strings.TrimSpace(value))
				if err != nil || length >= 0 {
					v.note("a second or bad length: " + head.String())
				}
				length = n
			}
			if name == "transfer-encoding" {
				v.note("chunked: " + head.String())
			}
			if line == "\r\n" {
				break
			}
			if !strings.HasSuffix(line, "\r\n") {
				v.note("a bare line feed: " + head.String())
			}
		}
		body := make([]byte, max(length, 0))
		if _, err := io.ReadFull(r, body); err != nil {
			return
		}
		v.mu.Lock()
		v.heads, v.bodies = append(v.heads, head.String()), append(v.bodies, string(body))
		answer := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", len(okAnswer), okAnswer)
		if v.answer != nil {
			answer = v.answer(head.String())
		}
		v.mu.Unlock()
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

func (v *victim) note(what string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.strange = append(v.strange, what)
}

// attacked is a gateway before a victim.
func attacked(t *testing.T, more string) (*gate, *victim) {
	t.Helper()
	v := newVictim(t)
	g := start(t, t.TempDir(), yaml("http://"+v.at+"/v1", "max_body: 1MiB\nrelay: {max_wait: 0s, patience: 0s, max_attempts: 2, first_token_timeout: 5s}\n"+more))
	return g, v
}

// farewell stands behind what is sent raw, so that the gateway closes the connection when it has understood all.
const farewell = "GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

// raw sends bytes as they are and returns all that comes back until the gateway closes.
func raw(t *testing.T, g *gate, text string) string {
	t.Helper()
	c, err := net.Dial("tcp", g.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := io.WriteString(c, text+farewell); err != nil {
		return "" // it was closed at once, which is an answer too
	}
	_ = c.SetReadDeadline(time.Now().Add(patience))
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the gateway neither answers nor closes: %.300q", text)
	}
	return string(answer)
}

// TestNoSmuggling: however a request's length is disguised, the gateway and the upstream agree on where it ends. What
// could be understood in two ways is refused or reaches the upstream as one request with one length, and nothing that
// stands behind it gets there with it.
func TestNoSmuggling(t *testing.T) {
	t.Parallel()
	g, v := attacked(t, "")
	body := chatBody("large", false)
	hidden := "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Smuggled: yes\r\nAuthorization: Bearer nobody\r\nContent-Length: 2\r\n\r\n{}"
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(body), body)
	head := func(lines ...string) string {
		return "POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer " + clientKey + "\r\nContent-Type: application/json\r\n" + strings.Join(lines, "\r\n")
	}
	for name, c := range map[string]struct {
		text    string
		refused bool
	}{
		"both lengths, the short one counted": {head("Content-Length: 4", "Transfer-Encoding: chunked", "", chunked+hidden), false},
		"both lengths, the long one":          {head(fmt.Sprint("Content-Length: ", len(chunked)+len(hidden)), "Transfer-Encoding: chunked", "", chunked+hidden), false},
		"two lengths":                         {head(fmt.Sprint("Content-Length: ", len(body)), "Content-Length: 0", "", body+hidden), true},
		"a list of lengths":                   {head(fmt.Sprintf("Content-Length: %d, 0", len(body)), "", body+hidden), true},
		"a signed length":                     {head(fmt.Sprint("Content-Length: +", len(body)), "", body+hidden), true},
		"an unknown encoding":                 {head("Transfer-Encoding: xchunked", fmt.Sprint("Content-Length: ", len(body)), "", body+hidden), true},
		"two encodings":                       {head("Transfer-Encoding: chunked, identity", "", chunked+hidden), true},
		"the encoding twice":                  {head("Transfer-Encoding: chunked", "Transfer-Encoding: cow", "", chunked+hidden), true},
		"a space before the colon":            {head("Transfer-Encoding : chunked", fmt.Sprint("Content-Length: ", len(body)), "", body+hidden), true},
		"a tab in the name":                   {head("Transfer\tEncoding: chunked", fmt.Sprint("Content-Length: ", len(body)), "", body+hidden), true},
		"a bad chunk":                         {head("Transfer-Encoding: chunked", "", "zz\r\n"+body+"\r\n0\r\n\r\n"+hidden), true},
		"a huge chunk":                        {head("Transfer-Encoding: chunked", "", "ffffffffffffffffff\r\n"+body+"\r\n0\r\n\r\n"), true},
		"a bare carriage return in a header":  {head("X-A: b\rTransfer-Encoding: chunked", fmt.Sprint("Content-Length: ", len(body)), "", body), true},
		"a zero in a header":                  {head("X-A: b\x00c", fmt.Sprint("Content-Length: ", len(body)), "", body), true},
		"HTTP/1.0 with chunks":                {strings.Replace(head("Transfer-Encoding: chunked", "", chunked+hidden), "HTTP/1.1", "HTTP/1.0", 1), false},
	} {
		v.mu.Lock()
		before := len(v.heads)
		v.mu.Unlock()
		answer := raw(t, g, c.text)
		v.mu.Lock()
		came := v.heads[before:]
		if len(came) > 1 {
			t.Errorf("%s: %d requests came through: %q", name, len(came), came)
		}
		if c.refused && (len(came) > 0 || strings.Contains(answer, " 200 OK\r\n")) {
			t.Errorf("%s: it was not refused: %q", name, answer)
		}
		for i, one := range came {
			if strings.Contains(one, "Smuggled") || !strings.Contains(v.bodies[before+i], `"messages"`) {
				t.Errorf("%s: the upstream got %q with %q", name, one, v.bodies[before+i])
			}
		}
		v.mu.Unlock()
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.strange) > 0 {
		t.Errorf("the upstream was sent %q", v.strange)
	}
	if len(v.heads) == 0 {
		t.Error("nothing came through at all, so nothing was tried")
	}
}

// TestNobodyElseIsAsked: neither a model's name nor a header nor the form of the request's target leads a call to
// another host, another path or with another key than the configuration says.
func TestNobodyElseIsAsked(t *testing.T) {
	t.Parallel()
	g, v := attacked(t, "")
	evil := newVictim(t)
	names := []string{
		"http://" + evil.at + "/v1", "acme/http://" + evil.at, "acme/../../../admin", "acme/large/../../x", "acme@" + evil.at + "/large", "../" + evil.at,
		"acme/large?key=x", "acme/large#x", "acme\\large", evil.at + "/large", "acme:80@" + evil.at, "file:///etc/passwd", "acme/%2e%2e%2f", "acme/large\u2028",
		"acme//large", "/acme/large", "acme/large/", "", ".", "..", "${OMNIROUTE_ADMIN_TOKEN}", "{{7*7}}", "acme/large\u202e",
	}
	for _, name := range names {
		g.call("POST", "/v1/chat/completions", fmt.Sprintf(`{"model": %q, "messages": []}`, name))
		g.call("POST", "/v1beta/models/"+strings.NewReplacer("\\", "%5C", "#", "%23", "?", "%3F", " ", "%20").Replace(name)+":generateContent", `{"contents": []}`)
	}
	body := chatBody("large", false)
	for _, lines := range []string{
		"POST http://" + evil.at + "/v1/chat/completions HTTP/1.1\r\nHost: " + evil.at,
		"POST /v1/chat/completions HTTP/1.1\r\nHost: " + evil.at + "\r\nX-Forwarded-Host: " + evil.at + "\r\nForwarded: host=" + evil.at + "\r\nX-Forwarded-For: 127.0.0.1\r\nX-Original-Url: /admin\r\nX-Rewrite-Url: /admin",
		"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\nProxy: http://" + evil.at + "\r\nConnection: Authorization, Content-Length, Host, X-Api-Key\r\nProxy-Authorization: Basic eDp4\r\nProxy-Connection: keep-alive\r\nTe: trailers\r\nUpgrade-Insecure-Requests: 1",
		"POST /v1/chat/completions?base_url=http://" + evil.at + "&api_key=x HTTP/1.1\r\nHost: gateway\r\nX-Base-Url: http://" + evil.at + "\r\nOpenai-Base-Url: http://" + evil.at,
	} {
		raw(t, g, lines+"\r\nAuthorization: Bearer "+clientKey+"\r\nContent-Type: application/json\r\nContent-Length: "+fmt.Sprint(len(body))+"\r\nConnection: close\r\n\r\n"+body)
	}
	raw(t, g, "CONNECT "+evil.at+" HTTP/1.1\r\nHost: "+evil.at+"\r\nAuthorization: Bearer "+clientKey+"\r\n\r\n")
	evil.mu.Lock()
	defer evil.mu.Unlock()
	if len(evil.heads)+len(evil.strange) > 0 {
		t.Errorf("another host was asked: %q", evil.heads)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.heads) < 4 {
		t.Fatalf("only %d requests came through", len(v.heads))
	}
	for _, head := range v.heads {
		line, rest, _ := strings.Cut(head, "\r\n")
		if !strings.HasPrefix(line, "POST /v1/chat/completions ") && !strings.HasPrefix(line, "POST /v1/chat/completions?") {
			t.Errorf("the upstream was asked for %q", line)
		}
		lower := strings.ToLower(rest)
		if !strings.Contains(rest, "Host: "+v.at+"\r\n") || !strings.Contains(rest, "Bearer upstream-secret-") || strings.Contains(rest, clientKey) || strings.Contains(lower, "proxy-authorization") {
			t.Errorf("the upstream got %q", head)
		}
	}
}

// TestPathsDoNotLeadToTheAdmin with a client's key or none, whatever the spelling, nor out of the dashboard.
func TestPathsDoNotLeadToTheAdmin(t *testing.T) {
	t.Parallel()
	g, v := attacked(t, "")
	for _, path := range []string{
		"/v1/../admin/v1/status", "/v1/%2e%2e/admin/v1/status", "/v1/..%2fadmin/v1/status", "//admin/v1/status", "/admin//v1/status", "/./admin/v1/status", "/admin/v1/status/",
		"/ADMIN/v1/status", "/admin/v1/status;x", "/admin/v1/status%00", "/v1/models/../../admin/v1/status", "/dashboard/../admin/v1/status", "/dashboard/api/status",
		"/dashboard/api/../../admin/v1/status", "/dashboard/assets/../../admin/v1/status", "/admin/v1/%73tatus", "/\\admin/v1/status", "/v1/chat/completions/../../../admin/v1/audit", "/healthz/../admin/v1/status",
	} {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			for _, key := range []string{"", clientKey} {
				answer := raw(t, g, method+" "+path+" HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer "+key+"\r\nX-Http-Method-Override: GET\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
				for _, secret := range []string{`"providers"`, `"persistence"`, `"audits"`, token} {
					if strings.Contains(answer, secret) {
						t.Errorf("%s %s with %q: %q", method, path, key, answer)
					}
				}
			}
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, head := range v.heads {
		if line, _, _ := strings.Cut(head, "\r\n"); strings.Contains(line, "..") || strings.Contains(line, "admin") {
			t.Errorf("the upstream was asked for %q", line)
		}
	}
}

// TestWrongTokens are all refused alike, those that nearly fit too, and neither secret opens the other's door.
func TestWrongTokens(t *testing.T) {
	t.Parallel()
	g, _ := attacked(t, "")
	// Each from an address of its own, since few guesses from one are looked at.
	var peers atomic.Int32
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.RemoteAddr = fmt.Sprintf("192.0.2.%d:4711", peers.Add(1))
		g.ServeHTTP(w, r)
	}))
	defer front.Close()
	ask := func(path, method, header, value string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, front.URL+path, strings.NewReader(chatBody("large", false)))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header[http.CanonicalHeaderKey(header)] = []string{value}
		resp, err := g.client.Do(r)
		if err != nil {
			return 0, err.Error() // not even sent
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, strings.ReplaceAll(string(text), resp.Header.Get("X-Request-Id"), "")
	}
	for _, door := range []struct{ path, method, right, other string }{
		{"/v1/chat/completions", "POST", clientKey, token}, {"/admin/v1/status", "GET", token, clientKey},
	} {
		first := ""
		for _, wrong := range []string{
			"", door.other, door.right[:len(door.right)-1], door.right + "x", door.right + " x", strings.ToUpper(door.right), door.right[1:], door.right + "%00", "*", "null", "undefined",
			strings.Repeat("x", 50_000), "' OR '1'='1", "${OMNIROUTE_ADMIN_TOKEN}", "sha256:" + strings.Repeat("0", 64), "Bearer " + door.right + "\u00a0",
		} {
			for header, value := range map[string]string{"Authorization": "Bearer " + wrong, "X-Api-Key": wrong, "Cookie": "omniroute_session=" + wrong, "X-Goog-Api-Key": wrong} {
				code, text := ask(door.path, door.method, header, value)
				if code == 0 {
					continue
				}
				if code != 401 && code != 431 {
					t.Errorf("%s with %s %.60q: %d %s", door.path, header, value, code, text)
				}
				if first == "" {
					first = text
				}
				if code == 401 && text != first {
					t.Errorf("%s with %s %.60q tells more than another: %s", door.path, header, value, text)
				}
			}
		}
		if code, text := ask(door.path, door.method, "Authorization", "Bearer "+door.right); code != 200 {
			t.Errorf("%s with the right one: %d %s", door.path, code, text)
		}
	}
}

// TestLogsCannotBeForged: whatever clients and upstreams write, each line of the log is one of ours, in text and in JSON,
// and holds no control character.
func TestLogsCannotBeForged(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		v := newVictim(t)
		g := prepare(t, t.TempDir(), yaml("http://"+v.at+"/v1", "relay: {max_wait: 0s, patience: 0s}\n"))
		var handler slog.Handler = slog.NewTextHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug})
		begins := "time="
		if format == "json" {
			handler, begins = slog.NewJSONHandler(g.log, &slog.HandlerOptions{Level: slog.LevelDebug}), `{"time":`
		}
		g.Main = New(Options{Source: Find(g.file), Logger: slog.New(handler), times: patient})
		if err := g.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		const forged = "x\r\ntime=2026-01-01 level=INFO msg=\"forged\" \x1b[31m\x1b]0;x\x07\u2028\u0085\x00"
		v.answer = func(string) string {
			text := fmt.Sprintf(`{"error": {"message": %q, "code": %[1]q, "type": %[1]q}}`, forged)
			return fmt.Sprintf("HTTP/1.1 500 Oops\r\nContent-Type: application/json\r\nX-Request-Id: \x1b[31mred\r\nContent-Length: %d\r\n\r\n%s", len(text), text)
		}
		g.chat("large")
		for _, model := range []string{forged, "large", "acme/" + forged} {
			g.call("POST", "/v1/chat/completions", fmt.Sprintf(`{"model": %q, "messages": [], "user": %[1]q}`, model))
		}
		g.call("POST", "/admin/v1/exclude", fmt.Sprintf(`{"provider": "acme", "for": "1m", "reason": %q}`, forged))
		g.call("POST", "/admin/v1/reset", fmt.Sprintf(`{"scope": "model", "provider": "acme", "model": %q}`, forged))
		for _, head := range []string{"X-Request-Id: a\x1b[31mb", "X-Session-Id: \x1b[2J", "User-Agent: \x1b[31m", "X-Request-Id: " + strings.Repeat("a", 5000)} {
			raw(t, g, "GET /v1/%0a%1b%5b31m%0dtime= HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer "+clientKey+"\r\n"+head+"\r\nConnection: close\r\n\r\n")
		}
		if err := g.Stop(context.Background()); err != nil {
			t.Error(err)
		}
		lines := strings.Split(strings.TrimSuffix(g.log.String(), "\n"), "\n")
		if len(lines) < 10 {
			t.Errorf("%s: only %d lines", format, len(lines))
		}
		for _, line := range lines {
			if !strings.HasPrefix(line, begins) || strings.ContainsAny(line, "\x1b\r\x00\x07") {
				t.Errorf("%s: a line is %q", format, line)
			}
		}
	}
}
