package failover

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"omniroute/resilience"
)

// hall is a lobby with named requests, and who was let go when.
type hall struct {
	*rig
	*Lobby
	t    testing.TB
	reqs map[string]*Request
	let  []string // "name after how much of the wait counts"
}

func newHall(t testing.TB, p resilience.Policy) *hall {
	h := &hall{rig: newRig(t, p), Lobby: NewLobby(), t: t, reqs: map[string]*Request{}}
	h.OnOpening(func(provider string) { h.Changed(provider, h.now) })
	return h
}

// comes lets a request wait.
func (h *hall) comes(name string, p *Plan, budget time.Duration) bool {
	r := h.reqs[name]
	if r == nil {
		r = NewRequest(p, nil, true)
		h.reqs[name] = r
	}
	return h.Enter(r, budget, func(waited time.Duration) {
		h.let = append(h.let, fmt.Sprintf("%s after %v", name, waited))
	}, h.now)
}

// to polls the lobby as a timer would, up to that time after the epoch.
func (h *hall) to(d time.Duration) {
	h.t.Helper()
	end := epoch.Add(d)
	for range 100_000 {
		let, again := h.Poll(h.now)
		for _, r := range let {
			r.Wake()
		}
		if again.IsZero() || again.After(end) {
			h.now = end
			return
		}
		if !again.After(h.now) && len(let) == 0 {
			h.t.Fatal("the lobby wants to be polled again at once")
		}
		h.now = again
	}
	h.t.Fatal("the lobby never comes to rest")
}

func (h *hall) want(want ...string) {
	h.t.Helper()
	if !slices.Equal(h.let, want) {
		h.t.Errorf("let go: %q, want %q", h.let, want)
	}
	h.let = nil
}

func (h *hall) fails(target, v string) {
	h.t.Helper()
	p, err := h.Target(key(target)).Acquire()
	if err != nil {
		h.t.Fatal(err)
	}
	p.Failure(verdict(h.t, v))
}

func (h *hall) clear(provider string) { h.Reset(resilience.Key{Provider: provider}, false) }

// Those who wait go one after the other, oldest first, evenly over as long as the oldest has
// waited, and not against their budgets from then on.
func TestR3Release(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{}, "a/1/m")
	h.fails("a/1/m", "429/60s")
	for i := range 4 {
		h.to(time.Duration(i) * time.Second)
		h.comes(fmt.Sprint("r", i), p, 4500*time.Millisecond)
	}
	h.to(4 * time.Second)
	h.want()
	h.clear("a")
	h.to(4 * time.Second)
	h.want("r0 after 4s")
	h.to(5 * time.Second)
	h.want("r1 after 3s")
	h.to(20 * time.Second)
	h.want("r2 after 2s", "r3 after 1s")
	if h.Waiting() != 0 || len(h.rooms) != 0 || len(h.due) != 0 {
		t.Errorf("%d wait in %d rooms", h.Waiting(), len(h.rooms))
	}
}

// A release takes at most max_wait, however long the oldest has waited in all.
func TestR3ReleaseIsBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{MaxWait: 2 * time.Second}, "a/1/m")
	h.fails("a/1/m", "429/60s")
	h.comes("r0", p, 20*time.Second)
	h.comes("r1", p, 20*time.Second)
	h.to(10 * time.Second)
	h.clear("a")
	h.to(10 * time.Second)
	h.want("r0 after 10s")
	h.to(11 * time.Second)
	h.want("r1 after 10s")
}

