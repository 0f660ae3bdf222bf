package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"omniroute/resilience"
)

// answer stands for a call of a provider that is out of order.
func answer() (string, error) { return "", errors.New("500 Internal Server Error") }

// Take a permit for each attempt and settle it with what came of it. When too many in a row have
// failed, the engine turns attempts away before they are made, and says until when.
func Example() {
	engine, err := resilience.New(resilience.Options{Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Resolve a target once and keep it.
	target := engine.Target(resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-5.2"})
	for i := 1; i <= 3; i++ {
		permit, err := target.Acquire()
		if err != nil {
			var excluded *resilience.ExcludedError
			if errors.As(err, &excluded) {
				fmt.Printf("attempt %d: not made, by the %v, for %v\n", i, excluded.Layer, excluded.RetryAfter)
			}
			continue
		}
		if _, err := answer(); err != nil {
			permit.Failure(resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError})
			fmt.Printf("attempt %d: %v\n", i, err)
			continue
		}
		permit.Success()
	}
	// Output:
	// attempt 1: 500 Internal Server Error
	// attempt 2: 500 Internal Server Error
	// attempt 3: not made, by the connection, for 1s
}

// A circuit breaker alone, for anything that may fail.
func ExampleCircuitBreaker_Execute() {
	engine, err := resilience.New(resilience.Options{Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	breaker := engine.CircuitBreaker("database", resilience.BreakerOptions{
		FailureThreshold: 2,
		ResetTimeout:     time.Minute,
		OnStateChange: func(name string, from, to resilience.BreakerState) {
			fmt.Printf("%s: %s, then %s\n", name, from, to)
		},
	})
	for range 3 {
		err := breaker.Execute(context.Background(), func(context.Context) error {
			return errors.New("connection refused")
		})
		fmt.Println(err, errors.Is(err, resilience.ErrExcluded))
	}
	// Output:
	// connection refused false
	// database: CLOSED, then OPEN
	// connection refused false
	// database is excluded by its breaker (server_error) until 2026-01-02T03:05:05.000Z true
}

// A model that one account may not use is locked for that account alone.
func ExampleEngine_RecordFailure() {
	engine, err := resilience.New(resilience.Options{Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	large := resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-large"}
	small := resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-small"}
	spare := resilience.Key{Provider: "openai", Connection: "spare", Model: "gpt-large"}

	engine.RecordFailure(large, resilience.Verdict{
		Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true,
	})
	for _, k := range []resilience.Key{large, small, spare} {
		fmt.Println(k, engine.IsReady(k))
	}
	for _, l := range engine.AllModelLockouts() {
		fmt.Printf("%s/%s/%s: %v for %ds\n", l.Provider, l.Connection, l.Model, l.Kind, l.RetryAfterMs/1000)
	}
	// Output:
	// openai/main/gpt-large false
	// openai/main/gpt-small true
	// openai/spare/gpt-large true
	// openai/main/gpt-large: model_not_found for 600s
}

// With a Store, exclusions and levels survive a restart. Start loads them, Stop writes the rest.
func ExampleOptions_store() {
	ctx := context.Background()
	store := &table{} // or store/sqlite, store/memory
	key := resilience.Key{Provider: "openai", Connection: "main", Model: "gpt-5.2"}

	first, err := resilience.New(resilience.Options{Store: store, Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := first.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	first.RecordFailure(key, resilience.Verdict{
		Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute,
	})
	if err := first.Stop(ctx); err != nil {
		fmt.Println(err)
		return
	}

	second, err := resilience.New(resilience.Options{Store: store, Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := second.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	_, err = second.Target(key).Acquire()
	fmt.Println(err)
	if err := second.Stop(ctx); err != nil {
		fmt.Println(err)
	}
	// Output:
	// openai/main/gpt-5.2 is excluded by its connection (rate_limit) until 2026-01-02T03:05:05.000Z
}

// A plan is decided at once: who would be admitted, and who is out until when.
func ExampleEngine_Standings() {
	engine, err := resilience.New(resilience.Options{Now: clock()})
	if err != nil {
		fmt.Println(err)
		return
	}
	var plan []*resilience.Target
	for _, connection := range []string{"main", "spare"} {
		plan = append(plan, engine.Target(resilience.Key{Provider: "openai", Connection: connection, Model: "gpt-5.2"}))
	}
	engine.MarkAccountUnavailable(resilience.Key{Provider: "openai", Connection: "main"}, resilience.KindQuotaExhausted)
	for i, s := range engine.Standings(plan, false, nil) {
		fmt.Println(plan[i].Key(), s.Out, s.RetryAfter)
	}
	// Output:
	// openai/main/gpt-5.2 true 5m0s
	// openai/spare/gpt-5.2 false 0s
}

func ExampleCalculateBackoffCooldown() {
	for level := range 10 {
		fmt.Print(resilience.CalculateBackoffCooldown(float64(level)), " ")
	}
	// Output: 1s 2s 4s 8s 16s 32s 1m4s 2m0s 2m0s 2m0s
}

// clock is a clock that stands still, so that the examples' output does not change.
func clock() func() time.Time {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	return func() time.Time { return now }
}

// table is the least that a Store must do.
type table struct {
	rows map[resilience.RecordID]resilience.Record
}

func (t *table) Load(context.Context) ([]resilience.Record, error) {
	var out []resilience.Record
	for _, r := range t.rows {
		out = append(out, r)
	}
	return out, nil
}

func (t *table) Apply(_ context.Context, changes []resilience.Change) error {
	if t.rows == nil {
		t.rows = map[resilience.RecordID]resilience.Record{}
	}
	for _, c := range changes {
		if c.Delete {
			delete(t.rows, c.Record.ID())
		} else {
			t.rows[c.Record.ID()] = c.Record
		}
	}
	return nil
}
