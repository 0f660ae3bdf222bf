package server

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"omniroute/internal/config"
)

// certificate is what the listener shows, read from files and again whenever they change. Connections that are open
// keep what they were shown; a pair that cannot be used is reported, and the old one stays.
type certificate struct {
	log     *slog.Logger
	current atomic.Pointer[tls.Certificate]

	mu      sync.Mutex
	files   config.TLS
	watches []*watcher
}

// newCertificate reads the files and begins to watch them.
func newCertificate(files config.TLS, log *slog.Logger) (*certificate, error) {
	c := &certificate{log: log}
	return c, c.use(files)
}

// use takes the certificate from these files from now on. After an error everything is as before.
func (c *certificate) use(files config.TLS) error {
	sums := map[string][]byte{} // from before the files are read, so that no change goes unseen
	for _, path := range []string{files.CertFile, files.KeyFile} {
		sums[path], _ = sumOf(path) // reading it says what is wrong
	}
	c.mu.Lock()
	if err := c.read(files); err != nil || files == c.files {
		c.mu.Unlock()
		return err
	}
	old := c.watches
	c.files, c.watches = files, nil
	for path, sum := range sums {
		w, err := watch("certificate", path, sum, c.log, c.changed)
		if err != nil {
			c.log.Warn("a file of the certificate cannot be watched; send SIGHUP after a change", "error", err)
			continue
		}
		c.watches = append(c.watches, w)
	}
	c.mu.Unlock()
	stopAll(old) // one of them may have waited for the lock
	return nil
}

// read takes over what the files hold now.
func (c *certificate) read(files config.TLS) error {
	pair, err := tls.LoadX509KeyPair(files.CertFile, files.KeyFile)
	if err != nil {
		return err
	}
	if old := c.current.Swap(&pair); old == nil || !old.Leaf.Equal(pair.Leaf) {
		level := slog.LevelInfo
		if !pair.Leaf.NotAfter.After(time.Now()) {
			level = slog.LevelWarn
		}
		c.log.Log(context.Background(), level, "the certificate was read", "file", files.CertFile, "names", strings.Join(pair.Leaf.DNSNames, " "), "ends", pair.Leaf.NotAfter.UTC())
	}
	return nil
}

// changed runs when one of the files is another one. Where both change one after the other, the first time may find
// two halves.
func (c *certificate) changed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(c.files); err != nil {
		c.log.Warn("the new certificate cannot be used yet; the old one stays in force", "error", err)
	}
}

// get is the tls.Config's GetCertificate.
func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	if pair := c.current.Load(); pair != nil {
		return pair, nil
	}
	return nil, errors.New("there is no certificate")
}

// ends returns when the certificate ends.
func (c *certificate) ends() time.Time { return c.current.Load().Leaf.NotAfter }

// stop ends the watching.
func (c *certificate) stop() {
	c.mu.Lock()
	old := c.watches
	c.watches = nil
	c.mu.Unlock()
	stopAll(old)
}

func stopAll(watches []*watcher) {
	for _, w := range watches {
		w.stop()
	}
}

// handshakes keeps what the server says of connections that failed before a request in the log's lowest level: every
// scanner of a public port makes such a line. The rest is a warning.
type handshakes struct{ log *slog.Logger }

// Write implements io.Writer for a log.Logger, which writes one line at a time.
func (h handshakes) Write(line []byte) (int, error) {
	level := slog.LevelWarn
	text := strings.TrimSuffix(string(line), "\n")
	if strings.HasPrefix(text, "http: TLS handshake error") {
		level = slog.LevelDebug
	}
	h.log.Log(context.Background(), level, text)
	return len(line), nil
}