// When the gate shuts again before the room is empty the next release takes twice as long, at
// most eight times, and an emptied room resets that.
func TestR3SlowerReleases(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{MaxWait: time.Second}, "a/1/m")
	h.fails("a/1/m", "429/600s")
	for i := range 20 {
		h.comes(fmt.Sprint("r", i), p, time.Hour)
	}
	now := time.Second
	h.to(now)
	left := 20
	for _, span := range []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, 8 * time.Second, 8 * time.Second} {
		h.clear("a")
		h.to(now)
		interval := span / time.Duration(left)
		h.to(now + interval - time.Millisecond)
		if len(h.let) != 1 {
			t.Fatalf("%d were let go in %v, want one", len(h.let), interval)
		}
		now += interval
		h.to(now)
		if len(h.let) != 2 {
			t.Fatalf("%d were let go after %v, want two", len(h.let), interval)
		}
		h.let, left = nil, left-2
		h.fails("a/1/m", "429/600s")
		h.Changed("a", h.now) // as a timer would find out
		now += time.Second
		h.to(now)
	}
	h.clear("a")
	h.to(now + 20*time.Second)
	if len(h.let) != left {
		t.Fatalf("%d were let go of %d", len(h.let), left)
	}
	h.let = nil
	h.fails("a/1/m", "429/600s")
	h.comes("r0", p, time.Hour)
	h.comes("r1", p, time.Hour)
	now += 21 * time.Second
	h.to(now)
	h.clear("a")
	h.to(now + 500*time.Millisecond)
	if len(h.let) != 2 {
		t.Errorf("after the room was empty %d were let go within half a second, want both", len(h.let))
	}
}

// A wait counts only while everything is shut.
func TestR3WaitsStandStill(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{}, "a/1/m")
	h.fails("a/1/m", "429/600s")
	for i := range 5 {
		h.comes(fmt.Sprint("r", i), p, 5*time.Second)
	}
	h.to(4 * time.Second)
	h.clear("a") // one each 800ms
	h.to(5 * time.Second)
	h.want("r0 after 4s", "r1 after 4s")
	h.fails("a/1/m", "429/600s")
	h.Changed("a", h.now)
	h.to(5900 * time.Millisecond)
	h.want()
	h.to(6 * time.Second)
	h.want("r2 after 5s", "r3 after 5s", "r4 after 5s")
}

// One is sent to probe; who follows depends on it.
func TestR3Scout(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{}, "a/1/m")
	h.fails("a/1/m", "429/2s")
	for i := range 4 {
		h.comes(fmt.Sprint("r", i), p, 10*time.Second)
	}
	h.to(2 * time.Second)
	h.want("r0 after 2s")
	h.to(2500 * time.Millisecond)
	h.want() // the scout has not even asked yet
	probe, err := h.Target(key("a/1/m")).Acquire()
	if err != nil || !probe.Probe() {
		t.Fatal("no probe:", err)
	}
	h.Changed("a", h.now)
	h.to(3 * time.Second)
	h.want()
	probe.Failure(verdict(t, "429/3s"))
	h.to(6 * time.Second)
	h.want("r1 after 6s")

	// A scout that leaves without a try makes room for the next one.
	h.Leave(h.reqs["r1"], h.now)
	h.to(6 * time.Second)
	h.want("r2 after 6s")

	// So does one that comes back because its place was taken.
	probe, _ = h.Target(key("a/1/m")).Acquire()
	h.comes("r2", p, 4*time.Second)
	h.to(7 * time.Second)
	h.want()
	probe.Neutral()
	h.to(7 * time.Second)
	h.want("r3 after 7s") // as old as r2, and longer here
	probe, _ = h.Target(key("a/1/m")).Acquire()
	probe.Success()
	h.to(20 * time.Second)
	h.want("r2 after 1s")
}

// The oldest request goes first, whenever it came into the room.
func TestR3OldestFirst(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{}, "a/1/m")
	h.fails("a/1/m", "429/600s")
	h.comes("old", p, 10*time.Second)
	h.Leave(h.reqs["old"], h.now)
	h.to(time.Second)
	h.comes("young", p, 9*time.Second)
	h.to(2 * time.Second)
	h.comes("old", p, 9*time.Second)
	h.clear("a")
	h.to(20 * time.Second)
	h.want("old after 0s", "young after 1s")
}

