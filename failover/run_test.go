package failover_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// bubble runs f on virtual time with a runner. No goroutine may be left when it returns.
func bubble(t *testing.T, f func(t *testing.T, rn *failover.Runner)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		e, err := resilience.New(resilience.Options{})
		if err != nil {
			t.Fatal(err)
		}
		rn := failover.NewRunner(e)
		defer rn.Close()
		f(t, rn)
		synctest.Wait()
		if n := rn.Waiting(); n != 0 {
			t.Errorf("%d requests wait when all is over", n)
		}
	})
}

var (
	a1   = resilience.Key{Provider: "a", Connection: "1", Model: "m"}
	a2   = resilience.Key{Provider: "a", Connection: "2", Model: "m"}
	b1   = resilience.Key{Provider: "b", Connection: "1", Model: "m"}
	keys = []resilience.Key{a1, b1}
)

// blame is an error that brings its verdict along.
type blame resilience.Verdict

func (b blame) Error() string               { return resilience.Verdict(b).String() }
func (b blame) Verdict() resilience.Verdict { return resilience.Verdict(b) }

var (
	limited = blame{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
	broken  = blame{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError}
	refused = blame{Scope: resilience.ScopeClient, Kind: resilience.KindInvalidRequest}
)

func name(_ context.Context, a *failover.Attempt) (string, error) {
	return a.Target.Key().Provider, nil
}

func TestRunMovesOn(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		got, err := failover.Run(t.Context(), rn, keys, func(ctx context.Context, a *failover.Attempt) (string, error) {
			if a.Target.Key() == a1 {
				return "", limited
			}
			return name(ctx, a)
		})
		if got != "b" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
	})
}

func TestRunWaits(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		start := time.Now()
		_, err := failover.Run(t.Context(), rn, keys[:1], func(context.Context, *failover.Attempt) (string, error) {
			if time.Since(start) < 3*time.Second {
				return "", limited
			}
			return "ok", nil
		})
		if err != nil || time.Since(start) != 3*time.Second {
			t.Fatalf("%v after %v, want an answer after the cooldowns of 1s and 2s", err, time.Since(start))
		}
	})
}

// Those who wait come back one after the other.
func TestRunWaitersReturnEvenly(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		start := time.Now()
		var calls, early atomic.Int32
		done := make(chan error, 10)
		for range cap(done) {
			go func() {
				_, err := failover.Run(t.Context(), rn, keys[:1], func(context.Context, *failover.Attempt) (int, error) {
					calls.Add(1)
					switch at := time.Since(start); {
					case at < 2*time.Second:
						return 0, limited
					case at < 2500*time.Millisecond:
						early.Add(1)
					}
					return 1, nil
				})
				done <- err
			}()
		}
		for range cap(done) {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if n := early.Load(); n > 4 {
			t.Errorf("%d of 10 came back in the first half second", n)
		}
		if d := time.Since(start); d < 4*time.Second || d > 10*time.Second {
			t.Errorf("all were back after %v", d)
		}
	})
}

func TestRunTellsWhatFailed(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		_, err := failover.RunWith(t.Context(), rn, keys, failover.Options{Limits: failover.Limits{MaxWait: -1}},
			func(_ context.Context, a *failover.Attempt) (string, error) { return "", limited })
		var failed *failover.Error
		if !errors.As(err, &failed) || !errors.Is(err, limited) || failed.Report.Class != failover.ClassLimited || len(failed.Causes) != 2 {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{"a/1/m failed: connection/rate_limit", "b/1/m failed", "retry after 1s"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q does not tell %q", err, want)
			}
		}
		_, err = failover.Run(t.Context(), rn, nil, name)
		if !errors.As(err, &failed) || failed.Report.Cause != failover.CauseNoConnection || !strings.Contains(err.Error(), "none was given") {
			t.Errorf("without a target: %v", err)
		}
		_, err = failover.Run(t.Context(), rn, []resilience.Key{a2, b1}, func(context.Context, *failover.Attempt) (string, error) { return "", refused })
		if !errors.As(err, &failed) || failed.Report.Cause != failover.CauseRequest || failed.Report.First.Key != a2 {
			t.Errorf("the client's own fault: %v", err)
		}
	})
}

