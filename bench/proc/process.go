package proc

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// ErrUnsupported says that the kernel's books cannot be read here.
var ErrUnsupported = errors.New("benchmarks of processes need Linux")

// Spec is a process to start.
type Spec struct {
	Name string
	Path string
	Args []string
	Dir  string
	Env  []string
	// Cores are the CPUs that it may run on; none means all. A Go program takes their number as
	// its GOMAXPROCS.
	Cores []int
	// Output gets stdout (unless Answer is set) and stderr, without a detour over this process.
	// Nil keeps the last lines, for error messages.
	Output *os.File
	// Answer, when set, is filled from the process's first line on stdout, which must be JSON.
	Answer any
}

// Process is a running process. Its methods are for one goroutine.
type Process struct {
	Name string
	PID  int

	cmd  *exec.Cmd
	done chan struct{}
	err  error
	tail *tailBuffer
	file *os.File
}

// startTime bounds the wait for a process's first line.
const startTime = 30 * time.Second

// Start starts a process, and returns when it has given its answer, where it is to give one. The
// process ends with Stop, or when ctx does.
func Start(ctx context.Context, s Spec) (*Process, error) {
	cmd := exec.CommandContext(ctx, s.Path, s.Args...)
	cmd.Dir = s.Dir
	cmd.Env = append(os.Environ(), s.Env...)
	p := &Process{Name: s.Name, cmd: cmd, done: make(chan struct{}), tail: &tailBuffer{}}
	out := io.Writer(p.tail)
	if s.Output != nil {
		out, p.file = s.Output, s.Output
	}
	cmd.Stderr = out
	var answer io.ReadCloser
	if s.Answer == nil {
		cmd.Stdout = out
	} else {
		var err error
		if answer, err = cmd.StdoutPipe(); err != nil {
			return nil, err
		}
	}
	if err := startOn(cmd, s.Cores); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.Name, err)
	}
	p.PID = cmd.Process.Pid
	read := make(chan error, 1)
	if answer != nil {
		lines := bufio.NewReader(answer)
		go func() {
			line, err := lines.ReadBytes('\n')
			if err == nil {
				err = json.Unmarshal(line, s.Answer)
			}
			read <- err
			_, _ = io.Copy(io.Discard, lines)
			p.wait()
		}()
	} else {
		go p.wait()
		return p, nil
	}
	timer := time.NewTimer(startTime)
	defer timer.Stop()
	select {
	case err := <-read:
		if err == nil {
			return p, nil
		}
		return nil, errors.Join(fmt.Errorf("%s gave no answer: %w\n%s", s.Name, err, p.tail), p.Kill())
	case <-timer.C:
		return nil, errors.Join(fmt.Errorf("%s gave no answer in %v\n%s", s.Name, startTime, p.tail), p.Kill())
	}
}

func (p *Process) wait() {
	p.err = p.cmd.Wait()
	close(p.done)
}

// Ended is closed when the process has ended.
func (p *Process) Ended() <-chan struct{} { return p.done }

// Output returns the last lines that it printed.
func (p *Process) Output() string {
	if p.file == nil {
		return p.tail.String()
	}
	info, err := p.file.Stat()
	if err != nil {
		return err.Error()
	}
	buf := make([]byte, tailSize)
	n, _ := p.file.ReadAt(buf, max(0, info.Size()-tailSize)) // a short read is the whole file
	return string(buf[:n])
}

// Stop ends the process with SIGTERM, and with SIGKILL after ten seconds.
func (p *Process) Stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case <-p.done:
		return nil
	case <-timer.C:
		return errors.Join(fmt.Errorf("%s ran on for 10s after a SIGTERM", p.Name), p.Kill())
	}
}

// Kill ends the process at once.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done
	return nil
}

// tailBuffer keeps the last few kilobytes, for error messages.
type tailBuffer struct {
	mu  sync.Mutex
	buf []byte
}

const tailSize = 4 << 10

func (t *tailBuffer) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.buf = append(t.buf, b...)
	if len(t.buf) > 2*tailSize {
		t.buf = append(t.buf[:0], t.buf[len(t.buf)-tailSize:]...)
	}
	return len(b), nil
}

func (t *tailBuffer) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(bytes.ToValidUTF8(t.buf[max(0, len(t.buf)-tailSize):], []byte("?")))
}
