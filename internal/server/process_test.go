//go:build unix

package server

import (
	"bufio"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"omniroute/internal/lab"
	"omniroute/resilience"
)

// process is a gateway in a process of its own.
type process struct {
	*gate
	cmd *exec.Cmd
	url string
}

// spawn runs this test binary as a gateway on the configuration in dir.
func spawn(t *testing.T, dir, text string, env ...string) *process {
	t.Helper()
	g := &gate{log: &logs{}, file: filepath.Join(dir, "omniroute.yaml"), t: t, client: &http.Client{Transport: &http.Transport{}, Timeout: patience}}
	write(t, g.file, text)
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), serveFile+"="+g.file), env...)
	cmd.Stderr = g.log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait(); g.client.CloseIdleConnections() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the gateway did not start: %v\n%s", err, g.log)
	}
	p := &process{gate: g, cmd: cmd, url: strings.TrimSpace(line)}
	g.at = p.url
	return p
}

func (p *process) signal(t *testing.T, s os.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		t.Fatal(err)
	}
}

// TestKill ends a gateway as kill -9 does: what it had written before is still known. That it writes within 250 ms shows
// on virtual time, in the engine's own tests.
func TestKill(t *testing.T) {
	t.Parallel()
	up, base := upstream(t, nil)
	dir := t.TempDir()
	g := spawn(t, dir, yaml(base, ""))
	up.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	if code, text := g.chat("chat"); code != 200 {
		t.Fatalf("%d %s", code, text)
	}
	before := g.status().Providers[0].Connections[0]
	written(t, dir)
	g.signal(t, syscall.SIGKILL)
	_ = g.cmd.Wait()

	after := spawn(t, dir, yaml(base, "")).status().Providers[0].Connections[0]
	if before.State != resilience.Cooling || after.State != before.State || after.BackoffLevel != before.BackoffLevel ||
		after.RateLimitedUntil.Sub(before.RateLimitedUntil.Time).Abs() > 2*time.Millisecond {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

// TestSignals reloads by SIGHUP and drains by SIGTERM.
func TestSignals(t *testing.T) {
	t.Parallel()
	base, end := held(t)
	g := spawn(t, t.TempDir(), yaml(base, ""))
	g.signal(t, syscall.SIGHUP)
	g.log.wait(t, "the configuration was reloaded", 1)
	s := g.open("chat")
	g.signal(t, syscall.SIGTERM)
	g.log.wait(t, "waiting for requests to finish", 1)
	end()
	if whole, err := s.rest(); !whole || err != nil {
		t.Errorf("the stream was cut: %v %v", whole, err)
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, g.log)
	}
}

// TestImpatience ends a gateway by a second signal while a stream runs that would never end.
func TestImpatience(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, func(o *lab.Options) {
		o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 40) }
		o.Script = []lab.Phase{lab.Always(lab.SlowContent(time.Hour))}
	})
	g := spawn(t, t.TempDir(), yaml(base, ""))
	s := g.open("chat")
	g.signal(t, os.Interrupt)
	g.log.wait(t, "waiting for requests to finish", 1)
	g.signal(t, os.Interrupt)
	if whole, _ := s.rest(); whole {
		t.Error("the answer looks whole")
	}
	if err := g.cmd.Wait(); err == nil || g.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("%v", err)
	}
	g.log.wait(t, "1 request was cut off by the second signal", 1)
}

// TestGraceIsOver lets the configured time pass: that is no failure.
func TestGraceIsOver(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, func(o *lab.Options) {
		o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 40) }
		o.Script = []lab.Phase{lab.Always(lab.SlowContent(time.Hour))}
	})
	g := spawn(t, t.TempDir(), yaml(base, "shutdown_grace: 100ms\n"))
	s := g.open("chat")
	g.signal(t, syscall.SIGTERM)
	if whole, _ := s.rest(); whole {
		t.Error("the answer looks whole")
	}
	if err := g.cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, g.log)
	}
	g.log.wait(t, "not all requests could finish", 1)
	for _, secret := range []string{key1, key2, clientKey, token} {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("the log shows %q:\n%s", secret, fmt.Sprint(g.log))
		}
	}
}
