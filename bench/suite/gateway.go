package suite

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"omniroute/bench/proc"
	"omniroute/bench/upstream"
)

const leanKey = "lean-key"

// gateway is a running omniroute.
type gateway struct {
	url   string
	proc  *proc.Process
	log   *os.File
	ready time.Duration // from the start of the process to the first good /readyz
}

// leanConfig routes the names bench-MODEL to the lean provider. bench-turn first meets a provider
// that always fails and whose gates never close, so that every request fails over.
func leanConfig(lean string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `providers:
  lean:
    dialect: openai
    base_url: %[1]s/v1
    models: [%[2]s, %[3]s, %[4]s, %[5]s]
    connections: [{id: main, api_key: %[6]s}]
  shaky:
    dialect: openai
    base_url: %[1]s/v1
    models: [%[7]s]
    connections: [{id: main, api_key: %[6]s}]
    resilience:
      breaker: {failure_threshold: 1000000}
      cooldown: {transient_after: 1000000}
combos:
`, lean, upstream.Fast, upstream.Paced, upstream.Brief, upstream.Held, leanKey, upstream.Broken)
	for _, m := range []string{upstream.Fast, upstream.Paced, upstream.Brief, upstream.Held} {
		fmt.Fprintf(&b, "  bench-%s: {targets: [lean/%s]}\n", m, m)
	}
	fmt.Fprintf(&b, "  bench-turn: {targets: [shaky/%s, lean/%s]}\n", upstream.Broken, upstream.Fast)
	return b.String()
}

// gateway starts omniroute with a configuration in a folder, which it makes, and returns when it
// is ready. Its store is a SQLite file there; its request log goes to a file elsewhere.
func (b *bench) gateway(ctx context.Context, dir, config string, cores []int) (*gateway, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "omniroute.yaml")
	if err := os.WriteFile(file, []byte("listen: "+addr+"\nstore: sqlite:omniroute.db\n"+config), 0o600); err != nil {
		return nil, err
	}
	g := &gateway{url: "http://" + addr}
	// Not beside the configuration: the gateway watches that folder.
	if g.log, err = os.CreateTemp(b.dir, "requests-*.log"); err != nil {
		return nil, err
	}
	begin := time.Now()
	if g.proc, err = proc.Start(ctx, proc.Spec{Name: "omniroute", Path: b.Binary, Args: []string{"serve", "-c", file}, Dir: dir, Cores: cores, Output: g.log}); err != nil {
		return nil, err
	}
	if err := g.awaitReady(ctx); err != nil {
		_ = g.proc.Kill()
		return nil, fmt.Errorf("%w\n%s", err, g.proc.Output())
	}
	g.ready = time.Since(begin)
	return g, nil
}

func (g *gateway) stop() error {
	err := g.proc.Stop()
	g.log.Close()
	return err
}

func (g *gateway) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-g.proc.Ended():
			return fmt.Errorf("the gateway ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("the gateway was not ready in time: %w", context.Cause(ctx))
		case <-tick.C:
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			continue // it does not listen yet
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			return nil
		}
	}
}

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
