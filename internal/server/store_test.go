package server

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"omniroute/internal/lab"
	"omniroute/resilience"
	"omniroute/store/sqlite"
)

// TestRestart shows that a cooldown outlives its process.
func TestRestart(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, nil)
	dir := t.TempDir()
	g := start(t, dir, yaml(base, ""))
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	g.chat("chat")
	before := g.status().Providers[0].Connections[0]
	if err := g.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := start(t, dir, yaml(base, "")).status().Providers[0].Connections[0]
	if after.State != resilience.Cooling || after.BackoffLevel != before.BackoffLevel ||
		after.RateLimitedUntil.Sub(before.RateLimitedUntil.Time).Abs() > time.Millisecond {
		t.Errorf("before %+v, after %+v", before, after)
	}
}

func TestStoreInUse(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	dir := t.TempDir()
	start(t, dir, yaml(base, ""))
	err := prepare(t, dir, yaml(base, "")).Start(t.Context())
	if !errors.Is(err, sqlite.ErrInUse) || !strings.Contains(err.Error(), "Stop it") {
		t.Errorf("%v", err)
	}
}

// edit runs a statement on the store's file.
func edit(t *testing.T, dir, statement string) {
	t.Helper()
	db, err := sql.Open("sqlite", filepath.Join(dir, "state.db"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// written waits until a gateway in another process has written to the store's file what it knows of a connection.
func written(t *testing.T, dir string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "state.db")+"?mode=ro&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		n := 0
		if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM domain_connection_state").Scan(&n); err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatal("nothing was written")
		}
	}
}

func TestStoreOfOthers(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	newer := t.TempDir()
	if err := start(t, newer, yaml(base, "")).Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	edit(t, newer, "PRAGMA user_version = 99")
	foreign := t.TempDir()
	edit(t, foreign, "CREATE TABLE invoices (id INTEGER)")
	for dir, want := range map[string]error{newer: sqlite.ErrNewer, foreign: sqlite.ErrForeign} {
		g := prepare(t, dir, yaml(base, ""))
		if err := g.Start(t.Context()); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}

func TestDamagedStore(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "state.db"), []byte(strings.Repeat("this is no database ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	g := start(t, dir, yaml(base, ""))
	g.log.wait(t, "the store was damaged; it was moved aside", 1)
	if strings.Contains(g.log.String(), "Restart the gateway") {
		t.Errorf("the advice has been followed already:\n%s", g.log)
	}
	if s := g.status(); s.Persistence != "ok" {
		t.Errorf("persistence %s", s.Persistence)
	}
	if kept, _ := filepath.Glob(filepath.Join(dir, "state.db.corrupt-*")); len(kept) == 0 {
		t.Error("the damaged file is gone")
	}
}

// TestLateStore starts without a place for the store: requests are answered, status says that
// nothing is kept, and once the place is there what has happened meanwhile is in the file.
func TestLateStore(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, nil)
	dir := t.TempDir()
	text := strings.Replace(yaml(base, ""), "sqlite:state.db", "sqlite:not/yet/state.db", 1)
	g := start(t, dir, text)
	g.log.wait(t, "the store cannot be opened; starting without what was known", 1)
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	if code, answer := g.chat("chat"); code != 200 {
		t.Errorf("%d %s", code, answer)
	}
	if s := g.status(); s.Persistence != "degraded" {
		t.Errorf("persistence %s", s.Persistence)
	}
	if code, health := g.call("GET", "/healthz", ""); code != 200 || !strings.Contains(health, `"persistence":"degraded"`) {
		t.Errorf("health: %d %s", code, health)
	}
	if err := os.Mkdir(filepath.Join(dir, "not"), 0o700); err != nil {
		t.Fatal(err)
	}
	g.log.wait(t, "the store is back", 1)
	// The event that health goes by comes a moment after the line.
	health := ""
	for end := time.Now().Add(patience); !strings.Contains(health, `"persistence":"ok"`); _, health = g.call("GET", "/healthz", "") {
		if time.Now().After(end) {
			t.Fatalf("health: %s", health)
		}
	}
	if err := g.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	if c := start(t, dir, text).status().Providers[0].Connections[0]; c.State != resilience.Cooling {
		t.Errorf("what happened without the store is lost: %+v", c)
	}
}

func TestMemoryStore(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	g := start(t, t.TempDir(), strings.Replace(yaml(base, ""), "sqlite:state.db", "'memory:'", 1))
	if s := g.status(); s.Persistence != "off" {
		t.Errorf("persistence %s", s.Persistence)
	}
}
