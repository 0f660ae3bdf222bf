package fleet

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
	"omniroute/store/memory"
)

var update = flag.Bool("update", false, "write the table into docs/cluster.md")

const (
	outage = time.Minute
	pace   = 100 * time.Millisecond // between a node's requests
	took   = 50 * time.Millisecond  // a call of the upstream
	away   = 2 * time.Millisecond   // to the store and back
	page   = "../../../docs/cluster.md"
)

// waste is how many upstream calls failed in the outage, and how many of the store's calls were
// made for it.
type waste struct{ calls, store int64 }

// simulate sends the requests of all nodes to a provider that is out for a minute. Every request
// has a fallback, so none waits.
func simulate(t *testing.T, nodes int, shared bool) (w waste) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		hub := memory.NewHub(nil)
		var engines []*resilience.Engine
		var ways []*memory.Node
		for i := range nodes {
			o := resilience.Options{Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), History: 1}
			if shared {
				way := hub.Node(fmt.Sprint(i))
				way.Slow(away)
				ways, o.Store = append(ways, way), way
			}
			e, err := resilience.New(o)
			if err != nil {
				t.Fatal(err)
			}
			engines = append(engines, e)
		}
		var starts sync.WaitGroup
		for _, e := range engines {
			starts.Go(func() { _ = e.Start(context.Background()) })
		}
		starts.Wait()
		time.Sleep(5 * time.Second)
		for _, way := range ways {
			w.store -= way.Calls()
		}
		var wasted atomic.Int64
		end := time.Now().Add(outage)
		var clients sync.WaitGroup
		for _, e := range engines {
			clients.Go(func() { traffic(e, end, &wasted) })
		}
		clients.Wait()
		w.calls = wasted.Load()
		for _, way := range ways {
			w.store += way.Calls()
		}
		for _, e := range engines {
			starts.Go(func() { _ = e.Stop(context.Background()) })
		}
		starts.Wait()
	})
	return w
}

// traffic is one node's: a request every so often, its answer a little later.
func traffic(e *resilience.Engine, end time.Time, wasted *atomic.Int64) {
	target := e.Target(resilience.Key{Provider: "p", Connection: "a", Model: "m"})
	var calls sync.WaitGroup
	for time.Sleep(rand.N(pace)); time.Now().Before(end); time.Sleep(pace) {
		permit, err := target.Acquire()
		if err != nil {
			continue // the fallback answers
		}
		calls.Go(func() {
			time.Sleep(took)
			wasted.Add(1)
			permit.Failure(resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
		})
	}
	calls.Wait()
}

// A fleet that shares wastes about what one node does, whatever its size.
func TestSharingKeepsTheWasteSmall(t *testing.T) {
	t.Parallel()
	one := simulate(t, 1, false)
	for _, nodes := range []int{1, 10, 50} {
		alone, shared := simulate(t, nodes, false), simulate(t, nodes, true)
		t.Logf("%d nodes: %d calls alone, %d shared, with %d calls of the store", nodes, alone.calls, shared.calls, shared.store)
		if alone.calls < one.calls*int64(nodes)*9/10 {
			t.Errorf("%d nodes alone waste %d calls, one wastes %d: the comparison is unfair", nodes, alone.calls, one.calls)
		}
		// Besides what one node wastes, those that are in flight when the first of them have failed.
		if most := one.calls + 2*int64(nodes); shared.calls > most {
			t.Errorf("%d nodes waste %d calls together, at most %d are expected", nodes, shared.calls, most)
		}
	}
}

const (
	tableBegins = "<!-- fleet-table: written by make fleet-table -->\n"
	tableEnds   = "<!-- end of fleet-table -->\n"
)

// TestTable writes the table with -update, and otherwise checks that the page has one.
func TestTable(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(b), tableBegins)
	table, after, closed := strings.Cut(rest, tableEnds)
	if !ok || !closed {
		t.Fatal("docs/cluster.md has no place for the table")
	}
	if !*update {
		if rows := strings.Count(table, "\n"); rows != 6 {
			t.Errorf("the table has %d lines; write it with make fleet-table", rows)
		}
		return
	}
	table = "| nodes | requests | wasted, each by itself | wasted, shared | calls of the store for it |\n|---:|---:|---:|---:|---:|\n"
	for _, nodes := range []int{1, 10, 100, 1000} {
		alone, shared := simulate(t, nodes, false), simulate(t, nodes, true)
		table += fmt.Sprintf("| %d | %d | %d | %d | %d |\n", nodes, int64(nodes)*int64(outage/pace), alone.calls, shared.calls, shared.store)
	}
	if err := os.WriteFile(page, []byte(before+tableBegins+table+tableEnds+after), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table)
}
