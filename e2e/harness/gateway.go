package harness

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// readyTime bounds the wait for the first good /readyz, stopTime that for the end after a SIGTERM.
	readyTime = 2 * time.Minute
	stopTime  = time.Minute
	pollPause = 10 * time.Millisecond
)

// Options says how a gateway runs.
type Options struct {
	// Config is the configuration without `listen`, which is the harness's.
	Config string
	// Env adds variables to an environment that is otherwise empty but for PATH and HOME.
	Env []string
	// Args follow `serve -c FILE`.
	Args []string
	// Binary is the program to run; empty means Binary(t).
	Binary string
}

// Gateway is one omniroute process after the other on the same port, folder and configuration.
// Its methods are for the test's goroutine.
type Gateway struct {
	// URL is the gateway's address without a path: "http://127.0.0.1:40001".
	URL string
	// Dir is where the configuration, and with a relative path the store, lives.
	Dir string

	t    testing.TB
	opts Options
	addr string
	proc *process
	log  logBuffer
}

// process is one run. err may be read when done is closed.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	err  error
}

// Start runs a gateway and returns when it is ready. At the end of the test it is stopped with
// SIGTERM, and anything but a clean exit fails the test; then its log is shown.
func Start(t testing.TB, opts Options) *Gateway {
	t.Helper()
	if opts.Binary == "" {
		opts.Binary = Binary(t)
	}
	g := &Gateway{t: t, opts: opts, Dir: t.TempDir(), addr: FreeAddr(t)}
	g.URL = "http://" + g.addr
	g.WriteConfig(opts.Config)
	t.Cleanup(func() {
		if g.proc != nil {
			if err := g.Stop(); err != nil {
				t.Errorf("stop the gateway: %v", err)
			}
		}
		if t.Failed() {
			t.Logf("the gateway's output:\n%s", g.Log())
		}
	})
	g.Start()
	return g
}

// WriteConfig replaces the configuration file at once, as editors do. A running gateway reloads it.
func (g *Gateway) WriteConfig(config string) {
	g.t.Helper()
	path := g.configPath()
	if err := os.WriteFile(path+".new", []byte("listen: "+g.addr+"\n"+config), 0o600); err != nil {
		g.t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		g.t.Fatal(err)
	}
}

func (g *Gateway) configPath() string { return filepath.Join(g.Dir, "omniroute.yaml") }

// Start runs the gateway again after Stop or Kill and returns when it is ready.
func (g *Gateway) Start() {
	g.t.Helper()
	if g.proc != nil {
		g.t.Fatal("the gateway is running")
	}
	// Not t.Context(): that ends before the cleanups, and with it would the process.
	cmd := exec.CommandContext(context.WithoutCancel(g.t.Context()), g.opts.Binary,
		append([]string{"serve", "-c", g.configPath()}, g.opts.Args...)...)
	cmd.Dir = g.Dir
	cmd.Env = append([]string{
		"PATH=" + os.Getenv("PATH"),
		"HOME=" + g.Dir,
		"GORACE=halt_on_error=1", // a data race is an exit that was not asked for
	}, g.opts.Env...)
	cmd.Stdout, cmd.Stderr = &g.log, &g.log
	if err := cmd.Start(); err != nil {
		g.t.Fatalf("start the gateway: %v", err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	g.proc = p
	if err := g.waitReady(); err != nil {
		g.Kill()
		g.t.Fatalf("%v\n%s", err, g.Log())
	}
}

// waitReady asks /readyz until it says yes, the process ends or readyTime is over.
func (g *Gateway) waitReady() error {
	ctx, cancel := context.WithTimeout(g.t.Context(), readyTime)
	defer cancel()
	tick := time.NewTicker(pollPause)
	defer tick.Stop()
	last := errors.New("never asked")
	for {
		select {
		case <-g.proc.done:
			return fmt.Errorf("the gateway ended before it was ready: %w", exitError(g.proc.err))
		case <-ctx.Done():
			return fmt.Errorf("the gateway was not ready in %v: %w", readyTime, last)
		case <-tick.C:
			if last = get(ctx, g.URL+"/readyz"); last == nil {
				return nil
			}
		}
	}
}

// get is nil when url answers 200.
func get(ctx context.Context, url string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, resp.Status)
	}
	return nil
}

// Signal sends a signal to the running gateway.
func (g *Gateway) Signal(s os.Signal) {
	g.t.Helper()
	if g.proc == nil {
		g.t.Fatal("the gateway is not running")
	}
	if err := g.proc.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		g.t.Fatalf("signal the gateway: %v", err)
	}
}

// Stop ends the gateway with SIGTERM and returns an error unless it then exits with status 0
// in time. One that had ended before, by itself, is an error too.
func (g *Gateway) Stop() error {
	g.t.Helper()
	if g.proc == nil {
		return errors.New("the gateway is not running")
	}
	p := g.proc
	select {
	case <-p.done:
		g.proc = nil
		return fmt.Errorf("it had ended by itself: %w", exitError(p.err))
	default:
	}
	g.Signal(syscall.SIGTERM)
	timer := time.NewTimer(stopTime)
	defer timer.Stop()
	select {
	case <-p.done:
		g.proc = nil
		return p.err
	case <-timer.C:
		g.Kill()
		return fmt.Errorf("it ran on for %v after a SIGTERM", stopTime)
	}
}

// Kill ends the gateway as kill -9 does and returns when it is gone.
func (g *Gateway) Kill() {
	g.t.Helper()
	g.Signal(syscall.SIGKILL)
	<-g.proc.done
	g.proc = nil
}

// Log returns what all runs have printed so far.
func (g *Gateway) Log() string { return g.log.String() }

// Status returns the body of GET /admin/v1/status, or the error as text: it is for a test's log.
func (g *Gateway) Status() string {
	// Cleanups ask too, after the test's own context.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(g.t.Context()), time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+"/admin/v1/status", http.NoBody)
	if err != nil {
		return err.Error()
	}
	resp, err := (&http.Client{}).Do(req)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err.Error()
	}
	return string(body)
}

// exitError makes the clean exit that nobody asked for readable.
func exitError(err error) error {
	if err == nil {
		return errors.New("exit status 0")
	}
	return err
}

// logBuffer collects a process's output while tests read it.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
