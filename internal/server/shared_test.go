package server

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"omniroute/internal/config"
	"omniroute/internal/lab"
	"omniroute/internal/redistest"
	"omniroute/resilience"
	"omniroute/store/redis"
	"omniroute/store/sqlite"
)

const storePassword = "store-secret"

// sharedYAML is a configuration whose store is a server.
func sharedYAML(base, url string) string {
	return strings.Replace(yaml(base, ""), "sqlite:state.db", "'"+url+"'", 1)
}

// until waits for something to become true of the gateway's status.
func (g *gate) until(t *testing.T, what string, is func(s statusOf) bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		s := statusOf{g.status().Cluster, g.status().Persistence, len(g.status().Nodes), g.status().Providers[0].Connections[0].State}
		if is(s) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("not %s: %+v\n%s", what, s, g.log)
		}
	}
}

type statusOf struct {
	cluster, persistence string
	nodes                int
	main                 resilience.ConnectionState
}

func TestTwoGatewaysShare(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", storePassword)
	p, base := upstream(t, nil)
	text := sharedYAML(base, "redis://:"+storePassword+"@"+server.Addr+"/2?prefix=test:")
	one, two := start(t, t.TempDir(), text), start(t, t.TempDir(), text)
	for _, g := range []*gate{one, two} {
		g.until(t, "two nodes", func(s statusOf) bool { return s.cluster == "ok" && s.persistence == "ok" && s.nodes == 2 })
	}
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	if code, answer := one.chat("chat"); code != 200 {
		t.Fatalf("%d %s", code, answer)
	}
	two.until(t, "told", func(s statusOf) bool { return s.main == resilience.Cooling })
	if code, _ := two.call("POST", "/admin/v1/reset", `{"scope":"all"}`); code != 200 {
		t.Fatal(code)
	}
	one.until(t, "reset", func(s statusOf) bool { return s.main == resilience.Ready })
	if code, _ := two.call("POST", "/admin/v1/exclude", `{"provider":"acme","connection":"main","for":"5m","reason":"maintenance"}`); code != 200 {
		t.Fatal(code)
	}
	one.until(t, "excluded", func(s statusOf) bool { return s.main == resilience.Excluded })

	// A backup is a store that one gateway can go on with.
	dir := t.TempDir()
	file := filepath.Join(dir, "state.db")
	cfg := one.Config()
	from, err := Backup(t.Context(), cfg, file)
	if err != nil || strings.Contains(from, storePassword) {
		t.Fatal(from, err)
	}
	if _, err := Backup(t.Context(), cfg, file); err == nil {
		t.Error("a backup was written over")
	}
	alone := start(t, dir, yaml(base, ""))
	if c := alone.status().Providers[0].Connections[0]; c.State != resilience.Excluded {
		t.Errorf("%+v", c)
	}

	if err := one.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	two.until(t, "one node", func(s statusOf) bool { return s.nodes == 1 })
	again := start(t, t.TempDir(), text)
	again.until(t, "what it was before the restart", func(s statusOf) bool { return s.main == resilience.Excluded })
	_, status := two.call("GET", "/admin/v1/status", "")
	for _, said := range []string{one.log.String(), two.log.String(), status} {
		if strings.Contains(said, storePassword) {
			t.Errorf("the password is shown: %s", said)
		}
	}
}

// What only a person can undo ends the start; a server that is away does not.
func TestSharedStoreAtTheStart(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, "--requirepass", storePassword)
	_, base := upstream(t, nil)
	err := prepare(t, t.TempDir(), sharedYAML(base, "redis://:wrong-secret@"+server.Addr)).Start(t.Context())
	if !errors.Is(err, redis.ErrDenied) || strings.Contains(err.Error(), "wrong-secret") {
		t.Errorf("%v", err)
	}
	err = prepare(t, t.TempDir(), sharedYAML(base, "redis://:"+storePassword+"@"+server.Addr+"/999")).Start(t.Context())
	if !errors.Is(err, redis.ErrDatabase) {
		t.Errorf("%v", err)
	}

	server.Kill()
	g := start(t, t.TempDir(), sharedYAML(base, "redis://:"+storePassword+"@"+server.Addr))
	g.log.wait(t, "the shared store cannot be reached; starting alone", 1)
	if s := g.status(); s.Cluster != "isolated" || s.Persistence != "degraded" {
		t.Errorf("cluster %s, persistence %s", s.Cluster, s.Persistence)
	}
	if code, answer := g.chat("chat"); code != 200 {
		t.Errorf("%d %s", code, answer)
	}
	server.Start()
	g.until(t, "back", func(s statusOf) bool { return s.cluster == "ok" && s.persistence == "ok" })
}

func TestCheckShared(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	name, err := CheckShared(t.Context(), &config.Redis{Address: server.Addr, DB: 1})
	if err != nil || name != "redis://"+server.Addr+"/1" {
		t.Errorf("%s %v", name, err)
	}
	if got := server.Must("DBSIZE"); got != "0" {
		t.Errorf("a check has written %s keys", got)
	}
	if _, err := CheckShared(t.Context(), &config.Redis{Address: "127.0.0.1:1"}); !errors.Is(err, redis.ErrAway) {
		t.Error(err)
	}
	if _, err := Backup(t.Context(), &config.Config{Store: config.Store{Kind: config.StoreMemory}}, "x"); err == nil || errors.Is(err, sqlite.ErrClosed) {
		t.Error("there is nothing to copy")
	}
}
