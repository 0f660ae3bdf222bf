package lab_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"omniroute/internal/lab"

	"github.com/google/go-cmp/cmp"
)

// statuses asks n times and returns the statuses.
func (h *harness) statuses(n int) []int {
	h.t.Helper()
	var got []int
	for range n {
		got = append(got, h.ask(h.t.Context(), "m", false).Status)
	}
	return got
}

func TestSequenceAndFirst(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Script: []lab.Phase{lab.Always(lab.Sequence(lab.ServerError(), lab.Fault{}, lab.Overloaded()))}})
	if d := cmp.Diff([]int{500, 200, 529, 200}, h.statuses(4)); d != "" {
		t.Error(d)
	}
	h.p.SetFault(lab.First(2, lab.Unavailable(lab.Hint{})))
	if d := cmp.Diff([]int{503, 503, 200}, h.statuses(3)); d != "" {
		t.Error(d)
	}
	if n := h.p.CountOutcome("503"); n != 2 {
		t.Errorf("%d calls with 503 counted", n)
	}
}

func TestSometimesFollowsTheSeed(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) []int {
		h := onSocket(t, lab.Options{Seed: seed, Script: []lab.Phase{lab.Always(lab.Sometimes(0.3, lab.ServerError()))}})
		return h.statuses(100)
	}
	a := run(7)
	if d := cmp.Diff(a, run(7)); d != "" {
		t.Errorf("the same seed, another run:\n%s", d)
	}
	if cmp.Equal(a, run(8)) {
		t.Error("another seed, the same run")
	}
	failed := 0
	for _, s := range a {
		if s == 500 {
			failed++
		}
	}
	if failed < 15 || failed > 45 {
		t.Errorf("%d of 100 failed", failed)
	}
}

func TestAllCombines(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{Text: sentence, Script: []lab.Phase{
			lab.Always(lab.All(lab.SlowHeaders(2*time.Second), lab.SlowFirstContent(time.Second, 0))),
			lab.Always(lab.Cut(3, lab.CutFIN)),
		}})
		r := h.ask(t.Context(), "m", true)
		cutWith(isUnexpected)(t, r)
		if r.Headers != 2*time.Second || r.First != 3*time.Second {
			t.Errorf("headers %v, first %v", r.Headers, r.First)
		}
		if got := h.p.Calls()[0].Outcome; got != "slow-headers+slow-first-token+cut" {
			t.Errorf("outcome %s", got)
		}
		h.p.SetFault(lab.All(lab.SlowHeaders(2*time.Second), lab.ServerError()))
		if r := h.ask(t.Context(), "m", true); r.Status != 500 || r.Headers != 2*time.Second {
			t.Errorf("got %d after %v", r.Status, r.Headers)
		}
		h.p.SetFault(lab.All(lab.SlowFirstContent(2*time.Second, 0), lab.ErrorEvent(0, lab.Error{Message: "late"})))
		if r := h.ask(t.Context(), "m", true); r.Error != "late" || r.End != 2*time.Second {
			t.Errorf("got %+v", r)
		}
	})
}

func TestRateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{Script: []lab.Phase{lab.Always(lab.RateLimit(2, 10*time.Second, lab.HintSeconds, true))}})
		h.key = "a"
		if d := cmp.Diff([]int{200, 200}, h.statuses(2)); d != "" {
			t.Error(d)
		}
		time.Sleep(4 * time.Second)
		r := h.ask(t.Context(), "m", false)
		if r.Status != 429 || r.Header.Get("Retry-After") != "6" || r.Header.Get("X-Ratelimit-Remaining-Requests") != "0" {
			t.Errorf("got %d %v", r.Status, r.Header)
		}
		h.key = "b"
		if r := h.ask(t.Context(), "m", false); r.Status != 200 || r.Header.Get("X-Ratelimit-Remaining-Requests") != "1" || r.Header.Get("X-Ratelimit-Limit-Requests") != "2" {
			t.Errorf("the other connection got %d %v", r.Status, r.Header)
		}
		h.key = "a"
		time.Sleep(6 * time.Second)
		if d := cmp.Diff([]int{200, 200, 429}, h.statuses(3)); d != "" {
			t.Error(d)
		}
	})
}

