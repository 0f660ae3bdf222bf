package memory_test

import (
	"fmt"
	"sync"
	"testing"

	"omniroute/resilience"
	"omniroute/store/memory"
	"omniroute/store/storetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Medium {
		return storetest.Medium{
			Volatile: true,
			Open:     func(storetest.TB) resilience.Store { return memory.New() },
		}
	})
}

func TestHub(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(testing.TB) storetest.Medium {
		hub := memory.NewHub(nil)
		return storetest.Medium{Open: func(storetest.TB) resilience.Store { return hub.Node("one") }}
	})
	t.Run("shared", func(t *testing.T) {
		t.Parallel()
		storetest.RunShared(t, func(testing.TB) storetest.Fleet {
			hub := memory.NewHub(nil)
			return func(node string) resilience.Shared { return hub.Node(node) }
		})
	})
}

// Loads and batches at the same time must neither race nor show half a batch.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	s := memory.New()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range 200 {
				pair := []resilience.Change{
					{Record: record(fmt.Sprint(w), "a", i)},
					{Record: record(fmt.Sprint(w), "b", i)},
				}
				if err := s.Apply(t.Context(), pair); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for range 200 {
				records, err := s.Load(t.Context())
				if err != nil {
					t.Error(err)
				}
				levels := map[string]int{}
				for _, r := range records {
					if before, ok := levels[r.Key.Provider]; ok && before != r.Level {
						t.Errorf("provider %s shows half a batch: levels %d and %d", r.Key.Provider, before, r.Level)
					}
					levels[r.Key.Provider] = r.Level
				}
			}
		})
	}
	wg.Wait()
}

func record(provider, connection string, level int) resilience.Record {
	return resilience.Record{
		Layer: resilience.LayerConnection,
		Key:   resilience.Key{Provider: provider, Connection: connection},
		Level: level,
	}
}
