package config

import (
	"crypto/tls"
	"strings"
)

// TLS names the files of the listener's certificate. They are read again whenever they change.
type TLS struct {
	// CertFile has the certificate and what stands between it and a root, KeyFile its private key, in PEM.
	CertFile, KeyFile string
}

// tls reads where the listener's certificate is, and whether it can be used as it is now.
func (b *builder) tls(n *node) {
	cert, key := n.get("cert"), n.get("key")
	if !n.ok() || !cert.ok() || !key.ok() {
		return
	}
	if b.cfg.Listen.Network == "unix" {
		b.errorf(n, "who connects to a unix socket is on this machine, so TLS has no use there; remove it, or listen on HOST:PORT")
		return
	}
	files := &TLS{CertFile: fromDir(b.dir, cert.text), KeyFile: fromDir(b.dir, key.text)}
	c, err := b.read(files.CertFile)
	if err != nil {
		b.errorf(cert, "%s", fileError(err))
		return
	}
	k, err := b.read(files.KeyFile)
	if err != nil {
		b.errorf(key, "%s", fileError(err))
		return
	}
	switch _, err := tls.X509KeyPair(c, k); {
	case err == nil:
		b.cfg.TLS = files
	case !strings.Contains(string(c), "-----BEGIN CERTIFICATE-----"):
		b.errorf(cert, "the file holds no certificate in PEM form; it must have a -----BEGIN CERTIFICATE----- block")
	case !strings.Contains(string(k), "PRIVATE KEY-----"):
		b.errorf(key, "the file holds no private key in PEM form; it must have a -----BEGIN PRIVATE KEY----- block")
	default:
		b.errorf(n, "certificate and key cannot be used together (%s); name the files of one pair, the key without a password", strings.TrimPrefix(err.Error(), "tls: "))
	}
}
