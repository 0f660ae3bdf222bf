//go:build unix

package server

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"omniroute/internal/lab"
	"omniroute/resilience"
)

// TestReloadsUnderLoad reloads fifty times while eight clients ask without a pause, with a file in
// between that is refused: no request fails, no stream is cut, and what was known of a connection
// before is still known, so that nobody calls it meanwhile.
func TestReloadsUnderLoad(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, func(o *lab.Options) {
		o.Latency.Gap.Median = 2 * time.Millisecond
		o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 10) }
	})
	g := start(t, t.TempDir(), yaml(base, ""))
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
			streamed := i%2 == 0
			for {
				select {
				case <-over:
					return
				default:
				}
				asked.Add(1)
				resp, err := g.request("POST", "/v1/chat/completions", chatBody("chat", streamed))
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
	const reloads = 50
	for i := range reloads {
		<-answered // requests come between reloads, and go on over them
		if i == reloads/2 {
			write(t, g.file, yaml(base, "relay: {max_attempts: none}\n"))
			if err := g.Reload(); err == nil {
				t.Error("a bad file is taken")
			}
			<-answered
		}
		write(t, g.file, yaml(base, fmt.Sprintf("  extra-%d: {targets: [acme/large]}\nrelay: {max_attempts: %d}\n", i, 2+i%5)))
		if err := g.Reload(); err != nil {
			t.Errorf("reload %d: %v", i, err)
		}
		if g.Config().Combo(fmt.Sprint("extra-", i)) == nil {
			t.Errorf("reload %d is not in force", i)
		}
	}
	close(over)
	clients.Wait()

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
	g := spawn(t, t.TempDir(), yaml(base, "shutdown_grace: 4s\n"))
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
