package harness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// standIn, in the environment, turns this test binary into a small program that behaves as a
// gateway does towards the harness; its value says how.
const standIn = "HARNESS_STAND_IN"

func TestMain(m *testing.M) {
	if how := os.Getenv(standIn); how != "" {
		os.Exit(serve(how))
	}
	os.Exit(m.Run())
}

// serve reads `serve -c FILE`, is ready at the third question and ends at a SIGTERM.
func serve(how string) int {
	config, err := os.ReadFile(os.Args[3])
	if err != nil {
		fmt.Println(err)
		return 1
	}
	listen, rest, _ := strings.Cut(string(config), "\n")
	fmt.Printf("config: %s\n", strings.TrimSpace(rest))
	if how == "refuse" {
		fmt.Println("providers: none is configured")
		return 1
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var asked atomic.Int32
	mux := http.NewServeMux()
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if asked.Add(1) < 3 {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	})
	mux.HandleFunc("GET /admin/v1/status", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"asked": %d}`, asked.Load())
	})
	mux.HandleFunc("GET /exit", func(http.ResponseWriter, *http.Request) { os.Exit(3) })
	srv := &http.Server{Addr: strings.TrimPrefix(listen, "listen: "), Handler: mux, ReadHeaderTimeout: time.Second}
	go func() {
		if err := srv.ListenAndServe(); err != http.ErrServerClosed {
			fmt.Println(err)
			os.Exit(1)
		}
	}()
	<-ctx.Done()
	fmt.Println("stopping")
	return map[string]int{"bad-exit": 4}[how]
}

func options(t *testing.T, how string) Options {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return Options{Binary: self, Config: "marked: " + how + "\n", Env: []string{standIn + "=" + how}}
}

func TestGatewayLives(t *testing.T) {
	t.Parallel()
	g := Start(t, options(t, "well"))
	if got := g.Status(); got != `{"asked": 3}` {
		t.Errorf("status %s: Start must wait until the third question is answered well", got)
	}
	if err := g.Stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	g.WriteConfig("marked: second\n")
	g.Start()
	g.Kill()
	g.Start()
	if log := g.Log(); strings.Count(log, "marked: well") != 1 || strings.Count(log, "marked: second") != 2 || strings.Count(log, "stopping") != 1 {
		t.Errorf("three runs, one stopped and one killed, printed:\n%s", log)
	}
}

func TestStopReportsABadExit(t *testing.T) {
	t.Parallel()
	g := Start(t, options(t, "bad-exit"))
	if err := g.Stop(); err == nil || !strings.Contains(err.Error(), "exit status 4") {
		t.Errorf("stop: %v, want exit status 4", err)
	}
}

func TestStopReportsAnEarlierEnd(t *testing.T) {
	t.Parallel()
	g := Start(t, options(t, "well"))
	if err := get(t.Context(), g.URL+"/exit"); err == nil {
		t.Error("the process answered after its end")
	}
	<-g.proc.done
	if err := g.Stop(); err == nil || !strings.Contains(err.Error(), "by itself: exit status 3") {
		t.Errorf("stop: %v, want that it had ended by itself", err)
	}
}

// TestStartReportsARefusal runs Start under a recorder, since it ends the test that it fails.
func TestStartReportsARefusal(t *testing.T) {
	t.Parallel()
	r := &recorder{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		Start(r, options(t, "refuse"))
	}()
	<-done
	if !strings.Contains(r.fatal, "exit status 1") || !strings.Contains(r.fatal, "none is configured") {
		t.Errorf("a gateway that refuses its configuration gave %q", r.fatal)
	}
}

// recorder keeps a fatal message and ends the goroutine instead of the test.
type recorder struct {
	testing.TB
	fatal string
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.fatal = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

func TestFreeAddrIsNeverTheSame(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for range 50 {
		if a := FreeAddr(t); seen[a] {
			t.Fatalf("%s twice", a)
		} else {
			seen[a] = true
		}
	}
}
