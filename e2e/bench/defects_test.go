package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/sony/gobreaker/v2"

	"omniroute/resilience"
)

// subject is a breaker: admit takes a permit and returns how to settle it, nil when it is turned away.
// The breaker calls changed at each change of its state, and changed asks it for that.
type subject struct {
	admit func() (settle func(ok bool))
	state func() string
}

// subjects make breakers that open for half a minute after five failures and close by one success.
var subjects = []struct {
	name string
	make func(t *testing.T, changed func(state func() string)) subject
}{
	{"omniroute/resilience", ours},
	{"sony/gobreaker", gobreakers},
	{"failsafe-go", failsafes},
}

func ours(t *testing.T, changed func(state func() string)) subject {
	var s subject
	e, err := resilience.New(resilience.Options{OnEvent: func(resilience.Event) { changed(s.state) }})
	if err != nil {
		t.Fatal(err)
	}
	cb := e.CircuitBreaker("p", resilience.BreakerOptions{FailureThreshold: threshold, ResetTimeout: openFor})
	s.state = func() string { return fmt.Sprint(cb.Status().State) }
	s.admit = func() func(bool) {
		begun, end, over := make(chan struct{}), make(chan error, 1), make(chan struct{})
		go func() {
			defer close(over)
			_ = cb.Execute(t.Context(), func(context.Context) error {
				close(begun)
				return <-end
			})
		}()
		select {
		case <-begun:
		case <-over:
			return nil
		}
		t.Cleanup(func() { // whoever is gone ends with the test
			select {
			case end <- nil:
			default:
			}
		})
		return func(ok bool) {
			var err error
			if !ok {
				err = errors.New("failed")
			}
			end <- err
			<-over
		}
	}
	return s
}

func gobreakers(_ *testing.T, changed func(state func() string)) subject {
	var s subject
	cb := gobreaker.NewTwoStepCircuitBreaker[any](gobreaker.Settings{
		Timeout:       openFor,
		ReadyToTrip:   func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= threshold },
		OnStateChange: func(string, gobreaker.State, gobreaker.State) { changed(s.state) },
	})
	s.state = func() string { return cb.State().String() }
	s.admit = func() func(bool) {
		done, err := cb.Allow()
		if err != nil {
			return nil
		}
		return func(ok bool) {
			if ok {
				done(nil)
				return
			}
			done(errors.New("failed"))
		}
	}
	return s
}

func failsafes(_ *testing.T, changed func(state func() string)) subject {
	var s subject
	cb := circuitbreaker.NewBuilder[any]().WithFailureThreshold(threshold).WithDelay(openFor).
		OnStateChanged(func(circuitbreaker.StateChangedEvent) { changed(s.state) }).Build()
	s.state = func() string { return cb.State().String() }
	s.admit = func() func(bool) {
		if !cb.TryAcquirePermit() {
			return nil
		}
		return func(ok bool) {
			if ok {
				cb.RecordSuccess()
				return
			}
			cb.RecordFailure()
		}
	}
	return s
}

// trip fails until the breaker turns calls away.
func trip(s subject) {
	for range 100 {
		settle := s.admit()
		if settle == nil {
			return
		}
		settle(false)
	}
}

// defects are what circuit breakers get wrong. Each returns "" where it is right.
var defects = []struct {
	name string
	find func(t *testing.T, make func(*testing.T, func(func() string)) subject) string
}{
	{"a probe that nobody settles", func(t *testing.T, make func(*testing.T, func(func() string)) subject) (wrong string) {
		synctest.Test(t, func(t *testing.T) {
			s := make(t, func(func() string) {})
			trip(s)
			time.Sleep(openFor + time.Second)
			if s.admit() == nil {
				wrong = "no probe after its time"
				return
			}
			time.Sleep(time.Hour) // the probe's owner is gone
			if s.admit() == nil {
				wrong = "closed to everybody an hour later"
			}
		})
		return wrong
	}},
	{"a success begun before the outage", func(t *testing.T, make func(*testing.T, func(func() string)) subject) (wrong string) {
		synctest.Test(t, func(t *testing.T) {
			s := make(t, func(func() string) {})
			stale := s.admit()
			time.Sleep(time.Second)
			trip(s)
			time.Sleep(openFor + time.Second)
			probe := s.admit()
			stale(true)
			admitted := 0
			for range 2 {
				if s.admit() != nil {
					admitted++
				}
			}
			if admitted == 2 {
				wrong = "closes it while the probe is still out"
			}
			if probe != nil {
				probe(false)
			}
		})
		return wrong
	}},
	{"a callback that asks for the state", func(t *testing.T, make func(*testing.T, func(func() string)) subject) string {
		s := make(t, func(state func() string) { _ = state() })
		select {
		case <-aside(func() { trip(s) }):
			return ""
		case <-time.After(15 * time.Second):
			return "deadlocks"
		}
	}},
}

// aside runs f in a goroutine, which stays for ever where f does.
func aside(f func()) <-chan struct{} {
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	return done
}

// TestDefects prints which breaker has which of the known defects, and fails where ours has one.
func TestDefects(t *testing.T) {
	var table strings.Builder
	fmt.Fprintf(&table, "%-36s", "")
	for _, s := range subjects {
		fmt.Fprintf(&table, "  %-36s", s.name)
	}
	for _, d := range defects {
		fmt.Fprintf(&table, "\n%-36s", d.name)
		for i, s := range subjects {
			wrong := d.find(t, s.make)
			if i == 0 && wrong != "" {
				t.Errorf("%s: ours %s", d.name, wrong)
			}
			if wrong == "" {
				wrong = "right"
			}
			fmt.Fprintf(&table, "  %-36s", wrong)
		}
	}
	t.Logf("breakers that open for %v after %d failures:\n%s", openFor, threshold, &table)
}
