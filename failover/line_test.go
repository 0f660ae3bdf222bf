package failover_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/failover"
	"omniroute/resilience"
)

// office is a connection with few places and those who want one.
type office struct {
	rn      *failover.Runner
	running atomic.Int64
	most    atomic.Int64
	served  sync.Map // name to when
	start   time.Time
	wg      sync.WaitGroup
}

func newOffice(rn *failover.Runner, places int) *office {
	rn.Limit("a", "1", places)
	return &office{rn: rn, start: time.Now()}
}

// call asks for one second of the connection.
func (o *office) call(ctx context.Context, name string, caller uint64, l failover.Limits, targets ...resilience.Key) error {
	if targets == nil {
		targets = []resilience.Key{a1}
	}
	_, err := failover.RunWith(ctx, o.rn, targets, failover.Options{Caller: caller, Limits: l}, func(ctx context.Context, a *failover.Attempt) (int, error) {
		if a.Target.Key() != a1 {
			o.served.Store(name, a.Target.Key().Provider)
			return 0, nil
		}
		n := o.running.Add(1)
		defer o.running.Add(-1)
		for most := o.most.Load(); n > most && !o.most.CompareAndSwap(most, n); most = o.most.Load() {
		}
		select {
		case <-time.After(time.Second):
			o.served.Store(name, time.Since(o.start))
			return 0, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	return err
}

func (o *office) at(t *testing.T, name string) any {
	t.Helper()
	v, ok := o.served.Load(name)
	if !ok {
		t.Fatalf("%s was not served", name)
	}
	return v
}

func busy(t *testing.T, err error) *failover.Error {
	t.Helper()
	var e *failover.Error
	if !errors.As(err, &e) || e.Report.Cause != failover.CauseBusy {
		t.Fatalf("the end is %v, want one for want of a place", err)
	}
	return e
}

// TestLineIsServedInOrder is the bounded queue within the deadline: two places, five requests of
// one second, all answered, in the order in which they came.
func TestLineIsServedInOrder(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 2)
		for i := range 5 {
			o.wg.Go(func() {
				if err := o.call(t.Context(), fmt.Sprint(i), 0, failover.Limits{}); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		o.wg.Wait()
		for i, seconds := range []int{1, 1, 2, 2, 3} {
			want := time.Duration(seconds) * time.Second
			if got := o.at(t, fmt.Sprint(i)); got != want {
				t.Errorf("request %d ended after %v, want %v", i, got, want)
			}
		}
		if o.most.Load() != 2 {
			t.Errorf("%d calls ran at once", o.most.Load())
		}
	})
}

// TestNeverMoreThanThePlaces has 50 callers at any limit.
func TestNeverMoreThanThePlaces(t *testing.T) {
	for _, places := range []int{1, 2, 7, 50} {
		t.Run(fmt.Sprint(places), func(t *testing.T) {
			bubble(t, func(t *testing.T, rn *failover.Runner) {
				o := newOffice(rn, places)
				for i := range 200 {
					o.wg.Go(func() {
						l := failover.Limits{QueueWait: time.Hour, QueueDepth: 1000, Deadline: 2 * time.Hour}
						if err := o.call(t.Context(), fmt.Sprint(i), uint64(i%50), l); err != nil {
							t.Error(err)
						}
					})
				}
				o.wg.Wait()
				if got := o.most.Load(); got != int64(places) {
					t.Errorf("%d calls ran at once, want %d", got, places)
				}
				if got, want := time.Since(o.start), time.Duration(200+places-1)/time.Duration(places)*time.Second; got != want {
					t.Errorf("all took %v, want %v: no place is left free while somebody waits", got, want)
				}
			})
		})
	}
}

// TestNoCallerStarvesAnother is fairness by caller: one has ninety requests in line, another
// comes last with one and is served next.
func TestNoCallerStarvesAnother(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 1)
		l := failover.Limits{QueueWait: time.Hour}
		for i := range 91 {
			o.wg.Go(func() { o.call(t.Context(), fmt.Sprint("greedy", i), 1, l) })
			synctest.Wait()
		}
		o.wg.Go(func() { o.call(t.Context(), "modest", 2, l) })
		o.wg.Wait()
		if at := o.at(t, "modest"); at != 3*time.Second { // behind the one that ran and the one whose turn it was
			t.Errorf("the modest caller was served after %v", at)
		}
	})
}