// At most so many wait; who comes beyond is refused and leaves nothing behind.
func TestR3RoomIsBounded(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{WaitingRoom: 2}, "a/1/m")
	h.fails("a/1/m", "429/600s")
	if !h.comes("r0", p, 10*time.Second) || !h.comes("r1", p, 10*time.Second) || h.comes("r2", p, 10*time.Second) {
		t.Fatal("want room for two")
	}
	h.Leave(h.reqs["r0"], h.now)
	if !h.comes("r2", p, 8*time.Second) {
		t.Fatal("no room after one has left")
	}
	h.to(20 * time.Second)
	h.want("r2 after 8s", "r1 after 10s")
	if len(h.rooms) != 0 {
		t.Error("an empty room was kept")
	}
}

// Requests of one plan that can use different targets do not wake each other in vain.
func TestR3RoomsByFitness(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	p := h.plan(t, Limits{}, "a/1/m", "b/1/n")
	h.fails("a/1/m", "429/600s")
	h.fails("b/1/n", "429/600s")
	h.reqs["picky"] = NewRequest(p, nil, true)
	h.reqs["picky"].state[0].unfit = true
	h.comes("picky", p, 10*time.Second)
	h.comes("any", p, 10*time.Second)
	h.to(time.Second)
	h.clear("a")
	h.to(2 * time.Second)
	h.want("any after 1s")
	h.clear("b")
	h.to(4 * time.Second)
	h.want("picky after 2s")
}

// A reload makes a plan anew. With the same targets its requests wait together, with others they
// do not.
func TestR3RoomsAfterReload(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{})
	h.fails("a/1/m", "429/600s")
	h.fails("b/1/m", "429/600s")
	h.comes("before", h.plan(t, Limits{}, "a/1/m"), 10*time.Second)
	h.comes("same", h.plan(t, Limits{}, "a/1/m"), 10*time.Second)
	h.comes("changed", h.plan(t, Limits{}, "b/1/m"), 10*time.Second)
	if n := len(h.rooms["test"]); n != 2 {
		t.Errorf("%d rooms, want 2", n)
	}
	h.to(time.Second)
	h.clear("b")
	h.to(2 * time.Second)
	h.want("changed after 1s")
	h.clear("a")
	h.to(4 * time.Second)
	h.want("before after 2s", "same after 2s")
}

// Plans that wait for one probe take turns.
func TestR3PlansTakeTurns(t *testing.T) {
	t.Parallel()
	h := newHall(t, resilience.Policy{Breaker: resilience.BreakerPolicy{FailureThreshold: 1, EarlyProbes: []time.Duration{time.Second}}})
	x, y := h.plan(t, Limits{}, "a/1/m"), h.plan(t, Limits{}, "a/2/m")
	y.Name = "other"
	h.fails("a/1/m", "500")
	for i := range 3 {
		h.comes(fmt.Sprint("x", i), x, 10*time.Second)
	}
	for i := range 3 {
		h.comes(fmt.Sprint("y", i), y, 10*time.Second)
	}
	h.to(time.Second)
	var sent []string
	for range 4 {
		h.to(h.now.Sub(epoch))
		// The first of those who were let go probes, the others come back.
		if len(h.let) == 0 {
			t.Fatal("nobody was let go")
		}
		name, _, _ := strings.Cut(h.let[0], " ")
		sent = append(sent, name[:1])
		probe, err := h.Target(h.reqs[name].plan.Targets[0].Key()).Acquire()
		if err != nil {
			t.Fatal(name, err)
		}
		for _, l := range h.let[1:] {
			other, _, _ := strings.Cut(l, " ")
			h.comes(other, nil, 10*time.Second)
		}
		h.let = nil
		probe.Failure(verdict(t, "500"))
		h.to(h.now.Sub(epoch) + time.Second)
	}
	if got := strings.Join(sent, ""); got != "xyxy" && got != "yxyx" {
		t.Errorf("probes were sent for %s, want the plans to take turns", got)
	}
}
