package resilience_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/resilience"
	"omniroute/store/memory"
)

var (
	quiet   = slog.New(slog.NewTextHandler(io.Discard, nil))
	errGone = errors.New("connection refused")
	key     = resilience.Key{Provider: "p", Connection: "a", Model: "m"}
	err429  = resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit}
	err500  = resilience.Verdict{Scope: resilience.ScopeProvider, Kind: resilience.KindServerError}
)

const (
	soon   = 250 * time.Millisecond // by when everybody has heard: changes are sent every 100 ms at most
	moment = 2500 * time.Millisecond
)

// fleet is a number of engines on one hub, in virtual time.
type fleet struct {
	t    *testing.T
	hub  *memory.Hub
	ways []*memory.Node
	*resilience.Engine
	all []*resilience.Engine
}

// inCluster runs a test with n engines, whose wall clocks differ by up to 30 s.
func inCluster(t *testing.T, n int, o resilience.Options, test func(t *testing.T, f *fleet)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		f := &fleet{t: t, hub: memory.NewHub(nil)}
		for i := range n {
			f.add(i, o)
		}
		f.Engine = f.all[0]
		t.Cleanup(func() {
			for _, e := range f.all {
				f.stop(e)
			}
		})
		time.Sleep(moment)
		test(t, f)
	})
}

func (f *fleet) add(i int, o resilience.Options) {
	way := f.hub.Node(fmt.Sprint("node-", i))
	way.Slow(2 * time.Millisecond)
	off := time.Duration(i%3-1) * 30 * time.Second
	o.Store, o.Logger, o.Now = way, quiet, func() time.Time { return time.Now().Add(off) }
	e, err := resilience.New(o)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := e.Start(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	f.ways, f.all = append(f.ways, way), append(f.all, e)
}

func (f *fleet) stop(e *resilience.Engine) {
	f.t.Helper()
	if err := e.Stop(context.Background()); err != nil && !errors.Is(err, errGone) {
		f.t.Error(err)
	}
}

// out fails unless the target stands so on every one of these nodes.
func (f *fleet) out(want bool, nodes ...int) {
	f.t.Helper()
	if nodes == nil {
		for i := range f.all {
			nodes = append(nodes, i)
		}
	}
	for _, i := range nodes {
		if x, out := f.all[i].Target(key).Check(); out != want {
			f.t.Errorf("node %d: out is %v (%+v), want %v", i, out, x, want)
		}
	}
}

func (f *fleet) state(i int) string { return f.all[i].Cluster().State }

// A trip on one node turns traffic away on all, with the same end, whatever their clocks say.
func TestK1ATripIsEverybodys(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.out(false)
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: time.Minute})
		f.out(true, 0)
		f.out(false, 1, 2)
		time.Sleep(soon)
		f.out(true)
		for i, e := range f.all {
			x, _ := e.Target(key).Check()
			if left := x.RetryAfter; left > time.Minute || left < time.Minute-2*soon {
				t.Errorf("node %d waits %v", i, left)
			}
		}
		for range 5 {
			f.all[1].RecordFailure(resilience.Key{Provider: "q", Connection: "a", Model: "m"}, err500)
		}
		time.Sleep(soon)
		for i, e := range f.all {
			if s := e.CircuitBreaker("q", resilience.BreakerOptions{}).Status().State; s != resilience.Open {
				t.Errorf("node %d: the breaker is %s", i, s)
			}
		}
	})
}

// A quarantine has no end, so that the shared store has it for whoever comes later, however short a quota may last.
func TestK1AQuarantineIsKept(t *testing.T) {
	t.Parallel()
	o := resilience.Options{Config: resilience.Config{Policy: resilience.Policy{Hints: resilience.HintPolicy{MaxQuota: time.Minute}}}}
	inCluster(t, 1, o, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindAuth, Quarantine: true})
		time.Sleep(10 * time.Minute)
		f.add(1, o)
		time.Sleep(moment)
		f.out(true)
	})
}

// A cooldown of five seconds on one node is one of five seconds on all, and then any of them may use it,
// whatever else failed meanwhile.
func TestK1DeadlinesAreAbsolute(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		other := resilience.Key{Provider: "q", Connection: "a", Model: "m"}
		f.RecordFailure(other, err500)
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeConnection, Kind: resilience.KindRateLimit, RetryAfter: 5 * time.Second})
		time.Sleep(soon)
		f.out(true)
		time.Sleep(4500 * time.Millisecond)
		f.out(true)
		time.Sleep(1250 * time.Millisecond)
		f.out(false)
	})
}

