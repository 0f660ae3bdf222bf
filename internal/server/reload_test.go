package server

import (
	"strings"
	"testing"
	"time"

	"omniroute/internal/lab"
	"omniroute/resilience"
)

// slow makes streams last long enough to do something meanwhile.
func slow(o *lab.Options) {
	o.Latency.Gap.Median = 20 * time.Millisecond
	o.Text = func(lab.Prompt) string { return strings.Repeat("word ", 40) }
}

// TestReload changes the file while a stream runs: the stream goes on, what is new is there, and
// what was known is still known.
func TestReload(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, slow)
	g := start(t, t.TempDir(), yaml(base, ""))
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	s := g.open("chat")
	write(t, g.file, yaml(base, "  later: {targets: [acme/large]}\nrelay: {max_attempts: 3}\n"))
	g.log.wait(t, "the configuration was reloaded", 1)
	if code, text := g.chat("later"); code != 200 {
		t.Errorf("the new combo: %d %s", code, text)
	}
	if whole, err := s.rest(); !whole || err != nil {
		t.Errorf("the stream was dropped: %v %v", whole, err)
	}
	if c := g.status().Providers[0].Connections[0]; c.State != resilience.Cooling {
		t.Errorf("the cooldown is forgotten: %+v", c)
	}
	if g.Config().Relay.MaxAttempts != 3 {
		t.Error("the new settings are not in force")
	}

	// A bad file is refused with its places; the old one stays.
	write(t, g.file, yaml(base, "nonsense: 1\nrelay: {max_attempts: many}\n"))
	g.log.wait(t, "the old configuration stays in force", 1)
	if text := g.log.String(); !strings.Contains(text, "omniroute.yaml:16:1") || !strings.Contains(text, "relay.max_attempts") {
		t.Errorf("the log does not show what is wrong:\n%s", text)
	}
	if code, text := g.chat("later"); code != 200 {
		t.Errorf("the old configuration is gone: %d %s", code, text)
	}

	// What only a restart can change is said.
	write(t, g.file, "listen: 127.0.0.1:1\n"+strings.Replace(yaml(base, ""), "state.db", "other.db", 1))
	g.log.wait(t, "the new value is in force after a restart only", 2)
	for _, key := range []string{"key=listen", "key=store"} {
		if !strings.Contains(g.log.String(), key) {
			t.Errorf("%s was not reported:\n%s", key, g.log)
		}
	}
	if code, _ := g.chat("chat"); code != 200 {
		t.Errorf("the listener is gone: %d", code)
	}
}

// TestReloadRemoves shows that what is no longer configured takes its state along, and what comes
// back starts clean.
func TestReloadRemoves(t *testing.T) {
	t.Parallel()
	p, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	p.SetScript(lab.Phase{Match: lab.OnConnection("main"), Fault: lab.RateLimited(lab.RetryAfter(time.Minute))})
	g.chat("chat")
	whole := yaml(base, "")
	without := strings.Replace(whole, "      - {id: main, api_key: \""+key1+"\"}\n", "", 1)
	without = strings.Replace(without, "{target: acme/large, connection: main}, ", "", 1)
	write(t, g.file, without)
	g.log.wait(t, "the configuration was reloaded", 1)
	if n := len(g.status().Providers[0].Connections); n != 1 {
		t.Errorf("%d connections", n)
	}
	write(t, g.file, whole)
	g.log.wait(t, "the configuration was reloaded", 2)
	if c := g.status().Providers[0].Connections[0]; c.ID != "main" || c.State != resilience.Ready {
		t.Errorf("%+v", c)
	}
}

// TestReloadKeepsTheDoorShut takes the keys away while other machines can reach the listener.
func TestReloadKeepsTheDoorShut(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	g := start(t, t.TempDir(), "listen: 0.0.0.0:0\n"+yaml(base, ""))
	write(t, g.file, "listen: 127.0.0.1:0\n"+strings.Replace(yaml(base, ""), "client_keys:", "#", 1))
	g.log.wait(t, "the old configuration stays in force", 1)
	if !strings.Contains(g.log.String(), "client_keys and admin_token must stay") {
		t.Error(g.log)
	}
	if len(g.Config().ClientKeys) == 0 {
		t.Error("the gateway is open to everybody")
	}
}

// TestSameContent writes the file without a change: nothing is reloaded.
func TestSameContent(t *testing.T) {
	t.Parallel()
	_, base := upstream(t, nil)
	g := start(t, t.TempDir(), yaml(base, ""))
	write(t, g.file, yaml(base, ""))
	write(t, g.file, yaml(base, "relay: {max_attempts: 2}\n"))
	g.log.wait(t, "the configuration was reloaded", 1)
	if err := g.Reload(); err != nil { // and by hand, as SIGHUP does
		t.Error(err)
	}
	if n := strings.Count(g.log.String(), "the configuration was reloaded"); n != 2 {
		t.Errorf("reloaded %d times:\n%s", n, g.log)
	}
}
