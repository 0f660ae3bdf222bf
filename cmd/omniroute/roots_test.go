package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestRootsWithoutSystem runs itself again as on a machine without certificates: whoever is signed
// by a public authority must be trusted all the same.
func TestRootsWithoutSystem(t *testing.T) {
	t.Parallel()
	const child = "OMNIROUTE_TEST_ROOTS"
	if os.Getenv(child) != "" {
		verifyPublicRoot(t)
		return
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+t.Name()+"$")
	missing := filepath.Join(t.TempDir(), "missing")
	cmd.Env = append(os.Environ(), child+"=1", "SSL_CERT_FILE="+missing, "SSL_CERT_DIR="+missing)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func verifyPublicRoot(t *testing.T) {
	t.Helper()
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if cert.Subject.CommonName != "ISRG Root X1" {
			continue
		}
		if _, err := cert.Verify(x509.VerifyOptions{}); err != nil {
			t.Errorf("the roots in the program are not used: %v", err)
		}
		return
	}
	t.Error("the bundle has no root of that name; choose another one for this test")
}
