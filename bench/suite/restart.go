package suite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"omniroute/bench/load"
	"omniroute/resilience"
	"omniroute/store/sqlite"
)

// restart measures the time from the start of the process to the first good /readyz with a store
// full of exclusions.
func (b *bench) restart(ctx context.Context) ([]Row, error) {
	stored := pick(b, 100_000, 20_000)
	dir := filepath.Join(b.dir, "restart")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := fill(ctx, filepath.Join(dir, "omniroute.db"), stored); err != nil {
		return nil, err
	}
	var times, empty []float64
	for i := range pick(b, 5, 2) {
		g, err := b.gateway(ctx, dir, leanConfig("http://127.0.0.1:1"), nil)
		if err != nil {
			return nil, err
		}
		times = append(times, float64(g.ready))
		got := stored
		if i == 0 {
			got, err = lockouts(ctx, g.url)
		}
		if err := g.stop(); err != nil {
			return nil, err
		}
		if err != nil || got != stored {
			return nil, fmt.Errorf("the gateway knows %d of %d stored exclusions: %w", got, stored, err)
		}
		if g, err = b.gateway(ctx, filepath.Join(b.dir, fmt.Sprint("empty-", i)), leanConfig("http://127.0.0.1:1"), nil); err != nil {
			return nil, err
		}
		empty = append(empty, float64(g.ready))
		if err := g.stop(); err != nil {
			return nil, err
		}
	}
	median := time.Duration(load.Median(times))
	return []Row{{ID: "restart", What: fmt.Sprintf("from start to ready, %d stored exclusions (reference: none)", stored),
		Ours: micros(median), Reference: micros(time.Duration(load.Median(empty))),
		Value: float64(median) / float64(time.Millisecond), Unit: "ms", Bound: 500, Raw: map[string][]float64{"full_ns": times, "empty_ns": empty}}}, nil
}

// fill stores locked models of one connection.
func fill(ctx context.Context, path string, n int) error {
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	now := time.Now()
	changes := make([]resilience.Change, 0, n)
	for i := range n {
		changes = append(changes, resilience.Change{Record: resilience.Record{
			Layer: resilience.LayerModel,
			Key:   resilience.Key{Provider: "lean", Connection: "main", Model: fmt.Sprintf("model-%06d", i)},
			State: "locked", Kind: resilience.KindRateLimit, Failures: 3, Level: 3,
			SinceMs: now.UnixMilli(), UntilMs: now.Add(30 * time.Minute).UnixMilli(), UpdatedMs: now.UnixMilli(),
			LockoutMs: (30 * time.Minute).Milliseconds(),
		}})
	}
	return errors.Join(s.Apply(ctx, changes), s.Close())
}

// lockouts counts what the gateway's status lists.
func lockouts(ctx context.Context, url string) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/admin/v1/status", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := (&http.Client{Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var status struct {
		Lockouts []struct{} `json:"lockouts"`
	}
	err = json.NewDecoder(resp.Body).Decode(&status)
	return len(status.Lockouts), err
}
