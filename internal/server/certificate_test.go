package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"omniroute/internal/admin"
	"omniroute/internal/certtest"
)

// overTLS trusts the certificates that it is told of, and opens a connection for every request if fresh is set.
func overTLS(roots *x509.CertPool, fresh bool) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "gateway.example", MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true, DisableKeepAlives: fresh,
	}}
}

// TestTLSIsServed: HTTP/2 and HTTP/1 over the configured certificate, nothing without TLS, and the command line's
// client knows the gateway by its certificate.
func TestTLSIsServed(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	dir := t.TempDir()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(certtest.Write(t, dir, 1))
	g := start(t, dir, yaml(base, "tls: {cert: tls.crt, key: tls.key}\n"))
	if !strings.HasPrefix(g.URL(), "https://127.0.0.1:") {
		t.Errorf("it is at %s", g.URL())
	}
	g.client = overTLS(roots, false)
	resp, err := g.request("POST", "/v1/chat/completions", chatBody("chat", true))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.Proto != "HTTP/2.0" || !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
		t.Errorf("%s %v %s", resp.Proto, err, text)
	}
	plain, err := http.Get("http://" + g.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	plain.Body.Close()
	if plain.StatusCode != http.StatusBadRequest {
		t.Errorf("without TLS: %s", plain.Status)
	}
	if _, err := tls.Dial("tcp", g.Addr().String(), &tls.Config{MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10, InsecureSkipVerify: true}); err == nil {
		t.Error("TLS 1.1 is spoken")
	}

	cfg := g.Config()
	at := cfg.Listen
	at.Address = g.Addr().String()
	c, err := admin.NewClient(at, cfg.TLS, cfg.AdminToken)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s, _, err := c.Status(t.Context()); err != nil || s.Version != "1.2.3" {
		t.Errorf("the command line's client: %v", err)
	}
	elsewhere := t.TempDir()
	certtest.Write(t, elsewhere, 2)
	files := *cfg.TLS
	files.CertFile = filepath.Join(elsewhere, "tls.crt")
	stranger, err := admin.NewClient(at, &files, cfg.AdminToken)
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	if _, _, err := stranger.Status(t.Context()); err == nil || !strings.Contains(err.Error(), "another certificate") {
		t.Errorf("a server with another certificate: %v", err)
	}
}

// TestCertificateIsReplaced: new connections get the new certificate as soon as its files are there; half a pair, or a
// bad one, changes nothing; turning TLS off waits for a restart.
func TestCertificateIsReplaced(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	dir, second := t.TempDir(), t.TempDir()
	certtest.Write(t, dir, 1)
	certtest.Write(t, second, 3)
	const on = "tls: {cert: tls.crt, key: tls.key}\n"
	g := start(t, dir, yaml(base, on))
	g.client = &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	shown := func() int64 {
		t.Helper()
		c, err := tls.Dial("tcp", g.Addr().String(), &tls.Config{InsecureSkipVerify: true})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		return c.ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if _, text := g.call("GET", "/metrics", ""); !strings.Contains(text, "omniroute_certificate_end_timestamp_seconds ") {
		t.Error("no metric says when the certificate ends")
	}
	if n := shown(); n != 1 {
		t.Fatalf("certificate %d is shown", n)
	}
	certtest.Write(t, dir, 2)
	g.log.wait(t, "the certificate was read", 2)
	if n := shown(); n != 2 {
		t.Errorf("certificate %d is shown after its change", n)
	}
	write(t, filepath.Join(dir, "tls.key"), "listen: no key")
	g.log.wait(t, "the new certificate cannot be used yet", 1)
	if n := shown(); n != 2 {
		t.Errorf("certificate %d is shown after a bad one", n)
	}
	write(t, g.file, yaml(base, fmt.Sprintf("tls: {cert: %s/tls.crt, key: %s/tls.key}\n", second, second)))
	g.log.wait(t, "the configuration was reloaded", 1)
	if n := shown(); n != 3 {
		t.Errorf("certificate %d is shown after the files' names changed", n)
	}
	certtest.Write(t, second, 4)
	g.log.wait(t, "the certificate was read", 4)
	if n := shown(); n != 4 {
		t.Errorf("certificate %d is shown: the new files are not watched", n)
	}
	write(t, g.file, yaml(base, ""))
	g.log.wait(t, "key=tls", 1)
	if n := shown(); n != 4 {
		t.Errorf("certificate %d is shown", n)
	}
	if err := g.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}
