package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"testing"
	"time"

	"omniroute/resilience"
	"omniroute/store/sqlite"
)

// BenchmarkStart is a restart with 100,000 stored exclusions, as the engine writes them: from Start to
// the first request that is answered.
func BenchmarkStart(b *testing.B) {
	dir := b.TempDir()
	s, err := sqlite.Open(b.Context(), filepath.Join(dir, "state.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	now := time.Now().UnixMilli()
	changes := make([]resilience.Change, 100_000)
	for i := range changes {
		changes[i].Record = resilience.Record{
			Layer: resilience.LayerModel, Key: resilience.Key{Provider: "acme", Connection: "main", Model: fmt.Sprintf("model-%06d", i)},
			State: "locked", Kind: resilience.KindRateLimit, Failures: 3, Level: 3,
			SinceMs: now, UntilMs: now + 1_800_000, UpdatedMs: now, LockoutMs: 1_800_000,
			Detail: fmt.Sprintf(`{"rule":"text.rate_limit","failed_ms":%d,"recent_ms":[%d,%d,%d]}`, now, now-2000, now-1000, now),
		}
	}
	if err := errors.Join(s.Apply(b.Context(), changes), s.Close()); err != nil {
		b.Fatal(err)
	}
	file := filepath.Join(dir, "omniroute.yaml")
	for b.Loop() {
		b.StopTimer()
		write(b, file, yaml("http://127.0.0.1:1/v1", ""))
		m := New(Options{Source: Find(file), Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
		b.StartTimer()
		if err := m.Start(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if n := len(m.Engine().Status().Lockouts); n != len(changes) {
			b.Fatalf("%d exclusions are known, want %d", n, len(changes))
		}
		if err := m.Stop(context.Background()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
