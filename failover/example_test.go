package failover_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"omniroute/failover"
	"omniroute/resilience"
)

// Two providers offer the same thing. The first one is tried first, for as long as it is well.
func ExampleRun() {
	engine, err := resilience.New(resilience.Options{})
	if err != nil {
		panic(err)
	}
	runner := failover.NewRunner(engine)
	defer runner.Close()

	targets := []resilience.Key{
		{Provider: "acme", Connection: "main", Model: "large"},
		{Provider: "globex", Connection: "main", Model: "large"},
	}
	// complete stands for a call of a provider's client. It must end with its context.
	complete := func(ctx context.Context, key resilience.Key, prompt string) (string, error) {
		if key.Provider == "acme" {
			return "", errors.New("acme is down")
		}
		return "answer of " + key.Provider, nil
	}

	for i := range 8 {
		tried := 0
		answer, err := failover.Run(context.Background(), runner, targets,
			func(ctx context.Context, a *failover.Attempt) (string, error) {
				tried++
				return complete(ctx, a.Target.Key(), "hello")
			})
		if i == 0 || i == 7 {
			fmt.Println(answer, err, "after", tried, "calls")
		}
	}
	// Output:
	// answer of globex <nil> after 2 calls
	// answer of globex <nil> after 1 calls
}

// What an error means can be said by whoever knows the provider.
func ExampleRunWith() {
	engine, err := resilience.New(resilience.Options{})
	if err != nil {
		panic(err)
	}
	runner := failover.NewRunner(engine)
	defer runner.Close()

	options := failover.Options{
		Limits: failover.Limits{MaxWait: -1}, // do not wait for a target to come back
		Verdict: func(_ resilience.Key, err error) resilience.Verdict {
			var status statusError
			if errors.As(err, &status) && int(status) == http.StatusTooManyRequests {
				return resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
			}
			return resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError}
		},
	}
	_, err = failover.RunWith(context.Background(), runner, []resilience.Key{{Provider: "acme", Connection: "main", Model: "large"}}, options,
		func(context.Context, *failover.Attempt) (string, error) {
			return "", statusError(http.StatusTooManyRequests)
		})
	var failed *failover.Error
	fmt.Println(errors.As(err, &failed), failed.Report.Class == failover.ClassLimited, failed.Report.RetryAfter > 0)
	// Output: true true true
}

type statusError int

func (s statusError) Error() string { return http.StatusText(int(s)) }