func TestCapacity(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{Script: []lab.Phase{lab.Always(lab.Capacity(2, lab.Overloaded()))}})
		if d := cmp.Diff([]int{200, 200, 529}, h.statuses(3)); d != "" {
			t.Error(d)
		}
		time.Sleep(500 * time.Millisecond)
		if d := cmp.Diff([]int{200, 529}, h.statuses(2)); d != "" {
			t.Error(d)
		}
		time.Sleep(time.Minute) // does not save up more than a second's worth
		if d := cmp.Diff([]int{200, 200, 529}, h.statuses(3)); d != "" {
			t.Error(d)
		}
	})
}

func TestConcurrency(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := inMemory(t, lab.Options{Script: []lab.Phase{
			lab.Always(lab.Concurrency(1, lab.RateLimited(lab.Hint{}))),
			{Match: lab.OnModel("long"), Fault: lab.SlowHeaders(time.Minute)},
		}})
		done := make(chan result)
		go func() { done <- h.ask(t.Context(), "long", false) }()
		synctest.Wait()
		if d := cmp.Diff([]int{429}, h.statuses(1)); d != "" {
			t.Error(d)
		}
		if r := <-done; r.Status != 200 {
			t.Errorf("the first one got %d", r.Status)
		}
		synctest.Wait()
		if d := cmp.Diff([]int{200, 200}, h.statuses(2)); d != "" {
			t.Error(d)
		}
	})
}

// TestReusedConnections shows what a pooled connection that died looks like on a real socket.
func TestReusedConnections(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault lab.Fault
		is    error
	}{"reset": {lab.ResetReused(), syscall.ECONNRESET}, "close": {lab.CloseReused(), io.EOF}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := onSocket(t, lab.Options{Script: []lab.Phase{lab.Always(c.fault)}})
			if r := h.ask(t.Context(), "m", false); r.Status != 200 {
				t.Fatalf("the first request got %d %v", r.Status, r.Err)
			}
			if r := h.ask(t.Context(), "m", false); !errors.Is(r.Err, c.is) {
				t.Errorf("the second request on the connection got %d %v", r.Status, r.Err)
			}
			if r := h.ask(t.Context(), "m", false); r.Status != 200 {
				t.Errorf("the new connection got %d %v", r.Status, r.Err)
			}
			var reused []bool
			for _, c := range h.p.Calls() {
				reused = append(reused, c.Reused)
			}
			if d := cmp.Diff([]bool{false, true, false}, reused); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestFaultsOnSockets repeats on real TCP what depends on the transport, streamed.
func TestFaultsOnSockets(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cut", "cut-fin", "cut-quiet", "cut-unframed", "reset", "close", "gzip", "error-event", "no-done", "empty", "html-200", "502", "429"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := onSocket(t, lab.Options{Text: sentence})
			namedFaults[name](t, h.ask(t.Context(), "fault/"+name, true))
		})
	}
	for _, name := range []string{"hang", "stall", "slow-first-token:1h", "slow-headers:1h"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := onSocket(t, lab.Options{Text: sentence})
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan result)
			go func() { done <- h.ask(ctx, "fault/"+name, true) }()
			if err := h.p.Await(t.Context(), 1, 1); err != nil {
				t.Fatal(err)
			}
			cancel()
			if r := <-done; !errors.Is(r.Err, context.Canceled) {
				t.Errorf("got %+v", r)
			}
			if err := h.p.Await(t.Context(), 1, 0); err != nil {
				t.Fatal(err)
			}
			if c := h.p.Calls()[0]; !c.Canceled {
				t.Errorf("the upstream did not notice: %+v", c)
			}
		})
	}
}