// TestFullLineTakesOneOfAnotherCaller: who fills the line does not keep others out of it.
func TestFullLineTakesOneOfAnotherCaller(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 1)
		l := failover.Limits{QueueDepth: 3}
		errs := make([]error, 6)
		for i := range 4 { // one runs, three wait
			o.wg.Go(func() { errs[i] = o.call(t.Context(), fmt.Sprint(i), 1, l) })
			synctest.Wait()
		}
		errs[4] = o.call(t.Context(), "4", 1, l)
		busy(t, errs[4]) // at once
		if time.Since(o.start) != 0 {
			t.Error("a full line was waited for")
		}
		o.wg.Go(func() { errs[5] = o.call(t.Context(), "other", 2, l) })
		synctest.Wait()
		busy(t, errs[3]) // the newest of the caller with the most
		o.wg.Wait()
		for _, i := range []int{0, 1, 2, 5} {
			if errs[i] != nil {
				t.Errorf("request %d: %v", i, errs[i])
			}
		}
	})
}

// TestBusyConnectionIsNobodysFault: a free target is taken at once; without one the wait ends after
// queue wait with what to do, and no gate has heard of it.
func TestBusyConnectionIsNobodysFault(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 1)
		l := failover.Limits{QueueWait: 500 * time.Millisecond}
		o.wg.Go(func() { o.call(t.Context(), "first", 0, l) })
		synctest.Wait()
		if err := o.call(t.Context(), "elsewhere", 0, l, a1, b1); err != nil || o.at(t, "elsewhere") != "b" || time.Since(o.start) != 0 {
			t.Errorf("the free sibling: %v after %v", err, time.Since(o.start))
		}
		rep := busy(t, o.call(t.Context(), "late", 0, l)).Report
		if got := time.Since(o.start); got != 500*time.Millisecond {
			t.Errorf("the wait ended after %v", got)
		}
		if len(rep.Attempts) != 0 || len(rep.Skipped) != 1 || rep.Skipped[0].Layer != resilience.LayerConcurrency || rep.RetryAfter <= 0 {
			t.Errorf("report %+v", rep)
		}
		if x, out := rn.Engine().Target(a1).Check(); out {
			t.Errorf("the gates have heard of it: %+v", x)
		}
		o.wg.Wait()
	})
}

// TestPlacesComeBack: from a caller that has left the line, one that left its call, one whose call
// panicked and one that failed.
func TestPlacesComeBack(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 1)
		l := failover.Limits{}
		running, leave := context.WithCancel(t.Context())
		o.wg.Go(func() { o.call(running, "left", 0, l) })
		synctest.Wait()
		waiting, turnAway := context.WithCancel(t.Context())
		o.wg.Go(func() { o.call(waiting, "impatient", 0, l) })
		synctest.Wait()
		turnAway()
		synctest.Wait()
		leave()
		synctest.Wait()
		func() {
			defer func() { _ = recover() }()
			failover.Run(t.Context(), rn, []resilience.Key{a1}, func(context.Context, *failover.Attempt) (int, error) { panic("a bug") })
		}()
		failover.Run(t.Context(), rn, []resilience.Key{a1}, func(context.Context, *failover.Attempt) (int, error) { return 0, refused })
		if err := o.call(t.Context(), "next", 0, l); err != nil || time.Since(o.start) != time.Second {
			t.Errorf("the next one: %v after %v", err, time.Since(o.start))
		}
		o.wg.Wait()
	})
}

// TestLimitChangesWhileRequestsRun: more places let those in line go on at once, fewer wait for
// those that run.
func TestLimitChangesWhileRequestsRun(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 1)
		for i := range 6 {
			o.wg.Go(func() { o.call(t.Context(), fmt.Sprint(i), 0, failover.Limits{}) })
			synctest.Wait()
		}
		rn.Limit("a", "1", 3)
		synctest.Wait()
		if n := o.running.Load(); n != 3 {
			t.Errorf("%d calls run after the limit was raised to 3", n)
		}
		rn.Limit("a", "1", 1)
		time.Sleep(1500 * time.Millisecond)
		if n := o.running.Load(); n != 1 {
			t.Errorf("%d calls run after the limit was lowered to 1", n)
		}
		rn.Limit("a", "1", 0)
		synctest.Wait()
		if n := o.running.Load(); n != 3 {
			t.Errorf("%d calls run without a limit, want all three that are left", n)
		}
		o.wg.Wait()
	})
}

// TestRecoveryEndsTheWaitInLine: who waits for a place goes to another target as soon as that is
// back.
func TestRecoveryEndsTheWaitInLine(t *testing.T) {
	bubble(t, func(t *testing.T, rn *failover.Runner) {
		o := newOffice(rn, 1)
		for _, who := range []string{"first", "second"} {
			o.wg.Go(func() { o.call(t.Context(), who, 0, failover.Limits{}) })
			synctest.Wait()
		}
		p, _ := rn.Engine().Target(b1).Acquire()
		p.Failure(resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 1500 * time.Millisecond})
		if err := o.call(t.Context(), "third", 0, failover.Limits{}, a1, b1); err != nil || o.at(t, "third") != "b" {
			t.Errorf("%v", err)
		}
		if got := time.Since(o.start); got != 1500*time.Millisecond {
			t.Errorf("it took %v", got)
		}
		o.wg.Wait()
	})
}
