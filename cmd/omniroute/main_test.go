package main

import (
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"omniroute/internal/lab"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"omniroute": func() { os.Exit(run()) }})
}

// The secrets of the scripts. None may be in what a command prints.
var secrets = []string{"upstream-secret-1", "upstream-secret-2", "client-secret-word", "admin-secret-word"}

// TestScripts runs the command line as people do. Each script has a simulated provider at $UPSTREAM
// and a free port $PORT; what it must not show is looked for in all that its commands print.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			p := lab.New(lab.Options{Name: "acme", Keys: map[string]string{secrets[0]: "main", secrets[1]: "spare"}, Models: []string{"large"},
				Script: []lab.Phase{{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))}}})
			s, err := lab.Listen(p)
			if err != nil {
				return err
			}
			e.Defer(s.Close)
			port, err := freePort()
			if err != nil {
				return err
			}
			e.Setenv("UPSTREAM", s.BaseURL())
			e.Setenv("PORT", port)
			e.Setenv("HOME", e.WorkDir)
			e.Setenv("XDG_STATE_HOME", e.WorkDir+"/state")
			e.Setenv("NO_COLOR", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await, "written": written, "nosecrets": noSecrets, "expand": expand, "chat": chat},
	})
}

// lastPort is the last one that a script was given.
var lastPort atomic.Int32

// freePort returns a port of this machine that nobody listens on. It is below those that the system hands out, so that
// nobody gets it while the script's servers are down.
func freePort() (string, error) {
	lastPort.CompareAndSwap(0, 10_000+rand.Int32N(20_000))
	for {
		port := fmt.Sprint(lastPort.Add(1))
		l, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err == nil {
			return port, l.Close()
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", err
		}
	}
}

// patience is for how long a script waits for what comes at once, unless the machine is busy with something else.
const patience = time.Minute

// eventually waits for what processes of their own tell in no other way.
func eventually(ts *testscript.TestScript, what string, is func() bool) {
	for end := time.Now().Add(patience); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			ts.Fatalf("not within %v: %s", patience, what)
		}
	}
}

// await waits until the server at PORT is ready: await
func await(ts *testscript.TestScript, _ bool, _ []string) {
	eventually(ts, "a server is ready at port "+ts.Getenv("PORT"), func() bool {
		code, _, err := send("GET", "http://127.0.0.1:"+ts.Getenv("PORT")+"/readyz", "")
		return err == nil && code == 200
	})
}

// written waits until a running server has written to its store what it knows of a connection: written FILE
func written(ts *testscript.TestScript, _ bool, args []string) {
	db, err := sql.Open("sqlite", "file:"+ts.MkAbs(args[0])+"?mode=ro&_pragma=busy_timeout(60000)")
	ts.Check(err)
	defer db.Close()
	eventually(ts, "a connection's state is in "+args[0], func() bool {
		n := 0
		ts.Check(db.QueryRow("SELECT count(*) FROM domain_connection_state").Scan(&n))
		return n > 0
	})
}

// chat asks the server for a model and wants a status: chat MODEL STATUS
func chat(ts *testscript.TestScript, _ bool, args []string) {
	code, text, err := send("POST", "http://127.0.0.1:"+ts.Getenv("PORT")+"/v1/chat/completions",
		fmt.Sprintf(`{"model": %q, "messages": [{"role": "user", "content": "Hello"}]}`, args[0]))
	if err != nil || fmt.Sprint(code) != args[1] {
		ts.Fatalf("chat %s: %d %s %v", args[0], code, text, err)
	}
}

// expand replaces $UPSTREAM and $PORT in files: expand FILE…
func expand(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		text := strings.NewReplacer("$UPSTREAM", ts.Getenv("UPSTREAM"), "$PORT", ts.Getenv("PORT")).Replace(ts.ReadFile(file))
		ts.Check(os.WriteFile(ts.MkAbs(file), []byte(text), 0o600))
	}
}

// noSecrets looks for every secret in files, or in what the last command printed: nosecrets FILE…
func noSecrets(ts *testscript.TestScript, _ bool, args []string) {
	for _, file := range args {
		text := ts.ReadFile(file)
		for _, secret := range secrets {
			if strings.Contains(text, secret) {
				ts.Fatalf("%s shows %q:\n%s", file, secret, text)
			}
		}
	}
}