// TestPlainAnswers is what the faults do to an answer that is not streamed.
func TestPlainAnswers(t *testing.T) {
	t.Parallel()
	half := func(t *testing.T, r result) {
		t.Helper()
		if r.Status != 200 || r.Body == "" || strings.HasSuffix(r.Body, "}") {
			t.Errorf("got %+v", r)
		}
	}
	contains := func(s string) expectation {
		return func(t *testing.T, r result) {
			t.Helper()
			if r.Status != 200 || r.Err != nil || !strings.Contains(r.Body, s) {
				t.Errorf("no %s in %+v", s, r)
			}
		}
	}
	failing := func(check func(error) bool) expectation {
		return func(t *testing.T, r result) {
			t.Helper()
			half(t, r)
			if !check(r.Err) {
				t.Errorf("ended by %v", r.Err)
			}
		}
	}
	for name, expect := range map[string]expectation{
		"cut":          failing(isReset),
		"cut-fin":      failing(isUnexpected),
		"cut-quiet":    failing(isNil),
		"cut-unframed": failing(isNil),
		"stall":        failing(isTimeout),
		"malformed":    failing(isNil),
		"error-event":  contains(`"code":"overloaded"`),
		"no-finish":    contains(`"finish_reason":null`),
		"no-choices":   contains(`"choices":[]`),
		"no-content":   contains(`"content":""`),
		"no-done":      contains(`"finish_reason":"stop"`),
		"empty": func(t *testing.T, r result) {
			if r.Status != 200 || r.Body != "" || r.Err != nil {
				t.Errorf("got %+v", r)
			}
		},
		"slow-first-token": func(t *testing.T, r result) {
			if r.Status != 200 || r.Headers != 0 || r.End != 5*time.Second {
				t.Errorf("headers %v, end %v", r.Headers, r.End)
			}
		},
		"slow-content": func(t *testing.T, r result) {
			if r.Status != 200 || r.End != 5*time.Second { // eleven words
				t.Errorf("end %v", r.End)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				h := inMemory(t, lab.Options{Text: sentence})
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				expect(t, h.ask(ctx, "fault/"+name, false))
			})
		})
	}
}

func TestShortAnswerStillFails(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Script: []lab.Phase{lab.Always(lab.Cut(100, lab.CutReset))}})
	if r := h.ask(t.Context(), "m", true); !isReset(r.Err) {
		t.Errorf("got %+v", r)
	}
}

func TestFaultyProvider(t *testing.T) {
	t.Parallel()
	h := onSocket(t, lab.Options{Faulty: true})
	if r := h.ask(t.Context(), "402", false); r.Status != 402 {
		t.Errorf("got %d", r.Status)
	}
	if r := h.ask(t.Context(), "fault/402", false); r.Status != 402 {
		t.Errorf("got %d", r.Status)
	}
	if r := h.ask(t.Context(), "4", false); r.Status != 404 || !strings.Contains(r.Body, "the faults are 429, ") {
		t.Errorf("got %d %s", r.Status, r.Body)
	}
}

func TestParseFault(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"nope":          `there is no fault "nope"`,
		"500:3":         `leave out ":3"`,
		"429:soon":      `as in 429:5s; "soon" is none`,
		"429:2h":        "up to 1h",
		"cut:-1":        "a number from 0 to 10000",
		"cut:3s":        `as in cut:3; "3s" is none`,
		"cut:":          `"" is none`,
		"429:1h30m:10s": "is none",
	} {
		if _, err := lab.ParseFault(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q in it", in, err, want)
		}
	}
	seen := map[string]bool{}
	for _, f := range lab.Faults() {
		if seen[f.Name] || f.Description == "" || !strings.HasSuffix(f.Description, ".") {
			t.Errorf("bad entry %+v", f)
		}
		seen[f.Name] = true
		if got, err := lab.ParseFault(f.Name); err != nil || got.Name == "" {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func FuzzParseFault(f *testing.F) {
	for _, i := range lab.Faults() {
		f.Add(i.Name + ":" + i.Default)
	}
	f.Fuzz(func(t *testing.T, s string) {
		fault, err := lab.ParseFault(s)
		if (err == nil) == (fault.Name == "") {
			t.Errorf("%q: %v and %v", s, fault, err)
		}
	})
}
