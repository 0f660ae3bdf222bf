package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"omniroute/internal/certtest"
)

// TestTLS: a pair that fits is taken, everything else is refused with what to do.
func TestTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certtest.Write(t, dir, 1)
	_, other := certtest.Pair(t, 2)
	for name, text := range map[string]string{"other.key": string(other), "text.pem": "hello"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(listen, cert, key string) (*Config, error) {
		c, _, err := Parse(filepath.Join(dir, "omniroute.yaml"), []byte("listen: "+listen+"\ntls: {cert: "+cert+", key: "+key+"}\n"+
			"providers: {acme: {base_url: https://llm.acme.example/v1, connections: [{id: k1, api_key: secret}]}}\n"), func(string) (string, bool) { return "", false })
		return c, err
	}
	c, err := parse("127.0.0.1:1", "tls.crt", "tls.key")
	if err != nil {
		t.Fatal(err)
	}
	if want := (TLS{filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")}); c.TLS == nil || *c.TLS != want {
		t.Errorf("got %v, want %v", c.TLS, want)
	}
	for _, bad := range []struct{ listen, cert, key, says string }{
		{"127.0.0.1:1", "none.crt", "tls.key", "tls.cert: the file cannot be used"},
		{"127.0.0.1:1", "tls.crt", "none.key", "tls.key: the file cannot be used"},
		{"127.0.0.1:1", "text.pem", "tls.key", "tls.cert: the file holds no certificate in PEM form"},
		{"127.0.0.1:1", "tls.crt", "text.pem", "tls.key: the file holds no private key in PEM form"},
		{"127.0.0.1:1", "tls.crt", "other.key", "certificate and key cannot be used together (private key does not match public key)"},
		{"unix:x.sock", "tls.crt", "tls.key", "TLS has no use there"},
	} {
		if _, err := parse(bad.listen, bad.cert, bad.key); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%v: %v", bad, err)
		}
	}
}
