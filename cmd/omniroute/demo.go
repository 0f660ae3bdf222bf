package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/lab"
	"omniroute/internal/server"
)

// serveDemo runs the gateway on simulated providers in this process.
func serveDemo(ctx context.Context, out io.Writer, log *slog.Logger, listen string) error {
	demo := lab.NewDemo(lab.DemoOptions{})
	if err := demo.Start(ctx); err != nil {
		return err
	}
	defer stopDemo(demo)
	text, err := demoConfig(demo, listen)
	if err != nil {
		return err
	}
	source := server.Source{OwnFolder: true, Load: func() (*config.Config, []config.Warning, error) {
		return config.Parse("demo", []byte(text), func(string) (string, bool) { return "", false })
	}}
	err = server.Run(ctx, server.Options{Source: source, Version: versionText(), Logger: log}, func(m *server.Main) {
		fmt.Fprint(out, banner(m.URL(), m.Config().Store.Path, listen == ""))
	})
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w\nfor the demo: omniroute serve --demo --listen 127.0.0.1:20129", err)
	}
	return err
}

// stopDemo ends the providers. Nobody asks them any more.
func stopDemo(demo *lab.Demo) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = demo.Stop(ctx)
}

// demoConfig is the demo's configuration with a store of its own.
func demoConfig(demo *lab.Demo, listen string) (string, error) {
	folder, err := stateFolder()
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if listen != "" {
		fmt.Fprintf(&b, "listen: %s\n", quoted(listen))
	}
	fmt.Fprintf(&b, "store: %s\n", quoted("sqlite:"+filepath.Join(folder, "demo.db")))
	return b.String() + demo.Config(), nil
}

// quoted writes a text for YAML so that nothing in it is expanded.
func quoted(text string) string {
	return "'" + strings.ReplaceAll(strings.ReplaceAll(text, "'", "''"), "${", "$${") + "'"
}

// stateFolder is the place for what a program remembers: always the same, so that a demo that was
// killed finds its state again.
func stateFolder() (string, error) {
	if folder := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(folder) {
		return filepath.Join(folder, "omniroute"), nil
	}
	if home, err := os.UserHomeDir(); err == nil && filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "omniroute"), nil
	}
	// A name of its own for each user, since the temporary folder belongs to all.
	folder := filepath.Join(os.TempDir(), fmt.Sprintf("omniroute-%d", os.Getuid()))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return "", fmt.Errorf("there is no place for the demo's state; set XDG_STATE_HOME to a folder: %w", err)
	}
	return folder, nil
}

// banner tells a newcomer what to try.
func banner(url, store string, usual bool) string {
	status := "omniroute status --watch"
	if !usual {
		status += " --url " + url
	}
	return fmt.Sprintf(`
The demo listens on %[1]s. Its providers are simulated and fail on a schedule.
Its state is in %[2]s; kill it and start it again, and the state is still there.

Ask the combo "demo", as a client of OpenAI's API does (-N shows the stream as it comes):

  curl -N %[1]s/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model": "demo", "stream": true, "messages": [{"role": "user", "content": "Hello"}]}'

Keep asking, and watch what happens in a second terminal:

  while sleep 1; do curl -s -o /dev/null -w '%%{http_code} %%header{x-omniroute-connection}\n' \
    %[1]s/v1/chat/completions -H 'content-type: application/json' \
    -d '{"model": "demo", "messages": [{"role": "user", "content": "Hello"}]}'; done

  %[3]s

or in a browser: %[1]s/dashboard

Or ask for a failure by its name, as the model: fault/429, fault/500, fault/hang, fault/cut, fault/empty.
GET %[1]s/v1/models lists them all. Ctrl-C ends the demo.

%[4]s
`, url, store, status, strings.TrimRight(lab.DemoTable(), "\n"))
}