// probe waits until a node's requests have got the lease, and takes the permit.
func (f *fleet) probe(i int) resilience.Permit {
	f.t.Helper()
	target := f.all[i].Target(key)
	_, err := target.Acquire()
	var x *resilience.ExcludedError
	if err == nil || !errors.As(err, &x) || !x.Held {
		f.t.Fatalf("node %d probes without asking: %v", i, err)
	}
	time.Sleep(soon)
	p, err := target.Acquire()
	if err != nil || !p.Probe() {
		f.t.Fatalf("node %d does not probe: %v", i, err)
	}
	return p
}

func (f *fleet) refused(nodes ...int) {
	f.t.Helper()
	for _, i := range nodes {
		for range 50 {
			_, err := f.all[i].Target(key).Acquire()
			var x *resilience.ExcludedError
			if !errors.As(err, &x) || !x.Held {
				f.t.Fatalf("node %d: %v", i, err)
			}
		}
		time.Sleep(soon)
	}
}

// One probe is in flight in the whole cluster, and its success is everybody's.
func TestK2OneProbeForAll(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, err429)
		time.Sleep(1500 * time.Millisecond)
		p := f.probe(1)
		f.refused(0, 1, 2)
		time.Sleep(20 * time.Second)
		f.refused(0, 1, 2)
		p.FirstContent()
		time.Sleep(soon)
		f.out(false)
		for i := range f.all {
			if q, err := f.all[i].Target(key).Acquire(); err != nil || q.Probe() {
				t.Errorf("node %d: %v", i, err)
			}
		}
		// The end of the answer can still add a failure, which is news and no probe's.
		p.Failure(err429)
		time.Sleep(soon)
		f.out(true)
	})
}

// A failed probe is one failure for all: one level up, and nobody probes before the new end.
func TestK2AFailedProbeIsOneFailure(t *testing.T) {
	t.Parallel()
	inCluster(t, 3, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, err429)
		for level, node := range []int{2, 0, 1} {
			time.Sleep(time.Minute)
			f.probe(node).Failure(err429)
			time.Sleep(soon)
			for i, e := range f.all {
				c := e.Status().Providers[0].Connections[0]
				if c.BackoffLevel != level+2 || c.State != resilience.Cooling {
					t.Fatalf("after %d probes node %d has %+v", level+1, i, c)
				}
			}
		}
	})
}

// A dead owner's lease ends, and not before; what it says later is ignored.
func TestK2ADeadOwnersLeaseEnds(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, err429)
		time.Sleep(1500 * time.Millisecond)
		begun := time.Now()
		p := f.probe(0)
		f.ways[0].Cut(errGone) // it is as good as dead, and comes back later
		for {
			if q, err := f.all[1].Target(key).Acquire(); err == nil {
				if took := time.Since(begun); took < 75*time.Second || took > 85*time.Second {
					t.Errorf("the next probe came after %v", took)
				}
				f.ways[0].Cut(nil)
				time.Sleep(moment)
				p.FirstContent()
				p.Success()
				time.Sleep(soon)
				f.refused(1, 0)
				q.Failure(err429)
				time.Sleep(soon)
				f.out(true)
				return
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
}

// A lease that has ended is nobody's: a node whose probe was lost does not offer another one while the
// store gives the right to somebody else.
func TestK2AnEndedLeaseOffersNothing(t *testing.T) {
	t.Parallel()
	o := resilience.Options{Config: resilience.Config{Policy: resilience.Policy{Breaker: resilience.BreakerPolicy{ProbeLease: 3 * time.Second}}}}
	inCluster(t, 2, o, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, err429)
		time.Sleep(1500 * time.Millisecond)
		f.probe(0) // and nobody ever settles it
		time.Sleep(4 * time.Second)
		f.probe(1)
		_, _ = f.Target(key).Acquire()
		time.Sleep(soon)
		if x, out := f.Target(key).Check(); !out || !x.Held {
			t.Errorf("out is %v, %+v; want it to wait for the other node's probe", out, x)
		}
	})
}

// A lease that no request uses is handed over when another node's request wants it, and kept alive
// for thin traffic when none does.
func TestK2IdleLeases(t *testing.T) {
	t.Parallel()
	inCluster(t, 2, resilience.Options{}, func(t *testing.T, f *fleet) {
		f.RecordFailure(key, resilience.Verdict{Scope: resilience.ScopeModel, Kind: resilience.KindModelNotFound, Certain: true})
		time.Sleep(10*time.Minute + time.Second)
		_, _ = f.Target(key).Acquire()
		time.Sleep(2 * time.Minute) // the next request is long in coming
		f.out(false, 0)
		f.out(false, 1) // as far as it knows
		_, _ = f.all[1].Target(key).Acquire()
		time.Sleep(soon)
		p, err := f.all[1].Target(key).Acquire()
		if err != nil || !p.Probe() {
			t.Fatalf("not handed over: %v", err)
		}
		f.refused(0)
		p.Neutral() // it decided nothing: the next one may
		time.Sleep(soon)
		f.probe(0).Success()
		time.Sleep(soon)
		f.out(false)
	})
}
