package main

import (
	"fmt"
	"net"
	"os"
	"strings"
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
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"await": await, "nosecrets": noSecrets, "expand": expand, "chat": chat},
	})
}

// freePort returns a port of this machine that nobody listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	_, port, err := net.SplitHostPort(l.Addr().String())
	return port, err
}

// await waits until the server at PORT is ready: await
func await(ts *testscript.TestScript, _ bool, _ []string) {
	for range 2000 {
		if code, _, err := send("GET", "http://127.0.0.1:"+ts.Getenv("PORT")+"/readyz", ""); err == nil && code == 200 {
			return
		}
		time.Sleep(5 * time.Millisecond) // a process of its own tells of its start in no other way
	}
	ts.Fatalf("no server is ready at port %s", ts.Getenv("PORT"))
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
