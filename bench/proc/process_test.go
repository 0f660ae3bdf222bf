//go:build linux

package proc

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// role, in the environment, turns this test binary into a process to be measured.
const role = "PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "work": // tells its GOMAXPROCS, then works until it is stopped
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM)
		fmt.Printf("{\"procs\":%d}\n", runtime.GOMAXPROCS(0))
		fmt.Fprintln(os.Stderr, "at work")
		for len(stop) == 0 {
			runtime.Gosched()
		}
	case "mute":
		fmt.Fprintln(os.Stderr, "not today")
		os.Exit(3)
	}
}

func self(t *testing.T, as string) Spec {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Spec{Name: as, Path: path, Env: []string{role + "=" + as, "GOMAXPROCS="}}
}

func TestAProcessOnOneCore(t *testing.T) {
	t.Parallel()
	var answer struct{ Procs int }
	s := self(t, "work")
	s.Cores, s.Answer = Cores()[:1], &answer
	log, err := os.Create(filepath.Join(t.TempDir(), "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	s.Output = log
	p, err := Start(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	if answer.Procs != 1 {
		t.Errorf("a process on one core has GOMAXPROCS %d", answer.Procs)
	}
	// It works without a pause, so that its clock must come to pass any time.
	for deadline := time.Now().Add(time.Minute); ; {
		used, err := CPU(p.PID)
		if err != nil {
			t.Fatal(err)
		}
		if used > 20*time.Millisecond {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a busy process used %v of CPU in a minute", used)
		}
		runtime.Gosched()
	}
	if rss, err := Memory(p.PID); err != nil || rss < 1<<20 || rss > 1<<30 {
		t.Errorf("resident memory %d, %v", rss, err)
	}
	if err := p.Stop(); err != nil {
		t.Error(err)
	}
	if out := p.Output(); !strings.Contains(out, "at work") {
		t.Errorf("its output is %q", out)
	}
	if _, err := CPU(p.PID); err == nil {
		t.Error("the CPU time of a process that has ended can be read")
	}
}

func TestAProcessThatGivesNoAnswer(t *testing.T) {
	t.Parallel()
	s := self(t, "mute")
	s.Answer = new(struct{})
	if _, err := Start(t.Context(), s); err == nil || !strings.Contains(err.Error(), "not today") {
		t.Errorf("the error %v does not say what the process said", err)
	}
	s.Path = filepath.Join(t.TempDir(), "nothing")
	if _, err := Start(t.Context(), s); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestResident(t *testing.T) {
	t.Parallel()
	if got, err := resident([]byte("Name:\tx\nVmRSS:\t   2048 kB\nRssAnon:\t 1 kB\n")); got != 2<<20 || err != nil {
		t.Errorf("%d, %v", got, err)
	}
	for _, bad := range []string{"", "VmRSS:\n", "VmRSS: x kB\n"} {
		if _, err := resident([]byte(bad)); err == nil {
			t.Errorf("%q was read", bad)
		}
	}
}

func TestTailKeepsTheEnd(t *testing.T) {
	t.Parallel()
	var b tailBuffer
	w := bufio.NewWriter(&b)
	for i := range 10_000 {
		fmt.Fprintf(w, "line %d\n", i)
	}
	w.Flush()
	if s := b.String(); len(s) > tailSize || !strings.HasSuffix(s, "line 9999\n") {
		t.Errorf("%d bytes, the end is %q", len(s), s[max(0, len(s)-20):])
	}
}