// An error that says nothing of itself is the provider's, a transport error is what it is, and a
// function of the caller's has the first word.
func TestRunJudges(t *testing.T) {
	for _, c := range []struct {
		err     error
		verdict func(resilience.Key, error) resilience.Verdict
		kind    resilience.Kind
		scope   resilience.Scope
	}{
		{err: errors.New("what"), kind: resilience.KindNetwork, scope: resilience.ScopeProvider},
		{err: fmt.Errorf("wrapped: %w", limited), kind: resilience.KindRateLimit, scope: resilience.ScopeConnection},
		{err: limited, kind: resilience.KindContentPolicy, scope: resilience.ScopeRequest, verdict: func(resilience.Key, error) resilience.Verdict {
			return resilience.Verdict{Scope: resilience.ScopeRequest, Kind: resilience.KindContentPolicy}
		}},
	} {
		t.Run(c.kind.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, rn *failover.Runner) {
				o := failover.Options{Verdict: c.verdict, Limits: failover.Limits{MaxAttempts: 1}}
				_, err := failover.RunWith(t.Context(), rn, keys, o, func(context.Context, *failover.Attempt) (int, error) { return 0, c.err })
				var failed *failover.Error
				if !errors.As(err, &failed) || failed.Report.Attempts[0].Verdict.Kind != c.kind || failed.Report.Attempts[0].Verdict.Scope != c.scope {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

// The value of a stream counts from its first content on: then nothing is tried elsewhere.
func TestRunStreams(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := failover.Options{Stream: true, FirstToken: 5 * time.Second}
		got, err := failover.RunWith(t.Context(), rn, keys, o, func(ctx context.Context, a *failover.Attempt) (string, error) {
			time.Sleep(4 * time.Second)
			if !a.FirstContent() {
				t.Error("the only attempt was not first")
			}
			time.Sleep(time.Minute) // beyond FirstToken
			return name(ctx, a)
		})
		if got != "a" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		cut := errors.New("cut")
		calls := 0
		_, err = failover.RunWith(t.Context(), rn, keys, o, func(_ context.Context, a *failover.Attempt) (string, error) {
			calls++
			a.FirstContent()
			return "", cut
		})
		if err != cut || calls != 1 {
			t.Errorf("a stream that broke off: %v after %d calls", err, calls)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err = failover.RunWith(ctx, rn, keys, o, func(ctx context.Context, a *failover.Attempt) (string, error) {
			a.FirstContent()
			<-ctx.Done()
			return "", ctx.Err()
		}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a client that left: %v", err)
		}
	})
}

// R9: a hung provider's requests start elsewhere, and the first to answer wins.
func TestRunCompanions(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := failover.Options{Stream: true, FirstToken: 20 * time.Second} // suspicious after 2s
		start := time.Now()
		type done struct {
			who   string
			err   error
			after time.Duration
		}
		out := make(chan done, 8)
		var canceled, second atomic.Int32
		for i := range cap(out) {
			go func() {
				time.Sleep(time.Duration(i) * 100 * time.Millisecond)
				begun := time.Now()
				who, err := failover.RunWith(t.Context(), rn, keys, o, func(ctx context.Context, a *failover.Attempt) (string, error) {
					if a.Target.Key() == a1 {
						<-ctx.Done()
						canceled.Add(1)
						if a.FirstContent() {
							second.Add(1)
						}
						return "", ctx.Err()
					}
					time.Sleep(300 * time.Millisecond)
					a.FirstContent()
					return name(ctx, a)
				})
				out <- done{who, err, time.Since(begun)}
			}()
		}
		for range cap(out) {
			d := <-out
			if d.who != "b" || d.err != nil || d.after < 2300*time.Millisecond || d.after > 2800*time.Millisecond {
				t.Errorf("got %q, %v after %v", d.who, d.err, d.after)
			}
		}
		synctest.Wait()
		if canceled.Load() != 8 || second.Load() != 0 {
			t.Errorf("%d slow attempts were cancelled, %d of them came first too", canceled.Load(), second.Load())
		}
		// From now on it is passed by.
		begun := time.Now()
		if who, err := failover.RunWith(t.Context(), rn, keys, o, name); who != "b" || err != nil || time.Since(begun) > 0 {
			t.Errorf("got %q, %v after %v", who, err, time.Since(begun))
		}
		if d := time.Since(start); d > 4*time.Second {
			t.Errorf("it took %v", d)
		}
	})
}

// A panic is the program's own: it surfaces where Run was called, and blames nobody.
func TestRunPanics(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		func() {
			defer func() {
				p, ok := recover().(failover.Panic)
				if !ok || p.Value != "oops" || !strings.Contains(p.String(), "TestRunPanics") {
					t.Errorf("recovered %v", p)
				}
			}()
			failover.Run(t.Context(), rn, keys, func(context.Context, *failover.Attempt) (int, error) { panic("oops") })
		}()
		exited := make(chan bool, 1)
		go func() {
			defer func() { exited <- recover() == nil }()
			failover.Run(t.Context(), rn, keys, func(context.Context, *failover.Attempt) (int, error) {
				runtime.Goexit()
				return 0, nil
			})
			t.Error("Run came back from a call that has ended its goroutine")
		}()
		if !<-exited {
			t.Error("a call that ends its goroutine made Run panic")
		}
		if s := rn.Engine().Status().Providers; len(s) > 0 && s[0].Breaker.Failures != 0 {
			t.Error("the provider was blamed")
		}
	})
}

// Many at once, for the race detector.
func TestRunCrowd(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		done := make(chan struct{})
		const n = 300
		var n500 atomic.Int32
		for i := range n {
			go func() {
				defer func() { done <- struct{}{} }()
				time.Sleep(time.Duration(i) * 10 * time.Millisecond)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if i%17 == 0 {
					time.AfterFunc(50*time.Millisecond, cancel)
				}
				failover.RunWith(ctx, rn, []resilience.Key{a1, a2, b1}, failover.Options{Stream: true, FirstToken: 10 * time.Second},
					func(ctx context.Context, a *failover.Attempt) (int, error) {
						switch k := n500.Add(1) % 5; {
						case k == 0:
							return 0, broken
						case k == 1:
							return 0, limited
						case a.Target.Key() == a1 && i > 100 && i < 200:
							<-ctx.Done()
							return 0, ctx.Err()
						}
						select {
						case <-time.After(100 * time.Millisecond):
						case <-ctx.Done():
							return 0, ctx.Err()
						}
						a.FirstContent()
						return 1, nil
					})
			}()
		}
		for range n {
			<-done
		}
	})
}

// A caller that has left already asks nobody, so that a function that does not look at its context does no work
// that nobody waits for.
func TestRunAsksNobodyForACallerThatLeft(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		calls := 0
		_, err := failover.Run(ctx, rn, []resilience.Key{a1, b1}, func(context.Context, *failover.Attempt) (string, error) {
			calls++
			return "done", nil
		})
		if !errors.Is(err, context.Canceled) || calls != 0 {
			t.Errorf("%v after %d calls, want that it is canceled and none", err, calls)
		}
	})
}
