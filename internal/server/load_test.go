//go:build unix

package server

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"omniroute/internal/certtest"
	"omniroute/internal/lab"
	"omniroute/resilience"
)

// TestReloadsUnderLoad reloads fifty times, and every time replaces the certificate, while eight clients ask without a
// pause, half of them over a new connection each time, with a file in between that is refused: no request fails, no
// stream is cut, and what was known of a connection before is still known, so that nobody calls it meanwhile.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, func(o *lab.Options) {
		o.Latency.Gap.Median = 2 * time.Millisecond
		o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 10) }
	})
	dir := t.TempDir()
	roots := x509.NewCertPool()
	const reloads = 50
	pairs := make([][2][]byte, reloads+1) // made before, so that the clients know them all
	for i := range pairs {
		pairs[i][0], pairs[i][1] = certtest.Pair(t, int64(i+1))
		roots.AppendCertsFromPEM(pairs[i][0])
	}
	rotate := func(i int) {
		for j, name := range []string{"tls.crt", "tls.key"} {
			if err := os.WriteFile(filepath.Join(dir, name+".new"), pairs[i][j], 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, name+".new"), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	rotate(0)
	const withTLS = "tls: {cert: tls.crt, key: tls.key}\n"
	g := start(t, dir, yaml(base, withTLS))
	g.client = overTLS(roots, false)
	fresh := *g
	fresh.client = overTLS(roots, true)
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(5 * time.Minute))})
	if code, text := g.chat("chat"); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	before := g.status().Providers[0].Connections[0]
	if before.State != resilience.Cooling {
		t.Fatalf("%+v", before)
	}

	var asked atomic.Int64
	answered := make(chan struct{}) // a client has an answer; nobody need hear it
	over := make(chan struct{})
	var clients sync.WaitGroup
	for i := range 8 {
		clients.Go(func() {
			streamed, by := i%2 == 0, g
			if i < 4 {
				by = &fresh
			}
			for {
				select {
				case <-over:
					return
				default:
				}
				asked.Add(1)
				resp, err := by.request("POST", "/v1/chat/completions", chatBody("chat", streamed))
				if err != nil {
					t.Errorf("request failed: %v", err)
					return
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || resp.StatusCode != 200 || streamed && !strings.HasSuffix(string(text), "data: [DONE]\n\n") {
					t.Errorf("request failed: %d %v %s", resp.StatusCode, err, text)
				}
				select {
				case answered <- struct{}{}:
				default:
				}
			}
		})
	}
	for i := range reloads {
		<-answered // requests come between reloads, and go on over them
		if i == reloads/2 {
			write(t, g.file, yaml(base, withTLS+"relay: {max_attempts: none}\n"))
			if err := g.Reload(); err == nil {
				t.Error("a bad file is taken")
			}
			<-answered
		}
		write(t, g.file, yaml(base, fmt.Sprintf("  extra-%d: {targets: [acme/large]}\nrelay: {max_attempts: %d}\n", i, 2+i%5)+withTLS))
		rotate(i + 1)
		if err := g.Reload(); err != nil {
			t.Errorf("reload %d: %v", i, err)
		}
		if g.Config().Combo(fmt.Sprint("extra-", i)) == nil {
			t.Errorf("reload %d is not in force", i)
		}
	}
	close(over)
	clients.Wait()
	if n := g.cert.current.Load().Leaf.SerialNumber.Int64(); n != reloads+1 {
		t.Errorf("certificate %d of %d is shown in the end", n, reloads+1)
	}

	after := g.status().Providers[0].Connections[0]
	if after.State != before.State || !after.RateLimitedUntil.Equal(before.RateLimitedUntil.Time) || after.BackoffLevel != before.BackoffLevel {
		t.Errorf("the cooldown was %+v and is %+v", before, after)
	}
	if n := p.Count("main", "large"); n != 1 {
		t.Errorf("the connection that is out was called %d times", n)
	}
	if n := asked.Load(); n < reloads {
		t.Errorf("only %d requests were asked", n)
	}
}

// TestTermWithManyStreams stops a gateway by SIGTERM while a hundred streams run, half of which would
// never end: the others come to their good end, and the half that is cut is told why, within the
// grace and a little.
func TestTermWithManyStreams(t *testing.T) {
	t.Parallel()
	const half = 50
	p, base := upstream(t, func(o *lab.Options) {
		o.Models = []string{"large", "endless"}
		o.Latency.Gap.Median = 40 * time.Millisecond
		o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 40) }
		o.Script = []lab.Phase{{Match: lab.OnModel("endless"), Fault: lab.SlowContent(time.Hour)}}
	})
	g := spawn(t, t.TempDir(), yaml(base, "shutdown_grace: 20s\n"))
	streams := map[string][]*stream{}
	for range half {
		for _, model := range []string{"acme/endless", "acme/large"} {
			streams[model] = append(streams[model], g.open(model))
		}
	}
	g.signal(t, syscall.SIGTERM)
	var clients sync.WaitGroup
	var whole, told atomic.Int64
	for model, some := range streams {
		for _, s := range some {
			clients.Go(func() {
				defer s.resp.Body.Close()
				text, err := io.ReadAll(s.body)
				switch end := string(text); {
				case err != nil:
					t.Errorf("%s: %v", model, err)
				case model == "acme/large" && strings.HasSuffix(end, "data: [DONE]\n\n"):
					whole.Add(1)
				case model == "acme/endless" && strings.Contains(end, `"code":"shutting_down"`) && !strings.Contains(end, "[DONE]"):
					told.Add(1)
				default:
					t.Errorf("%s ended with %q", model, end[max(0, len(end)-300):])
				}
			})
		}
	}
	clients.Wait()
	if whole.Load() != half || told.Load() != half {
		t.Errorf("%d streams came to their end and %d were told why not; want %d each", whole.Load(), told.Load(), half)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, g.log)
	}
	g.log.wait(t, fmt.Sprint(half, " requests were cut off"), 1)
	if n := p.Total(); n != 2*half {
		t.Errorf("the upstream was called %d times", n)
	}
}
