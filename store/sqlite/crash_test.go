package sqlite

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"omniroute/resilience"
)

const crashEnv = "OMNIROUTE_TEST_CRASH_STORE"

// batchOf is the n-th batch: three records that always carry the same level, one that is new
// with each batch and the end of an old one.
func batchOf(n int) []resilience.Change {
	record := func(l resilience.Layer, model string) resilience.Change {
		return resilience.Change{Record: resilience.Record{
			Layer: l, Key: resilience.Key{Provider: "p", Connection: "c", Model: model}, Level: n, State: "cooling", Detail: fmt.Sprintf(`{"n":%d}`, n),
		}}
	}
	old := record(resilience.LayerModel, fmt.Sprint(n-100))
	old.Delete = true
	return []resilience.Change{
		record(resilience.LayerBreaker, ""), record(resilience.LayerConnection, ""), record(resilience.LayerOperator, ""),
		record(resilience.LayerModel, fmt.Sprint(n)), old,
	}
}

// writeUntilKilled goes on after the last batch in the store, and prints the number of each
// batch once Apply has returned for it.
func writeUntilKilled(path string) error {
	ctx := context.Background()
	s, err := Open(ctx, path, Options{})
	if err != nil {
		return err
	}
	records, err := s.Load(ctx)
	if err != nil {
		return err
	}
	n := 0
	for _, r := range records {
		n = max(n, r.Level)
	}
	for {
		n++
		if err := s.Apply(ctx, batchOf(n)); err != nil {
			return err
		}
		if _, err := fmt.Println(n); err != nil {
			return err
		}
	}
}

// A killed process loses nothing that Apply had returned for, leaves no half batch and no lock.
func TestKill(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	written := 0
	rounds, more := 6, 97
	if shallow {
		rounds, more = 4, 40 // the writer is another process; nothing here races with it
	}
	for round := range rounds {
		acked := killAfter(t, path, 1+round*more)
		s := mustOpen(t, path)
		if moved, why := s.Moved(); moved != "" {
			t.Fatalf("round %d: the file was moved to %s: %v", round, moved, why)
		}
		written = checkBatches(t, mustLoad(t, s), acked)
		mustClose(t, s)
	}
	if written < rounds {
		t.Fatalf("only %d batches were written in %d rounds", written, rounds)
	}
}

// killAfter runs a writer, kills it as soon as it has acknowledged so many batches, and returns
// the last one that it acknowledged before it died.
func killAfter(t *testing.T, path string, batches int) (acked int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	giveUp := time.AfterFunc(5*time.Minute, func() { _ = cmd.Process.Kill() })
	defer giveUp.Stop()
	lines, seen := bufio.NewScanner(out), 0
	for lines.Scan() {
		if acked, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatalf("the writer printed %q", lines.Text())
		}
		if seen++; seen == batches {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.Exited() {
		t.Fatalf("the writer was to be killed and ended by itself: %v", cmd.ProcessState)
	}
	if seen < batches {
		t.Fatalf("the writer acknowledged %d of %d batches within five minutes", seen, batches)
	}
	return acked
}

// checkBatches fails unless the records are those after some batch n of at least acked.
func checkBatches(t *testing.T, records []resilience.Record, acked int) (n int) {
	t.Helper()
	models := map[string]bool{}
	for _, r := range records {
		n = max(n, r.Level)
	}
	for _, r := range records {
		if r.Layer == resilience.LayerModel {
			models[r.Key.Model] = true
			if fmt.Sprint(r.Level) != r.Key.Model {
				t.Errorf("model %s has level %d", r.Key.Model, r.Level)
			}
		} else if r.Level != n {
			t.Errorf("layer %v shows batch %d and another one batch %d: half a batch", r.Layer, r.Level, n)
		}
	}
	if n < acked {
		t.Fatalf("batch %d was acknowledged, the store ends with batch %d", acked, n)
	}
	for i := max(1, n-99); i <= n; i++ {
		if !models[fmt.Sprint(i)] {
			t.Errorf("the record of batch %d is lost", i)
		}
	}
	if want := min(n, 100); len(models) != want {
		t.Errorf("%d model records, want %d", len(models), want)
	}
	return n
}
