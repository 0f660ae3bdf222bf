package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"omniroute/internal/redistest"
	"omniroute/resilience"
)

// leaseOp is one operation on the one lease, as its caller saw it. Times are nanoseconds since the
// beginning.
type leaseOp struct {
	node   string
	free   bool  // of token; else the lease is asked for
	token  int64 // freed
	called int64
}

type leaseOut struct {
	token    int64 // given, 0 for refused or unanswered
	returned int64
}

// leaseState is who may hold the lease.
type leaseState struct {
	last  int64 // the largest token that was given out
	token int64 // of the present lease, 0 for none
	node  string
	until int64 // it has not ended before
}

const leaseLength = 250 * time.Millisecond

// leaseModel is what the engines rely on: a lease is given to nobody else before it was freed under
// its own token, or has lasted as long as it was asked for; and tokens only grow. A refusal, or a
// call without an answer, promises nothing.
var leaseModel = porcupine.Model{
	Init: func() any { return leaseState{} },
	Step: func(state, input, output any) (bool, any) {
		s, in, out := state.(leaseState), input.(leaseOp), output.(leaseOut)
		switch {
		case in.free && in.token == s.token:
			s.token = 0
			return true, s
		case in.free || out.token == 0:
			return true, s
		case out.token <= s.last, s.token != 0 && s.node != in.node && out.returned < s.until:
			return false, s
		}
		return true, leaseState{out.token, out.token, in.node, in.called + int64(leaseLength)}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprintf("%+v -> %+v", input, output) },
}

// history collects operations of all nodes.
type history struct {
	mu    sync.Mutex
	begun time.Time
	ops   []porcupine.Operation
	given int
}

func (h *history) do(client int, in leaseOp, call func() int64) int64 {
	in.called = int64(time.Since(h.begun))
	token := call()
	out := leaseOut{token, int64(time.Since(h.begun))}
	h.mu.Lock()
	defer h.mu.Unlock()
	if token != 0 {
		h.given++
	}
	h.ops = append(h.ops, porcupine.Operation{ClientId: client, Input: in, Call: in.called, Output: out, Return: out.returned})
	return token
}

// goOn lets a second pass, and more where the lease was not given out often enough to show anything.
func (h *history) goOn(t *testing.T) {
	t.Helper()
	given := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.given
	}
	begun, before := time.Now(), given()
	for time.Since(begun) < time.Second || given() < before+5 {
		if time.Since(begun) > time.Minute {
			t.Fatal("nobody gets the lease")
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// The probe lease is linearizable: nodes that are slow, that repeat what they have sent, that die
// with the lease and that come back, while the server is killed and starts empty.
func TestK2TheLeaseIsLinearizable(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	h := &history{begun: time.Now()}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var nodes sync.WaitGroup
	for client := range 5 {
		nodes.Go(func() { lessee(ctx, client, server.Addr, h) })
	}
	for range 3 {
		h.goOn(t)
		server.Kill()
		time.Sleep(50 * time.Millisecond)
		server.Start()
	}
	h.goOn(t)
	cancel()
	nodes.Wait()
	result, _ := porcupine.CheckOperationsVerbose(leaseModel, h.ops, 5*time.Minute)
	if result != porcupine.Ok {
		t.Errorf("%d operations: %s", len(h.ops), result)
		for _, o := range h.ops {
			if in, out := o.Input.(leaseOp), o.Output.(leaseOut); in.free || out.token != 0 {
				t.Logf("%s", leaseModel.DescribeOperation(in, out))
			}
		}
	}
	t.Logf("%d operations, the lease was given out %d times", len(h.ops), h.given)
}

// lessee is one node: it asks, holds the lease for a while and keeps it alive, gives it back or
// dies with it.
func lessee(ctx context.Context, client int, addr string, h *history) {
	name := fmt.Sprint("node-", client)
	s := New(Options{Address: addr, Node: name, grace: 4 * leaseLength / 5})
	defer func() { _ = s.Close() }()
	r := rand.New(rand.NewPCG(uint64(client), 1))
	nap := func(most time.Duration) { time.Sleep(rand.N(most)) }
	call := func(f func(ctx context.Context)) {
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		f(ctx)
	}
	free := func(token int64) {
		h.do(client, leaseOp{node: name, free: true, token: token}, func() int64 {
			call(func(ctx context.Context) {
				_, _ = s.Merge(ctx, resilience.Contribution{Free: []resilience.Held{{Gate: gateA, Token: token}}})
			})
			return 0
		})
	}
	var old int64
	for ctx.Err() == nil {
		token := h.do(client, leaseOp{node: name}, func() (token int64) {
			call(func(ctx context.Context) {
				g, err := s.Lease(ctx, []resilience.RecordID{gateA}, leaseLength)
				if err == nil {
					token = g.Token
				}
			})
			return token
		})
		if old != 0 && r.IntN(3) == 0 {
			free(old) // once more
		}
		if token == 0 {
			nap(30 * time.Millisecond)
			continue
		}
		until := time.Now().Add(rand.N(2 * leaseLength / 3))
		for time.Now().Before(until) && ctx.Err() == nil { // a beat keeps what a server that began anew has lost
			call(func(ctx context.Context) {
				_, _ = s.Beat(ctx, resilience.Beat{Keep: []resilience.Held{{Gate: gateA, Token: token, For: leaseLength}}})
			})
			nap(30 * time.Millisecond)
		}
		if r.IntN(4) != 0 {
			free(token)
			old = token
		}
	}
}

var gateA = resilience.RecordID{Layer: resilience.LayerBreaker, Key: resilience.Key{Provider: "a"}}
