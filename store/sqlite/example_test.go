package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"omniroute/resilience"
	"omniroute/store/sqlite"
)

// The three layers with their state on disk. The second engine is another life of the program.
func Example() {
	folder, err := os.MkdirTemp("", "example")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(folder)
	key := resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-5.2"}

	life := func(work func(*resilience.Target)) {
		ctx := context.Background()
		store, err := sqlite.Open(ctx, filepath.Join(folder, "omniroute.db"), sqlite.Options{})
		if err != nil {
			panic(err)
		}
		defer store.Close()
		engine, err := resilience.New(resilience.Options{Store: store})
		if err != nil {
			panic(err)
		}
		if err := engine.Start(ctx); err != nil {
			panic(err)
		}
		defer engine.Stop(ctx)
		work(engine.Target(key))
	}

	life(func(t *resilience.Target) {
		permit, err := t.Acquire()
		fmt.Println("first life:", err)
		permit.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
	})
	life(func(t *resilience.Target) {
		_, err := t.Acquire()
		fmt.Println("second life:", err)
	})
	// Output:
	// first life: <nil>
	// second life: openai/main/gpt-5.2 is excluded by its connection (auth) until someone acts
}
