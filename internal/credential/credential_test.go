package credential

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/config"
	"omniroute/resilience"
)

func parse(t *testing.T, connection string) *config.Config {
	t.Helper()
	cfg, _, err := config.Parse("omniroute.yaml", []byte("providers: {p: {base_url: http://localhost:1/v1, connections: [{id: k, "+connection+"}]}}"),
		func(string) (string, bool) { return "", false })
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func keyOf(cfg *config.Config) string { return cfg.Providers[0].Connections[0].Secret().Reveal() }

// TestKeysAreRefreshed before they end, or after refresh where they do not say; a failed run keeps the old one and is
// repeated with growing pauses; a reload with the same command runs nothing, and another command runs at once.
func TestKeysAreRefreshed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log strings.Builder
		var at []time.Duration
		begin, fail, ends := time.Now(), 0, time.Duration(0)
		var changed atomic.Int32
		k := New(slog.New(slog.NewTextHandler(&log, nil)), func() { changed.Add(1) })
		var mu sync.Mutex // the keeper's goroutines run the command
		k.run = func(context.Context, *config.Command) ([]byte, error) {
			mu.Lock()
			defer mu.Unlock()
			at = append(at, time.Since(begin))
			if fail > 0 {
				fail--
				return []byte("partial-secret"), errors.New("exit status 1")
			}
			if ends > 0 {
				return fmt.Appendf(nil, `{"api_key": "secret-%d", "expires_at": %q}`, len(at), time.Now().Add(ends).Format(time.RFC3339)), nil
			}
			return fmt.Appendf(nil, "secret-%d\n", len(at)), nil
		}
		mu.Lock() // but while something runs
		const command = `api_key_command: {run: [give, key], refresh: 30m}`
		cfg := parse(t, command)
		mu.Unlock()
		k.Adopt(t.Context(), cfg)
		synctest.Wait()
		mu.Lock()
		if got := keyOf(cfg); got != "secret-1" || len(k.Missing()) > 0 {
			t.Fatalf("the first key is %q", got)
		}
		next := parse(t, command)
		mu.Unlock()
		k.Adopt(t.Context(), next)
		synctest.Wait()
		mu.Lock()
		if got := keyOf(next); got != "secret-1" || len(at) != 1 {
			t.Errorf("after a reload: %q, %d runs", got, len(at))
		}
		mu.Unlock()
		time.Sleep(31 * time.Minute)
		synctest.Wait()
		mu.Lock()
		if keyOf(cfg) != "secret-2" || keyOf(next) != "secret-2" || changed.Load() != 1 {
			t.Errorf("after its time: %q and %q, told %d times", keyOf(cfg), keyOf(next), changed.Load())
		}
		if hidden := next.Hide("secret-1 secret-2"); strings.Contains(hidden, "secret") {
			t.Errorf("shown: %s", hidden)
		}
		fail, ends = 8, 10*time.Minute
		at = at[:2]
		mu.Unlock()
		time.Sleep(45 * time.Minute)
		synctest.Wait()
		mu.Lock()
		want := "[0s 30m0s 1h0m0s 1h0m1s 1h0m3s 1h0m7s 1h0m15s 1h0m31s 1h1m3s 1h2m3s 1h3m3s]" // 1s, 2s, … at most 1m
		if got := fmt.Sprint(at[:11]); got != want {
			t.Errorf("runs at %s, want %s", got, want)
		}
		if at[11]-at[10] != 9*time.Minute { // a minute before its end
			t.Errorf("the key with an end was replaced after %v", at[11]-at[10])
		}
		if !strings.HasPrefix(keyOf(cfg), "secret-1") {
			t.Errorf("the key is %q", keyOf(cfg))
		}
		runs := len(at)
		other := parse(t, `api_key_command: [another]`)
		mu.Unlock()
		k.Adopt(t.Context(), other)
		synctest.Wait()
		mu.Lock()
		if len(at) != runs+1 || keyOf(other) == keyOf(cfg) {
			t.Errorf("another command was run %d times", len(at)-runs)
		}
		mu.Unlock()
		k.Adopt(t.Context(), parse(t, `api_key: plain-key`))
		synctest.Wait()
		mu.Lock()
		runs = len(at)
		mu.Unlock()
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		mu.Lock()
		if len(at) != runs {
			t.Error("the command of a connection that is gone still runs")
		}
		mu.Unlock()
		k.Stop()
		if strings.Contains(log.String(), "secret") {
			t.Errorf("the log shows a key:\n%s", log.String())
		}
	})
}

// TestWithoutAnyKey tells of a connection that has none until it has one.
func TestWithoutAnyKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told atomic.Int32
		var mended atomic.Bool
		k := New(slog.New(slog.DiscardHandler), func() { told.Add(1) })
		k.run = func(context.Context, *config.Command) ([]byte, error) {
			if !mended.Load() {
				return nil, errors.New("exit status 1")
			}
			return []byte("key"), nil
		}
		cfg := parse(t, `api_key_command: [x]`)
		k.Adopt(t.Context(), cfg)
		if got := fmt.Sprint(k.Missing()); got != fmt.Sprint([]resilience.Key{{Provider: "p", Connection: "k"}}) {
			t.Errorf("without a key: %s", got)
		}
		time.Sleep(3500 * time.Millisecond)
		mended.Store(true)
		time.Sleep(5 * time.Second)
		if told.Load() != 3 || keyOf(cfg) != "key" || len(k.Missing()) != 0 {
			t.Errorf("told %d times, the key is %q", told.Load(), keyOf(cfg))
		}
		k.Stop()
	})
}

// TestCommands runs real ones.
func TestCommands(t *testing.T) {
	t.Parallel()
	const limit = 5 * time.Second
	for _, c := range []struct{ script, key, err string }{
		{"echo sk-1", "sk-1", ""},
		{`echo '{"api_key": "sk-2", "expires_at": "2999-01-01T00:00:00Z", "more": 1}'`, "sk-2", ""},
		{"echo sk-3; echo sk-secret >&2; exit 3", "", "exit status 3"},
		{"true", "", "it is empty"},
		{"echo two words", "", "spaces"},
		{"echo '{broken'", "", "no JSON object"},
		{`echo '{"api_key": "x", "expires_at": "tomorrow"}'`, "", "expires_at"},
		{"sleep 60 & echo sk-4; exit 1", "", "exit status 1"},
		{"head -c 100000 /dev/zero", "", "more than"},
	} {
		out, err := execute(t.Context(), &config.Command{Args: []string{"sh", "-c", c.script}, Timeout: limit})
		var a answer
		if err == nil {
			a, err = read(out)
		}
		if (err == nil) != (c.err == "") || err != nil && (!strings.Contains(err.Error(), c.err) || strings.Contains(err.Error(), "sk-")) || a.key.Reveal() != c.key {
			t.Errorf("%s: %q, %v", c.script, a.key.Reveal(), err)
		}
	}
	if _, err := execute(t.Context(), &config.Command{Args: []string{"sleep", "60"}, Timeout: 50 * time.Millisecond}); err == nil || !strings.Contains(err.Error(), "longer than 50ms") {
		t.Errorf("one that hangs: %v", err)
	}
	if _, err := execute(t.Context(), &config.Command{Args: []string{"/no/such/program"}, Timeout: time.Second}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("a program that is not there: %v", err)
	}
	cfg := parse(t, `api_key_command: [sh, -c, "echo sk-5"]`)
	if failed := Fill(t.Context(), cfg); len(failed) > 0 || keyOf(cfg) != "sk-5" {
		t.Errorf("%v, %q", failed, keyOf(cfg))
	}
}
