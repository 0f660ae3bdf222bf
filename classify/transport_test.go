package classify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniroute/resilience"
)

func dialError(err error) error {
	return &url.Error{Op: "Post", URL: "https://x.example/v1?key=secret", Err: &net.OpError{Op: "dial", Net: "tcp", Err: err}}
}

func readError(err error) error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", err)}
}

func TestTransportErrors(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	sys := func(e syscall.Errno) error { return os.NewSyscallError("connect", e) }
	for _, tt := range []struct {
		name  string
		err   error
		phase Phase
		want  string
		dial  bool
		rule  string
	}{
		{"refused", dialError(sys(syscall.ECONNREFUSED)), PhaseDial, "provider/network", true, "transport.refused"},
		{"no route", dialError(sys(syscall.EHOSTUNREACH)), PhaseDial, "provider/network", true, "transport.unreachable"},
		{"no network", dialError(sys(syscall.ENETUNREACH)), PhaseHeaders, "provider/network", true, "transport.unreachable"},
		{"dns", dialError(&net.DNSError{Err: "no such host", Name: "x.example", IsNotFound: true}), PhaseDial, "provider/network", true, "transport.dns"},
		{"dns timeout", dialError(&net.DNSError{Err: "i/o timeout", Name: "x.example", IsTimeout: true}), PhaseDial, "provider/network", true, "transport.dns"},
		{"dial timeout", dialError(os.ErrDeadlineExceeded), PhaseDial, "provider/timeout", true, "transport.dial_timeout"},
		{"dial timer", &TimeoutError{Phase: PhaseDial, Timer: "connect_timeout", After: time.Second}, PhaseDial, "provider/timeout", true, "transport.timeout"},
		{"kernel timeout", dialError(sys(syscall.ETIMEDOUT)), PhaseDial, "provider/timeout", true, "transport.dial_timeout"},
		{"proxy", &net.OpError{Op: "proxyconnect", Net: "tcp", Err: errors.New("proxyconnect tcp: eof")}, PhaseHeaders, "provider/network", true, "transport.proxy"},
		{"tls certificate", &url.Error{Op: "Post", URL: "https://x.example", Err: &tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}}, PhaseDial, "provider/network", false, "transport.tls"},
		{"tls alert", &net.OpError{Op: "remote error", Err: tls.AlertError(40)}, PhaseDial, "provider/network", false, "transport.tls"},
		{"tls handshake timeout", errors.New("net/http: TLS handshake timeout"), PhaseDial, "provider/network", false, "transport.tls"},
		{"reset before the first byte", readError(syscall.ECONNRESET), PhaseHeaders, "provider/network", false, "transport.reset"},
		{"reset after content", readError(syscall.ECONNRESET), PhaseMidStream, "provider/network", false, "transport.reset"},
		{"broken pipe", readError(syscall.EPIPE), PhaseHeaders, "provider/network", false, "transport.reset"},
		{"eof", io.EOF, PhaseHeaders, "provider/network", false, "transport.cut"},
		{"body cut short", io.ErrUnexpectedEOF, PhaseBody, "provider/network", false, "transport.cut"},
		{"stream cut", &CutError{Content: true}, PhaseMidStream, "provider/network", false, "transport.cut"},
		{"goaway", errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug=\"\""), PhaseHeaders, "provider/network", false, "transport.closing"},
		{"refused stream", errors.New("stream error: stream ID 3; REFUSED_STREAM; received from peer"), PhaseHeaders, "provider/network", false, "transport.closing"},
		{"stream error", errors.New("stream error: stream ID 3; INTERNAL_ERROR; received from peer"), PhaseFirstEvent, "provider/network", false, "transport.http2"},
		{"idle close", errors.New("http: server closed idle connection"), PhaseHeaders, "provider/network", false, "transport.closing"},
		{"no http", errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "\x15\x03"`), PhaseHeaders, "provider/malformed_response", false, "transport.protocol"},
		{"first token", &TimeoutError{Phase: PhaseFirstEvent, Timer: "first_token_timeout", After: time.Minute}, PhaseFirstEvent, "provider/timeout", false, "transport.timeout"},
		{"idle", fmt.Errorf("reading: %w", &TimeoutError{Phase: PhaseMidStream, Timer: "idle_timeout", After: time.Minute}), PhaseMidStream, "provider/timeout", false, "transport.timeout"},
		{"header timeout", timeoutText("net/http: timeout awaiting response headers"), PhaseHeaders, "provider/timeout", false, "transport.timeout"},
		{"own deadline", context.DeadlineExceeded, PhaseHeaders, "local/timeout", false, "transport.deadline"},
		{"client went away", fmt.Errorf("post: %w", context.Canceled), PhaseHeaders, "client/canceled", false, "transport.canceled"},
		{"files", dialError(sys(syscall.EMFILE)), PhaseDial, "local/network", false, "transport.local"},
		{"buffers", readError(syscall.ENOBUFS), PhaseHeaders, "local/network", false, "transport.local"},
		{"ports", dialError(sys(syscall.EADDRNOTAVAIL)), PhaseDial, "local/network", false, "transport.local"},
		{"client write", &LocalError{Op: "write to the client", Err: syscall.EPIPE}, PhaseMidStream, "local/network", false, "transport.local"},
		{"something else", errors.New("what"), PhaseHeaders, "provider/network", false, "transport.unknown"},
	} {
		v := cl.Classify(Input{Err: tt.err, Phase: tt.phase, Now: exampleNow})
		if got := v.Scope.String() + "/" + v.Kind.String(); got != tt.want || v.Dial != tt.dial || v.Rule != tt.rule {
			t.Errorf("%s: got %s dial=%v by %s, want %s dial=%v by %s", tt.name, got, v.Dial, v.Rule, tt.want, tt.dial, tt.rule)
		}
		neutral := v.Scope == client || v.Scope == resilience.ScopeLocal
		if v.RetryElsewhere == (neutral || tt.phase == PhaseMidStream) {
			t.Errorf("%s: retry_elsewhere %v", tt.name, v.RetryElsewhere)
		}
		if strings.Contains(v.Evidence, "secret") {
			t.Errorf("%s: the evidence holds the URL's query: %s", tt.name, v.Evidence)
		}
		checkVerdict(t, tt.name, Input{Phase: tt.phase}, v)
	}
}

type timeoutText string

func (e timeoutText) Error() string   { return string(e) }
func (e timeoutText) Timeout() bool   { return true }
func (e timeoutText) Temporary() bool { return true }

// TestAnErrorStatusOutranksTheTransport: an error answer that was cut short still tells.
func TestAnErrorStatusOutranksTheTransport(t *testing.T) {
	t.Parallel()
	v := classifier(t).Classify(Input{Status: 401, Err: io.ErrUnexpectedEOF, Body: []byte(`{"error":{"code":"invalid_api_key","mess`), Now: exampleNow})
	if v.Kind != auth || !v.Quarantine {
		t.Errorf("got %v, want auth", v)
	}
}

// TestRealTransportErrors takes its errors from net/http itself, so that texts which no type
// stands for are noticed when they change.
func TestRealTransportErrors(t *testing.T) {
	t.Parallel()
	cl := classifier(t)
	get := func(c *http.Client, u string) error {
		resp, err := c.Get(u)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			resp.Body.Close()
		}
		return err
	}
	check := func(name string, err error, phase Phase, rules ...string) {
		t.Helper()
		v := cl.Classify(Input{Err: err, Phase: phase, Now: exampleNow})
		for _, r := range rules {
			if v.Rule == r {
				return
			}
		}
		t.Errorf("%s: %v went to %s, want %v", name, err, v.Rule, rules)
	}

	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	gone := "http://" + ln.Addr().String()
	ln.Close()
	check("refused", get(http.DefaultClient, gone), PhaseDial, "transport.refused")

	hangUp := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, _, _ := http.NewResponseController(w).Hijack()
		c.Close()
	}))
	defer hangUp.Close()
	check("hang up", get(http.DefaultClient, hangUp.URL), PhaseHeaders, "transport.cut", "transport.reset")

	short := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", "100")
		io.WriteString(w, "few")
	}))
	defer short.Close()
	check("short body", get(http.DefaultClient, short.URL), PhaseBody, "transport.cut")

	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	check("certificate", get(&http.Client{Transport: &http.Transport{}}, secure.URL), PhaseDial, "transport.tls")
	check("http to https", get(&http.Client{Transport: &http.Transport{}}, strings.Replace(hangUp.URL, "http:", "https:", 1)), PhaseDial, "transport.protocol")

	h2 := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { panic(http.ErrAbortHandler) }))
	h2.EnableHTTP2 = true
	h2.StartTLS()
	defer h2.Close()
	check("http/2 stream", get(h2.Client(), h2.URL), PhaseHeaders, "transport.http2")

	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	req, _ := http.NewRequestWithContext(ctx, "GET", hangUp.URL, nil)
	_, err = http.DefaultClient.Do(req)
	check("canceled", err, PhaseDial, "transport.canceled")
}
