package admin

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"

	"omniroute/internal/config"
	"omniroute/resilience"
)

// Client asks the admin API of a running gateway. Its errors say what to do.
type Client struct {
	base  string // "http://127.0.0.1:20128"
	shown string // the address as people know it
	token config.Secret
	http  *http.Client
}

// clientTime bounds one call of a Client.
const clientTime = 10 * time.Second

// NewClient returns a client of the gateway that listens at the address. A wildcard address is
// asked on this machine. files is nil without TLS; with it the gateway is known by its certificate itself,
// since that need not be made out for the name of this machine, nor by anybody who is trusted here.
func NewClient(at config.Address, files *config.TLS, token config.Secret) (*Client, error) {
	c := &Client{base: "http://localhost", shown: at.String(), token: token, http: &http.Client{Timeout: clientTime}}
	if at.Network == "unix" {
		var d net.Dialer
		c.http.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return d.DialContext(ctx, "unix", at.Address)
		}}
		return c, nil
	}
	host, port, err := net.SplitHostPort(at.Address)
	if err != nil {
		return nil, fmt.Errorf("%q is no address: %w", at.Address, err)
	}
	if port == "0" {
		return nil, errors.New("the configuration listens on port 0, which is another one each time; name the server with --url")
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
		if ip != nil && ip.To4() == nil {
			host = "::1"
		}
	}
	scheme := "http"
	// A proxy of the environment has no business between a program and its own gateway.
	transport := &http.Transport{Proxy: nil}
	if files != nil {
		scheme, transport.TLSClientConfig = "https", knownBy(*files)
	}
	c.base = scheme + "://" + net.JoinHostPort(host, port)
	c.shown = c.base
	c.http.Transport = transport
	return c, nil
}

// knownBy accepts a server that has the certificate which the files hold, and no other.
func knownBy(files config.TLS) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		// The handshake proves that the server has the certificate's key; which certificate it must be is said below.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection: func(s tls.ConnectionState) error {
			text, err := os.ReadFile(files.CertFile)
			if err != nil {
				return fmt.Errorf("the certificate that the gateway should have cannot be read: %w", err)
			}
			block, _ := pem.Decode(text)
			if block == nil || len(s.PeerCertificates) == 0 || !bytes.Equal(block.Bytes, s.PeerCertificates[0].Raw) {
				return fmt.Errorf("what answers has another certificate than %s; name the gateway with --url", files.CertFile)
			}
			return nil
		},
	}
}

// NewClientURL returns a client of the gateway at a URL such as https://gateway.example.
func NewClientURL(address string, token config.Secret) (*Client, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("%q is no address of a server; write one such as http://127.0.0.1:20128", address)
	}
	if u.User != nil {
		return nil, errors.New("an address must not hold a password; put the admin token into OMNIROUTE_ADMIN_TOKEN")
	}
	base := strings.TrimRight(u.String(), "/")
	return &Client{base: base, shown: base, token: token, http: &http.Client{Timeout: clientTime}}, nil
}

// Address is where the gateway is asked.
func (c *Client) Address() string { return c.shown }

// Close gives the connection back.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Status asks for the status. raw is the answer as it came.
func (c *Client) Status(ctx context.Context) (s Status, raw []byte, err error) {
	raw, err = c.call(ctx, http.MethodGet, "/admin/v1/status", nil, &s)
	return s, raw, err
}

// Explain asks what would become of a request.
func (c *Client) Explain(ctx context.Context, q ExplainRequest) (x Explanation, raw []byte, err error) {
	raw, err = c.call(ctx, http.MethodPost, "/admin/v1/explain", q, &x)
	return x, raw, err
}

// Reset ends exclusions.
func (c *Client) Reset(ctx context.Context, q ResetRequest) (n resilience.ResetCount, err error) {
	_, err = c.call(ctx, http.MethodPost, "/admin/v1/reset", q, &n)
	return n, err
}

// Follow calls f with each event of the gateway as it happens, until ctx or the stream ends. f gets
// nothing: what an event changes is asked for.
func (c *Client) Follow(ctx context.Context, f func()) error {
	req, err := c.request(ctx, http.MethodGet, "/admin/v1/events", nil)
	if err != nil {
		return err
	}
	// A stream has no end that a time limit could wait for.
	resp, err := (&http.Client{Transport: c.http.Transport}).Do(req)
	if err != nil {
		return &UnreachableError{c.shown, err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		raw, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		return c.problem(resp.StatusCode, raw)
	}
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(nil, maxAnswer)
	for lines.Scan() {
		if bytes.HasPrefix(lines.Bytes(), []byte("data:")) {
			f()
		}
	}
	if err := lines.Err(); err != nil {
		return &UnreachableError{c.shown, err}
	}
	return &UnreachableError{c.shown, io.EOF}
}

// UnreachableError says that no gateway answers.
type UnreachableError struct {
	Address string
	Err     error
}

// Error says what to do.
func (e *UnreachableError) Error() string {
	if errors.Is(e.Err, syscall.ECONNREFUSED) || errors.Is(e.Err, syscall.ENOENT) {
		return "no server answers at " + e.Address + "; start one with `omniroute serve`, or name another with --url"
	}
	return fmt.Sprintf("the server at %s does not answer: %v", e.Address, cause(e.Err))
}

// Unwrap returns the transport's error.
func (e *UnreachableError) Unwrap() error { return e.Err }

// cause takes the request out of a client's error: the address is in the sentence already.
func cause(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

// maxAnswer bounds what is read of an answer.
const maxAnswer = 64 << 20

func (c *Client) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var sent io.Reader = http.NoBody
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, sent)
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if !c.token.Empty() {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	return req, nil
}

func (c *Client) call(ctx context.Context, method, path string, body, into any) ([]byte, error) {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, &UnreachableError{c.shown, err}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, &UnreachableError{c.shown, err}
	}
	if resp.StatusCode != http.StatusOK {
		return nil, c.problem(resp.StatusCode, raw)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return nil, fmt.Errorf("what answers at %s is no omniroute: %w", c.shown, err)
	}
	return raw, nil
}

// problem is the error that an answer tells of.
func (c *Client) problem(status int, raw []byte) error {
	var answer struct{ Error *Problem }
	if json.Unmarshal(raw, &answer) != nil || answer.Error == nil || answer.Error.Message == "" {
		return fmt.Errorf("what answers at %s is no omniroute: it says %d", c.shown, status)
	}
	answer.Error.Status = status
	if status == http.StatusUnauthorized {
		return fmt.Errorf("%s refuses: %w; for --url it is read from OMNIROUTE_ADMIN_TOKEN", c.shown, answer.Error)
	}
	return answer.Error
}
